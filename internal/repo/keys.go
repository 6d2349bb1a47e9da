package repo

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// errNoKey is a source that has nothing for an address.
var errNoKey = errors.New("it has none")

const (
	// keyBound bounds a program of the user's that is asked for a key.
	keyBound = 10 * time.Second
	maxKey   = 16 << 10
)

// askGH asks the GitHub command for the login that it keeps.
func (a *access) askGH(ctx context.Context) (grant, error) {
	token, err := a.ghToken(ctx)
	if err != nil {
		return grant{}, err
	}
	return newGrant("gh", tokenUser, token), nil
}

func (a *access) ghToken(ctx context.Context) (secret.String, error) {
	bin := a.GH
	if bin == "" {
		bin = lookPath(a.environ, "gh")
	}
	base, err := url.Parse(a.base())
	if bin == "" || err != nil {
		return secret.String{}, errNoKey
	}
	out, err := a.ask(ctx, "", bin, "auth", "token", "--hostname", base.Host)
	token := strings.TrimSpace(out)
	if err != nil || token == "" || strings.ContainsAny(token, " \r\n\t") {
		return secret.String{}, errNoKey
	}
	return secret.New(token), nil
}

// askHelper asks the credential helpers that the user's git has for an address.
func (a *access) askHelper(ctx context.Context, address string) (grant, error) {
	u, err := url.Parse(address)
	if err != nil {
		return grant{}, errNoKey
	}
	question := "protocol=" + u.Scheme + "\nhost=" + u.Host + "\npath=" + strings.TrimPrefix(u.Path, "/") + "\n\n"
	out, err := a.ask(ctx, question, a.git.bin, "-c", "core.askPass=false", "credential", "fill")
	if err != nil {
		return grant{}, errNoKey
	}
	said := map[string]string{}
	for line := range strings.SplitSeq(out, "\n") {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), "="); ok {
			said[key] = value
		}
	}
	// A helper may name another host; its answer is for that one.
	if said["password"] == "" || said["host"] != u.Host || said["protocol"] != u.Scheme {
		return grant{}, errNoKey
	}
	return newGrant("the credential helper of git", said["username"], secret.New(said["password"])), nil
}

// ask runs a program of the user's that knows keys. It runs as they would run it, but
// cannot prompt, and what it complains about is not kept: it could hold a key.
func (a *access) ask(ctx context.Context, question, bin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = string(os.PathSeparator) // no repository's configuration has a say
	cmd.Env = append(withoutGit(a.environ), unattended()...)
	cmd.Stdin = strings.NewReader(question)
	out := limited{left: maxKey}
	cmd.Stdout = &out
	detach(cmd, nil)
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	return out.buf.String(), err
}

// unattended are the variables that keep git and those it asks from prompting.
func unattended() []string {
	return []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never",
		"GCM_INTERACTIVE=never", "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1",
	}
}

// withoutGit leaves out what changes git or makes it and gh talk, and the tokens that
// are asked for on their own.
func withoutGit(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "GIT_"), strings.HasPrefix(name, "GCM_TRACE"), name == "GH_DEBUG",
			name == "GH_TOKEN", name == "GITHUB_TOKEN", name == "SSH_ASKPASS", name == "DEBUG":
		default:
			out = append(out, kv)
		}
	}
	return out
}

// lookPath finds a program in the PATH of the caller, or returns "".
func lookPath(environ []string, name string) string {
	for _, kv := range environ {
		value, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(value) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found
			}
		}
	}
	return ""
}
