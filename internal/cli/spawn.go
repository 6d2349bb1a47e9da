package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
)

// runnerLog is the log of the background runner, in the state directory.
const runnerLog = "background.log"

// spawnRunner starts the background runner as a process of its own and does not
// wait for it: a session of its own, its own log, no inherited descriptor, and no
// more of the environment than it takes to find programs and the engine. What runs
// need is in their Specs.
func spawnRunner(stateDir string, environ []string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the background runner: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(stateDir, runnerLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start the background runner: %w", err)
	}
	defer func() { _ = log.Close() }() // the runner has its own handle
	keepDescriptors()
	// Not CommandContext: the runner outlives this process.
	cmd := exec.Command(exe, append([]string{"start"}, args...)...) //nolint:noctx // it outlives every context of ours
	cmd.Dir = stateDir
	cmd.Env = runnerEnviron(environ, stateDir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the background runner: %w", err)
	}
	return cmd.Process.Release()
}

// runnerEnviron keeps of the environment what finds programs, the engine and the
// network.
func runnerEnviron(environ []string, stateDir string) []string {
	names := []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK",
		"SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "PROGRAMDATA",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SUDO_UID", "SUDO_GID",
	}
	var kept []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) || strings.HasPrefix(name, "DOCKER_") || strings.HasPrefix(name, "XDG_") {
			kept = append(kept, kv)
		}
	}
	return append(kept, config.EnvStateDir+"="+stateDir)
}

// knock tells the background runner that there is work, starting it if need be.
func (s *state) knock(ctx context.Context) error { return s.background.Knock(ctx) }
