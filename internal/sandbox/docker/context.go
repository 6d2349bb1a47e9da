package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/errs"
)

// defaultContext is the context that stands for "no context".
const defaultContext = "default"

// currentContext returns the current context of config.json, or "".
func currentContext(dir string) (string, error) {
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return "", errs.New("docker.Resolve", errs.Config, "repair or remove "+path,
			"read docker configuration: %w", err)
	}
	return config.CurrentContext, nil
}

// fromContext reads a context of the docker command. Its files are named by the
// sha256 of the context's name.
func fromContext(o Options, name, source string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	dir := filepath.Join(o.configDir(), "contexts")
	path := filepath.Join(dir, "meta", id, "meta.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return endpoint{}, errs.New("docker.Resolve", errs.Config,
			"see `docker context ls`, then `docker context use NAME`, or unset DOCKER_CONTEXT",
			"docker context %q (%s) does not exist", name, source)
	}
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		return endpoint{}, errs.New("docker.Resolve", errs.Config, "make the context again with `docker context create`",
			"read docker context %q (%s): %w", name, source, err)
	}
	docker, ok := meta.Endpoints["docker"]
	if !ok {
		return endpoint{}, errs.New("docker.Resolve", errs.Config, "see `docker context inspect "+name+"`",
			"docker context %q (%s) has no docker endpoint", name, source)
	}
	ep := endpoint{host: docker.Host, source: `context "` + name + `"`}
	if err := checkScheme(ep); err != nil {
		return endpoint{}, err
	}
	files := tlsIn(filepath.Join(dir, "tls", id, "docker"))
	if *files != (tlsFiles{}) || docker.SkipTLSVerify {
		files.skipVerify = docker.SkipTLSVerify
		ep.tls = files
	}
	return ep, nil
}
