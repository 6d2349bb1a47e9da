//go:build unix

package agentserver

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// tooLong tells an answer from a hang.
const tooLong = time.Minute

// pipeHost is a host that starts real processes.
func pipeHost(t *testing.T) *Host {
	t.Helper()
	reaper := proc.NewReaper()
	t.Cleanup(reaper.Close)
	h := newHost()
	h.Starter, h.Env, h.Dir = &proc.Plain{Reaper: reaper}, []string{"PATH=" + os.Getenv("PATH")}, t.TempDir()
	return h
}

// talk starts a shell script to talk with.
func talk(t *testing.T, h *Host, script string) *Pipe {
	t.Helper()
	p, err := h.Pipe(t.Context(), []string{"sh", "-c", script}, h.Dir, h.Env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(time.Second) })
	return p
}

// inTime fails a test whose work hangs.
func inTime(t *testing.T, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(tooLong):
		t.Fatal("it hangs")
	}
}

func TestPipeTalks(t *testing.T) {
	p := talk(t, pipeHost(t), `while read line; do echo "you said $line"; done; echo bye`)
	out := bufio.NewReader(p.Out)
	for _, word := range []string{"one", "two"} {
		put(p.In, word+"\n")
		if line, err := out.ReadString('\n'); err != nil || line != "you said "+word+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_ = p.In.Close()
	if rest, err := io.ReadAll(out); err != nil || string(rest) != "bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
	p.Close(tooLong)
	p.Close(tooLong)
	if exit := p.Child.Exit(); exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("%+v", exit)
	}
}

// TestPipeKeepsTheEndOfABigStandardError: the program is never held by it, and its last
// words are there when it has ended.
func TestPipeKeepsTheEndOfABigStandardError(t *testing.T) {
	p := talk(t, pipeHost(t), `i=0; while [ $i -lt 20000 ]; do echo "line $i of what goes wrong"; i=$((i+1)); done >&2; printf 'fatal: \377!' >&2; exit 3`)
	inTime(t, func() { p.Child.Exit() })
	tail := p.Tail()
	if !strings.HasSuffix(tail, "line 19999 of what goes wrong\nfatal: ?!") || len(tail) > tailBytes || !strings.HasPrefix(tail, "line ") {
		t.Errorf("%d bytes: %.40q … %q", len(tail), tail, tail[max(0, len(tail)-40):])
	}
}

func TestTailOfARunningProgram(t *testing.T) {
	p := talk(t, pipeHost(t), `echo starting >&2; echo; exec sleep 1000`)
	_, _ = bufio.NewReader(p.Out).ReadString('\n')
	inTime(t, func() {
		for p.Tail() != "starting" {
			runtime.Gosched()
		}
	})
}

// TestGrandchildDoesNotHoldTheEnd: what the program itself wrote arrives, then an end.
func TestGrandchildDoesNotHoldTheEnd(t *testing.T) {
	p := talk(t, pipeHost(t), `sleep 1000 & echo $!; echo oops >&2; exit 4`)
	inTime(t, func() {
		out, err := io.ReadAll(p.Out)
		if err != nil || !strings.HasSuffix(string(out), "\n") || p.Tail() != "oops" {
			t.Errorf("%q, %v, %q", out, err, p.Tail())
		}
		p.Close(tooLong) // ends the group, the grandchild in it
	})
}

// TestCloseEndsReadersAndWriters: of a program that neither reads, nor writes, nor obeys,
// and whose child left the group.
func TestCloseEndsReadersAndWriters(t *testing.T) {
	p := talk(t, pipeHost(t), `trap '' INT TERM; echo; while :; do sleep 1000; done`)
	out := bufio.NewReader(p.Out)
	_, _ = out.ReadString('\n') // the trap is set
	ended := make(chan error, 2)
	go func() {
		_, err := out.ReadByte()
		ended <- err
	}()
	go func() {
		_, err := p.In.Write(make([]byte, 8<<20))
		ended <- err
	}()
	inTime(t, func() {
		p.Close(time.Millisecond, syscall.SIGINT, syscall.SIGTERM)
		for range 2 {
			if <-ended == nil {
				t.Error("no error")
			}
		}
	})
	if exit := p.Child.Exit(); exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", exit)
	}
}

func TestPipeOfNoProgram(t *testing.T) {
	h := pipeHost(t)
	if _, err := h.Pipe(t.Context(), []string{"no-such-agent"}, h.Dir, h.Env); !errors.Is(err, proc.ErrNotFound) {
		t.Error(err)
	}
}

// TestPipesLeaveNothingOpen: neither descriptors nor goroutines, however it goes.
func TestPipesLeaveNothingOpen(t *testing.T) {
	h := pipeHost(t)
	round := func() {
		p := talk(t, h, "cat")
		p.Close(tooLong)
		p = talk(t, h, "exec sleep 1000")
		p.Close(0, syscall.SIGTERM)
		_, _ = h.Pipe(t.Context(), []string{"no-such-agent"}, h.Dir, h.Env)
	}
	round()
	files, routines := openFiles(t), runtime.NumGoroutine()
	for range 10 {
		round()
	}
	if now := openFiles(t); now > files {
		t.Errorf("%d descriptors became %d", files, now)
	}
	if now := runtime.NumGoroutine(); now > routines+5 {
		t.Errorf("%d goroutines became %d", routines, now)
	}
}

// openFiles counts this process's descriptors, where the system shows them.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestProgramInThePathOrMounted(t *testing.T) {
	h := pipeHost(t)
	bin := filepath.Join(h.Dir, "hal")
	if err := os.WriteFile(bin, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.Env = []string{"PATH=/nowhere:" + h.Dir}
	for _, preferMounted := range []bool{false, true} { // nothing is mounted on this machine
		if got := h.Program("hal", preferMounted); got != bin {
			t.Error(got)
		}
	}
	if got := h.Program("no-such-agent", false); got != "no-such-agent" {
		t.Error(got)
	}
}
