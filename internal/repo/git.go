package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gitproc"
)

// Bounds of one git process. An answer is short; what is long is streamed.
const (
	quickBound  = time.Minute
	longBound   = 30 * time.Minute
	maxAnswer   = 64 << 20 // bytes of standard output that are kept in memory
	maxComplain = 8 << 10  // bytes of standard error that are kept
)

// inherited are the variables of Options.Environ that git may see beside the common ones:
// where the user's own configuration lies, and their ssh agent.
func inherited() []string {
	return []string{"HOME", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "SUDO_UID", "USERPROFILE", "HOMEDRIVE", "HOMEPATH"}
}

// git runs the host's git binary, hardened: it never prompts, reads no
// configuration but that of the git directory it is pointed at, and runs no hook,
// fsmonitor, pager or askpass program.
type git struct {
	bin string
	env []string

	once sync.Once
	err  error // of the check of the binary
}

func newGit(bin string, environ []string) *git {
	if bin == "" {
		bin = "git"
	}
	g := &git{bin: bin, env: gitproc.Environ(environ, inherited()...)}
	g.env = append(g.env,
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=15 -oForwardAgent=no -oClearAllForwardings=yes -oPermitLocalCommand=no",
	)
	return g
}

// overrides stand before every command and win over a repository's own configuration.
func overrides() []string {
	return gitproc.Settings(
		"core.logAllRefUpdates=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false",
		"fetch.prune=false", "fetch.pruneTags=false", "advice.detachedHead=false",
	)
}

// call is one git process.
type call struct {
	dir    string   // working directory; empty: the root
	gitDir string   // --git-dir
	tree   string   // --work-tree
	index  string   // GIT_INDEX_FILE
	env    []string // more of the environment
	user   bool     // read the user's own configuration too; only for `config`
	owner  *owner   // run as this user; only as root
	args   []string

	in    io.Reader
	out   io.Writer
	bound time.Duration // 0: quickBound
	stall time.Duration // end it when it says nothing on standard error for so long
}

// gitError is a git process that ended with a code.
type gitError struct {
	verb   string
	code   int
	stderr string
}

func (e *gitError) Error() string {
	if msg := complaint(e.stderr); msg != "" {
		return fmt.Sprintf("git %s: %s", e.verb, msg)
	}
	return fmt.Sprintf("git %s ended with code %d", e.verb, e.code)
}

// complaint is the line of git's standard error that says what is wrong.
func complaint(stderr string) string {
	first := ""
	if i := strings.Index(stderr, "ssh: "); i >= 0 && (i == 0 || stderr[i-1] == '\n') {
		stderr = stderr[i:] // git only says that the other side is gone
		line, _, _ := strings.Cut(stderr, "\n")
		return clip(strings.TrimSpace(line))
	}
	for _, line := range strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		for _, p := range []string{"fatal: ", "error: "} {
			if msg, ok := strings.CutPrefix(line, p); ok {
				return clip(msg)
			}
		}
		if first == "" && !strings.HasPrefix(line, "warning: ") {
			first = line
		}
	}
	return clip(first)
}

func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > 500 {
		return s[:500]
	}
	return s
}

// verb is the git command among arguments that may begin with -c settings.
func verb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

var (
	errStalled = errors.New("it sent nothing for too long")
	errTooMuch = errors.New("its answer is too long")
)

func (g *git) command(ctx context.Context, c call) *exec.Cmd {
	args := overrides()
	if c.gitDir != "" {
		args = append(args, "--git-dir="+c.gitDir)
	}
	if c.tree != "" {
		args = append(args, "--work-tree="+c.tree)
	}
	cmd := exec.CommandContext(ctx, g.bin, append(args, c.args...)...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = string(os.PathSeparator)
	}
	cmd.Env = append(append([]string{}, g.env...), c.env...)
	if !c.user {
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	if c.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.index)
	}
	detach(cmd, c.owner)
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// run starts one git process and waits for it.
func (g *git) run(ctx context.Context, c call) error {
	bound := c.bound
	if bound == 0 {
		bound = quickBound
	}
	limit, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("it did not end within %s", bound))
	defer cancel()
	watched, stalled := context.WithCancelCause(limit)
	defer stalled(nil)

	cmd := g.command(watched, c)
	says := &gitproc.Tail{Limit: maxComplain}
	if c.stall > 0 {
		timer := time.AfterFunc(c.stall, func() { stalled(errStalled) })
		defer timer.Stop()
		says.Touch = func() { timer.Reset(c.stall) }
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, says
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if watched.Err() != nil {
		return fmt.Errorf("git %s: %w", verb(c.args), context.Cause(watched))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &gitError{verb: verb(c.args), code: exit.ExitCode(), stderr: says.String()}
	}
	return fmt.Errorf("git %s: %w", verb(c.args), err)
}

// text runs a git process and returns what it wrote, without the last newline.
func (g *git) text(ctx context.Context, c call) (string, error) {
	var out limited
	out.left = maxAnswer
	c.out = &out
	err := g.run(ctx, c)
	if out.over {
		return "", fmt.Errorf("git %s: %w", verb(c.args), errTooMuch)
	}
	return strings.TrimSuffix(out.buf.String(), "\n"), err
}

// ready checks once that there is a git that can do what we ask.
func (g *git) ready(ctx context.Context) error {
	g.once.Do(func() {
		v, err := g.text(ctx, call{args: []string{"version"}})
		if err != nil {
			g.err = errs.New("repo.git", errs.Unavailable, "install git 2.38 or newer", "git is not usable: %w", err)
			return
		}
		var major, minor int
		_, err = fmt.Sscanf(v, "git version %d.%d", &major, &minor)
		if err != nil || major < 2 || (major == 2 && minor < 38) {
			g.err = errs.New("repo.git", errs.Unavailable, "install git 2.38 or newer", "%s is too old", clip(v))
		}
	})
	return g.err
}

// exitCode is the code of a git process that ended in order, or -1.
func exitCode(err error) int {
	var ge *gitError
	if errors.As(err, &ge) {
		return ge.code
	}
	if err == nil {
		return 0
	}
	return -1
}

// limited is a buffer that refuses more than it was allowed.
type limited struct {
	buf  bytes.Buffer
	left int64
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		l.over = true
		return 0, errTooMuch
	}
	l.left -= int64(len(p))
	return l.buf.Write(p)
}

// stderrOf is what the git process behind err complained about.
func stderrOf(err error) string {
	var ge *gitError
	if errors.As(err, &ge) {
		return ge.stderr
	}
	return ""
}
