package sandboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

var linkTests = []test{
	{name: "newest link replaces the older", run: newestLink},
	{name: "stranger does not replace the host", run: stranger},
	{name: "long directory", run: longDirectory, deep: true},
	{name: "link ends with its context", run: linkCancelled},
	{name: "nothing is lost over two links", run: twoLinks},
	{name: "socket replaced by a symlink", run: symlinkedSocket},
	{name: "raw stream", run: rawStream},
}

func newestLink(l *lab) {
	box, first, r := l.start()
	second := l.connect(box, r.key)
	<-first.Lost()
	l.want(second, "echo second", "second")
}

// stranger: a peer without the run's key gets nowhere, whatever it sends.
func stranger(l *lab) {
	box, host, r := l.start()
	other, err := link.NewKeys(r.key.Run)
	if err != nil {
		l.Fatal(err)
	}
	for range 3 {
		conn, err := box.Link(l.context())
		if err != nil {
			l.Fatal(err)
		}
		if _, err := agent.Connect(l.context(), conn, other, nil); !errors.Is(err, link.ErrHandshake) {
			l.Errorf("a stranger was let in: %v", err)
		}
	}
	conn, err := box.Link(l.context())
	if err != nil {
		l.Fatal(err)
	}
	said := make(chan struct{})
	go func() { // beside the reading: a pipe has no buffer
		defer close(said)
		_, _ = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	}()
	_, _ = io.Copy(io.Discard, conn) // PID 1's hello, then the end
	_ = conn.Close()
	<-said
	l.want(host, "echo still", "still")
}

func longDirectory(l *lab) {
	box, c, r := l.start()
	l.want(c, "echo deep", "deep")
	l.want(l.connect(box, r.key), "echo again", "again")
}

func linkCancelled(l *lab) {
	box, c, _ := l.start()
	ctx, cancel := context.WithCancel(l.context())
	cancel()
	if conn, err := box.Link(ctx); err == nil {
		_ = conn.Close() // it was there at once
	}
	l.want(c, "echo alive", "alive")
}

// twoLinks: the host goes away in the middle and another one comes. It asks from
// what it has, and gets every line once.
func twoLinks(l *lab) {
	box, first, r := l.start()
	const lines = 20000
	if err := first.Start(l.context(), wire.Start{Agent: "exec", Dir: r.boot.Dir, Command: []string{
		"/bin/sh", "-c",
		"i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done",
	}}); err != nil {
		l.Fatal(err)
	}
	got := &follower{}
	stop := errors.New("enough")
	err := first.Follow(l.context(), 0, func(f wire.Frame) error {
		got.take(f)
		if f.Type == wire.FrameStdout {
			first.Ack(f.Seq)
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		l.Fatalf("first link: %v", err)
	}
	_ = first.Close()
	second := l.connect(box, r.key)
	if err := second.Follow(l.context(), got.last, func(f wire.Frame) error { got.take(f); return nil }); err != nil {
		l.Fatalf("second link: %v", err)
	}
	got.check(l, lines)
}

// symlinkedSocket: an agent puts a link to another listening socket in the place of
// PID 1's. The host must not talk to that.
func symlinkedSocket(l *lab) {
	if !l.SocketShared || !l.Isolated {
		return // there is no socket that both sides see
	}
	elsewhere := filepath.Join(l.T.TempDir(), "docker.sock")
	var lc net.ListenConfig
	ln, err := lc.Listen(l.Context(), "unix", elsewhere)
	if err != nil {
		l.Fatal(err)
	}
	var followed atomic.Bool
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			followed.Store(true)
			_ = conn.Close()
		}
	})
	box, c, r := l.start()
	out, code := l.shell(c, "rm -f /run/insights/agent.sock && ln -s "+elsewhere+" /run/insights/agent.sock")
	if code == 0 { // else the agent cannot even do that, which is as good
		ctx, cancel := context.WithTimeout(l.context(), hang/20)
		conn, err := box.Link(ctx)
		cancel()
		if err == nil {
			err = link.HostHandshake(l.context(), conn, r.key)
			_ = conn.Close()
		}
		if err == nil || followed.Load() {
			l.Errorf("the host followed the link (%v)", err)
		}
	} else {
		l.Logf("the agent cannot replace the socket: %s", out)
	}
	_ = ln.Close()
	accepting.Wait()
	l.destroy(box)
	if _, err := os.Stat(filepath.Dir(elsewhere)); err != nil {
		l.Errorf("destroy went through the link: %v", err)
	}
}

// rawStream: those who speak a service's protocol themselves (an owner's proxy) get
// the bare stream, and PID 1 serves only what it knows.
func rawStream(l *lab) {
	_, c, _ := l.start()
	raw, err := c.Open(l.context(), wire.ServiceRPC)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := io.WriteString(raw, `{"jsonrpc":"2.0","id":7,"method":"health"}`+"\n"); err != nil {
		l.Fatal(err)
	}
	var answer wire.RPCResponse
	if err := json.NewDecoder(raw).Decode(&answer); err != nil || answer.ID == nil || *answer.ID != 7 {
		l.Errorf("raw stream: %+v, %v", answer, err)
	}
	if _, err := c.Open(l.context(), "docker"); !errors.Is(err, link.ErrRefused) {
		l.Errorf("unknown service: %v", err)
	}
}
