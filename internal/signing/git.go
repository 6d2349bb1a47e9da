package signing

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/gitproc"
	"github.com/Insights/insightscli/internal/secret"
)

const (
	readBound = 2 * time.Minute
	pushBound = 15 * time.Minute
	maxSays   = 8 << 10  // bytes of standard error that are kept
	maxText   = 64 << 20 // bytes of an answer: small objects can stand for endless ones
)

// git runs the host's git in a bare repository of ours, and reads no configuration but
// that repository's.
type git struct {
	bin string
	env []string
}

func newGit(bin string, environ []string) *git {
	if bin == "" {
		bin = "git"
	}
	return &git{bin: bin, env: append(gitproc.Environ(environ), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ALLOW_PROTOCOL=http:https")}
}

// call is one git process.
type call struct {
	bare  string
	env   []string
	in    io.Reader
	out   io.Writer
	bound time.Duration // 0 is readBound
	args  []string
}

// errTooMuch is an answer that nobody can work with.
var errTooMuch = errors.New("git has more to say than we can hold")

// gitError is a git process that ended with a code.
type gitError struct {
	verb, says string
	code       int
}

// Error implements error.
func (e *gitError) Error() string {
	for line := range strings.SplitSeq(e.says, "\n") {
		line = strings.TrimSpace(line)
		for _, p := range []string{"remote: error: ", "fatal: ", "error: "} {
			if text, ok := strings.CutPrefix(line, p); ok {
				return "git " + e.verb + ": " + text
			}
		}
	}
	return fmt.Sprintf("git %s ended with code %d", e.verb, e.code)
}

func (g *git) run(ctx context.Context, c call) error {
	if c.bound == 0 {
		c.bound = readBound
	}
	limit, cancel := context.WithTimeoutCause(ctx, c.bound, fmt.Errorf("git %s did not end within %s", c.args[0], c.bound))
	defer cancel()
	args := append(gitproc.Settings("push.gpgSign=false", "push.recurseSubmodules=no", "http.followRedirects=false"), "--git-dir="+c.bare)
	cmd := exec.CommandContext(limit, g.bin, append(args, c.args...)...)
	cmd.Dir, cmd.Env = c.bare, append(append([]string{}, g.env...), c.env...)
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = c.in, c.out, 2*time.Second
	says := gitproc.Tail{Limit: maxSays}
	cmd.Stderr = &says
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case limit.Err() != nil:
		return context.Cause(limit)
	case errors.As(err, &exit):
		return &gitError{verb: c.args[0], says: says.String(), code: exit.ExitCode()}
	}
	return fmt.Errorf("git %s: %w", c.args[0], err)
}

// text is what a git process wrote, without the last newline.
func (g *git) text(ctx context.Context, bare string, args ...string) (string, error) {
	var out answer
	err := g.run(ctx, call{bare: bare, out: &out, args: args})
	return strings.TrimSuffix(out.String(), "\n"), out.instead(err)
}

// answer is what a git process says, within bounds.
type answer struct {
	bytes.Buffer
	over bool
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	if a.Len()+len(p) > maxText {
		a.over = true
		return 0, errTooMuch
	}
	return a.Buffer.Write(p)
}

// instead is the error of a process whose answer was too long, else its own.
func (a *answer) instead(err error) error {
	if a.over {
		return errTooMuch
	}
	return err
}

// tree is the tree of a commit.
func (g *git) tree(ctx context.Context, bare, commit string) (string, error) {
	return g.text(ctx, bare, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
}

// descends reports whether a commit is another or comes after it.
func (g *git) descends(ctx context.Context, bare, commit, from string) (bool, error) {
	_, err := g.text(ctx, bare, "merge-base", "--is-ancestor", from, commit)
	var ended *gitError
	if errors.As(err, &ended) && ended.code == 1 {
		return false, nil
	}
	return err == nil, err
}

// authorize gives git a token for one server, in the environment and not in its
// arguments.
func authorize(server string, token secret.String) []string {
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token.Reveal()))
	return []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http." + server + "/.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic " + basic,
	}
}
