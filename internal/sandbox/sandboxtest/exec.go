package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

var execTests = []test{
	{name: "exit codes", run: exitCodes},
	{name: "command not found", run: notFound},
	{name: "standard input", run: standardInput},
	{name: "large output", run: largeOutput},
	{name: "output and error stay apart", run: twoOutputs},
	{name: "cancelled command is killed", run: execCancelled},
	{name: "signals reach the process group", run: signals},
	{name: "signal past unread input", run: signalPastInput},
	{name: "terminal", run: terminal},
	{name: "environment and directory", run: environment},
	{name: "many commands at once", run: manyCommands},
	{name: "archive", run: archive},
}

func exitCodes(l *lab) {
	_, c, _ := l.start()
	for script, want := range map[string]int{
		"true": 0, "exit 1": 1, "exit 42": 42, "exit 255": 255,
		"kill -9 $$": 137, "kill -15 $$": 143,
	} {
		if _, code := l.shell(c, script); code != want {
			l.Errorf("%s: code %d, want %d", script, code, want)
		}
	}
}

func notFound(l *lab) {
	_, c, _ := l.start()
	code, err := c.Exec(l.context(), wire.Command{Argv: []string{"no-such-command-anywhere"}}, agent.Stdio{})
	if code != 127 || errs.KindOf(err) != errs.NotFound {
		l.Errorf("unknown command: code %d, %v", code, err)
	}
	code, err = c.Exec(l.context(), wire.Command{Argv: []string{"/etc"}}, agent.Stdio{})
	if code != 126 || err == nil {
		l.Errorf("a directory: code %d, %v", code, err)
	}
	if code, err := c.Exec(l.context(), wire.Command{}, agent.Stdio{}); err == nil {
		l.Errorf("no command at all: code %d", code)
	}
}

func standardInput(l *lab) {
	_, c, _ := l.start()
	in := bytes.Repeat([]byte("0123456789abcde\n"), 3<<20/16)
	if out, code := l.shellWith(c, "cat", bytes.NewReader(in)); code != 0 || out != string(in) {
		l.Errorf("cat: code %d, %d bytes of %d came back", code, len(out), len(in))
	}
	if out, code := l.shell(c, "cat"); code != 0 || out != "" {
		l.Errorf("cat of nothing: code %d, %q", code, out)
	}
	// The process closes its input early; the host goes on regardless.
	if out, code := l.shellWith(c, "exec <&-; echo done", bytes.NewReader(in)); code != 0 || out != "done\n" {
		l.Errorf("closed input: code %d, %q", code, out)
	}
}

func largeOutput(l *lab) {
	_, c, _ := l.start()
	const size = 32 << 20
	hash := sha256.New()
	code, err := c.Exec(l.context(), sh("yes 0123456789abcde | head -c 33554432"), agent.Stdio{Out: hash})
	if code != 0 || err != nil {
		l.Fatalf("code %d, %v", code, err)
	}
	want := sha256.Sum256(bytes.Repeat([]byte("0123456789abcde\n"), size/16))
	if got := hash.Sum(nil); !bytes.Equal(got, want[:]) {
		l.Errorf("output has hash %s", hex.EncodeToString(got))
	}
}

func twoOutputs(l *lab) {
	_, c, _ := l.start()
	var out, errOut bytes.Buffer
	code, err := c.Exec(l.context(), sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done"), agent.Stdio{Out: &out, Err: &errOut})
	if code != 0 || err != nil || out.String() != "o1\no2\no3\n" || errOut.String() != "e1\ne2\ne3\n" {
		l.Errorf("code %d, %v, %q, %q", code, err, out.String(), errOut.String())
	}
}

// execCancelled: the process and what it started in its group are gone when the
// caller has lost interest.
func execCancelled(l *lab) {
	_, c, _ := l.start()
	ctx, cancel := context.WithCancel(l.context())
	defer cancel()
	started := newSignal("\n")
	go func() {
		_, err := c.Exec(ctx, sh(`trap "" TERM INT HUP; sleep 1000 & echo $$ $!; wait`), agent.Stdio{Out: started})
		started.ended <- err
	}()
	started.wait(l)
	cancel()
	if err := <-started.ended; !errors.Is(err, context.Canceled) {
		l.Errorf("exec: %v", err)
	}
	for _, pid := range strings.Fields(started.String()) {
		l.until("process "+pid+" is gone", func() bool {
			_, code := l.shell(c, "kill -0 "+pid)
			return code != 0
		})
	}
}

func signals(l *lab) {
	_, c, _ := l.start()
	ready := newSignal("ready")
	names := ready.then(l, "SIGINT")
	code, err := c.Exec(l.context(), sh(`trap "exit 5" INT; echo ready; while :; do sleep 0.1; done`),
		agent.Stdio{Out: ready, Signals: names})
	if code != 5 || err != nil {
		l.Errorf("code %d, %v", code, err)
	}
}

// signalPastInput: more input waits than a process that reads none lets through, and
// a signal still arrives.
func signalPastInput(l *lab) {
	_, c, _ := l.start()
	ready := newSignal("ready")
	names := ready.then(l, "SIGTERM")
	in := io.LimitReader(zeros{}, 64<<20)
	code, err := c.Exec(l.context(), sh("echo ready; exec sleep 1000"), agent.Stdio{In: in, Out: ready, Signals: names})
	if code != 143 || err != nil {
		l.Errorf("code %d, %v", code, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func terminal(l *lab) {
	_, c, _ := l.start()
	out := newSignal("24 80")
	resize := make(chan [2]uint16)
	typed, typing := io.Pipe()
	go func() {
		defer func() { _ = typing.Close() }()
		select {
		case <-out.seen:
		case <-l.context().Done():
			return
		}
		resize <- [2]uint16{50, 132}
		_, _ = io.WriteString(typing, "go\n")
	}()
	// A change of size and what is typed may overtake each other.
	command := sh(`test -t 0 && test -t 1 && stty size; read x
		until [ "$(stty size)" = "50 132" ]; do sleep 0.02; done; stty size; echo $x`)
	command.TTY, command.Rows, command.Cols = true, 24, 80
	code, err := c.Exec(l.context(), command, agent.Stdio{In: typed, Out: out, Resize: resize})
	if code != 0 || err != nil || !strings.Contains(out.String(), "50 132") {
		l.Errorf("code %d, %v, %q", code, err, out.String())
	}
}

func environment(l *lab) {
	_, c, _ := l.start()
	l.want(c, "echo $CANARY", "canary-in-env")
	l.want(c, "echo ${HOME:+set}", "set")
	l.want(c, "cd ~ && touch made-here && rm made-here && echo ok", "ok")
	l.want(c, "touch made-here && rm made-here && echo ok", "ok") // the working directory is the agent's
	command := sh("echo $ONE $CANARY; pwd")
	command.Env, command.Dir = []string{"ONE=1", "CANARY=other"}, "/"
	var out bytes.Buffer
	if code, err := c.Exec(l.context(), command, agent.Stdio{Out: &out}); code != 0 || err != nil || out.String() != "1 other\n/\n" {
		l.Errorf("code %d, %v, %q", code, err, out.String())
	}
	command.Dir = "/no/such/directory"
	if code, err := c.Exec(l.context(), command, agent.Stdio{}); code == 0 || err == nil {
		l.Errorf("missing directory: code %d, %v", code, err)
	}
}

func manyCommands(l *lab) {
	_, c, _ := l.start()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if code, err := c.Exec(l.context(), sh("cat >/dev/null; exit "+strconv.Itoa(i)), agent.Stdio{}); code != i || err != nil {
				l.Errorf("command %d: code %d, %v", i, code, err)
			}
		})
	}
	all.Wait()
}

func archive(l *lab) {
	_, c, _ := l.start()
	dir, code := l.shell(c, "d=$(mktemp -d) && mkdir $d/in && printf %s $d")
	if code != 0 {
		l.Fatal(dir)
	}
	defer l.shell(c, "rm -rf "+dir)
	in := sampleArchive(l)
	if err := c.ArchiveIn(l.context(), dir+"/in", in); err != nil {
		l.Fatalf("in: %v", err)
	}
	l.want(c, "wc -c < "+dir+"/in/sub/link", "1600000")
	var out bytes.Buffer
	if err := c.ArchiveOut(l.context(), dir+"/in", &out); err != nil {
		l.Fatalf("out: %v", err)
	}
	names := map[string]bool{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.Fatal(err)
		}
		names[path.Base(h.Name)] = true
	}
	if !names["file"] || !names["link"] || !names["sub"] {
		l.Errorf("archive holds %v", names)
	}
	if err := c.ArchiveOut(l.context(), dir+"/none", io.Discard); err == nil {
		l.Error("archive of nothing")
	}
}

// sampleArchive holds a directory, a file of 1,600,000 bytes and a link to it.
func sampleArchive(l *lab) io.Reader {
	l.Helper()
	content := bytes.Repeat([]byte("content "), 200_000)
	in := new(bytes.Buffer)
	w := tar.NewWriter(in)
	for _, h := range []tar.Header{
		{Name: "sub/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "sub/file", Typeflag: tar.TypeReg, Mode: 0o640, Size: int64(len(content))},
		{Name: "sub/link", Typeflag: tar.TypeSymlink, Linkname: "file"},
	} {
		if err := w.WriteHeader(&h); err != nil {
			l.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = w.Write(content)
		}
	}
	if err := w.Close(); err != nil {
		l.Fatal(err)
	}
	return in
}
