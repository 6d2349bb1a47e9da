package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

func TestConnectRefusesAStranger(t *testing.T) {
	key, err := link.NewKeys("r")
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	go func() {
		_, _ = io.WriteString(b, "SSH-2.0-OpenSSH\r\n")
		_ = b.Close()
	}()
	if _, err := Connect(t.Context(), a, key, nil); !errors.Is(err, link.ErrHandshake) || errs.KindOf(err) != errs.Unavailable {
		t.Fatal(err)
	}
}

func TestServicesAreServedToTheSandbox(t *testing.T) {
	f := &fakePID1{}
	_, server := f.connect(t, map[string]link.Handler{"llm": func(_ context.Context, conn net.Conn) error {
		_, err := io.WriteString(conn, "hello")
		return err
	}})
	conn, err := server.Open(t.Context(), "llm", 0)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); string(b) != "hello" {
		t.Fatalf("%q, %v", b, err)
	}
	if _, err := server.Open(t.Context(), "docker", 0); !errors.Is(err, link.ErrRefused) {
		t.Fatalf("unknown service: %v", err)
	}
}

// TestCallsAreAnsweredByID: later calls do not wait for earlier ones.
func TestCallsAreAnsweredByID(t *testing.T) {
	release := make(chan struct{})
	f := &fakePID1{calls: func(_ context.Context, q wire.RPCRequest) (any, error) {
		if q.Method == wire.MethodStart {
			<-release
		}
		return wire.Health{Phase: q.Method}, nil
	}}
	c, _ := f.connect(t, nil)
	var started sync.WaitGroup
	for range 20 {
		started.Go(func() {
			if err := c.Start(t.Context(), wire.Start{}); err != nil {
				t.Error(err)
			}
		})
	}
	if h, err := c.Health(t.Context()); err != nil || h.Phase != wire.MethodHealth {
		t.Fatalf("%+v, %v", h, err)
	}
	close(release)
	started.Wait()
}

func TestCallEndsWithItsContext(t *testing.T) {
	cancelled := make(chan uint64, 1)
	f := &fakePID1{calls: func(ctx context.Context, q wire.RPCRequest) (any, error) {
		if q.Method == wire.NotifyCancel {
			var p wire.RPCCancel
			_ = json.Unmarshal(q.Params, &p)
			cancelled <- p.ID
			return nil, nil
		}
		if q.Method == wire.MethodStart {
			<-ctx.Done()
		}
		return wire.Health{}, nil
	}}
	c, _ := f.connect(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := c.Start(ctx, wire.Start{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if id := <-cancelled; id != 1 {
		t.Fatalf("call %d was cancelled", id)
	}
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatalf("the next call: %v", err)
	}
}

// TestRefusalsAreSafeToPrint: the sandbox's words reach a terminal as one line.
func TestRefusalsAreSafeToPrint(t *testing.T) {
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) {
		return nil, &wire.RPCError{Code: wire.CodeExecution, Message: "no\x1b]0;owned\x07\n" + strings.Repeat("x", 1<<16)}
	}}
	c, _ := f.connect(t, nil)
	err := c.Start(t.Context(), wire.Start{})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\n") || len(err.Error()) > 400 {
		t.Fatalf("%q", err)
	}
	var theirs *wire.RPCError
	if !errors.As(err, &theirs) || theirs.Code != wire.CodeExecution {
		t.Fatalf("%v has no code", err)
	}
}

func TestGarbageOnRPCIsALoss(t *testing.T) {
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) { return nil, nil }}
	c, server := f.connect(t, nil)
	_ = server
	c.rpc.end(errors.New("garbage"))
	if _, err := c.Health(t.Context()); !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
}

func TestEverythingFailsWhenTheLinkIsLost(t *testing.T) {
	started := make(chan struct{})
	f := &fakePID1{calls: func(ctx context.Context, _ wire.RPCRequest) (any, error) {
		close(started)
		<-ctx.Done()
		return nil, nil
	}}
	c, _ := f.connect(t, nil)
	go func() {
		<-started
		_ = f.conn.Close()
	}()
	if _, err := c.Health(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("Health: %v", err)
	}
	<-c.Lost()
	if _, err := c.Exec(t.Context(), wire.Command{}, Stdio{}); !errors.Is(err, ErrLost) {
		t.Errorf("Exec: %v", err)
	}
	if err := c.Follow(t.Context(), 0, nil); !errors.Is(err, ErrLost) {
		t.Errorf("Follow: %v", err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("Ready: %v", err)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestReady(t *testing.T) {
	answers := []wire.Health{{Readiness: "starting", Phase: "acp_initialize"}, {Readiness: "starting"}, {HasSession: true}}
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) {
		h := answers[0]
		answers = answers[1:]
		return h, nil
	}}
	c, _ := f.connect(t, nil)
	if err := c.Ready(t.Context()); err != nil || len(answers) > 0 {
		t.Fatalf("%v, %d answers left", err, len(answers))
	}
}

func TestReadySaysWhatFailed(t *testing.T) {
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) {
		return wire.Health{
			Readiness: "failed", FailureCode: "no_binary", Phase: "session_create", Error: "claude: not found",
			LogTail: append(make([]string, maxTail), "the last\x1b[31m words"),
		}, nil
	}}
	c, _ := f.connect(t, nil)
	err := c.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no_binary: claude: not found (phase session_create)") {
		t.Fatal(err)
	}
	var why *StartError
	if !errors.As(err, &why) || why.Phase != "session_create" || len(why.LogTail) != maxTail || why.LogTail[maxTail-1] != "the last?[31m words" {
		t.Errorf("%+v", why)
	}
}

func TestReadyNamesThePhaseItWaitedIn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("waited long enough")
	asked := 0
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) {
		if asked++; asked == 3 {
			cancel(stop)
		}
		return wire.Health{Readiness: "starting", Phase: "repository_ready"}, nil
	}}
	c, _ := f.connect(t, nil)
	err := c.Ready(ctx)
	if !errors.Is(err, stop) || !strings.Contains(err.Error(), "repository_ready") {
		t.Fatal(err)
	}
}

func TestSendSpeaksThePublicMethods(t *testing.T) {
	for _, c := range []struct {
		in           task.Input
		method, want string
	}{
		{task.Input{Kind: task.InputMessage, ID: "m1", Text: "go", Schema: []byte(`{"type":"object"}`)}, "user_message", `{"content":"go","messageId":"m1","schema":{"type":"object"}}`},
		{task.Input{Kind: task.InputSteer, ID: "m2", Text: "left"}, "user_message", `{"content":"left","messageId":"m2","steer":true}`},
		{task.Input{Kind: task.InputInterrupt}, "cancel", `{}`},
		{task.Input{Kind: task.InputCancel}, "close", `{}`},
		{task.Input{Kind: task.InputPermission, Name: "r1", Value: "allow"}, "permission_response", `{"requestId":"r1","optionId":"allow"}`},
		{task.Input{Kind: task.InputOption, Name: "mode", Value: "plan"}, "set_config_option", `{"configId":"mode","value":"plan"}`},
	} {
		t.Run(string(c.in.Kind), func(t *testing.T) {
			var got wire.RPCRequest
			f := &fakePID1{calls: func(_ context.Context, q wire.RPCRequest) (any, error) {
				got = q
				return struct{}{}, nil
			}}
			client, _ := f.connect(t, nil)
			if err := client.Send(t.Context(), c.in); err != nil {
				t.Fatal(err)
			}
			if got.Method != c.method || string(got.Params) != c.want || got.JSONRPC != "2.0" {
				t.Fatalf("sent %s %s", got.Method, got.Params)
			}
		})
	}
}

func TestSendRefusesAnUnknownKind(t *testing.T) {
	c, _ := (&fakePID1{}).connect(t, nil)
	if err := c.Send(t.Context(), task.Input{Kind: "shout"}); errs.KindOf(err) != errs.Usage {
		t.Fatal(err)
	}
}

// TestSendRefusesWhatIsTooLong: before a byte of it is written, so that the stream
// stays good.
func TestSendRefusesWhatIsTooLong(t *testing.T) {
	f := &fakePID1{calls: func(context.Context, wire.RPCRequest) (any, error) { return wire.Health{}, nil }}
	c, _ := f.connect(t, nil)
	err := c.Send(t.Context(), task.Input{Kind: task.InputMessage, Text: strings.Repeat("x", wire.MaxRPC)})
	if errs.KindOf(err) != errs.Usage {
		t.Fatal(err)
	}
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSendDoesNotWaitForTheTurn: a message is answered at the end of its turn,
// which may take half an hour.
func TestSendDoesNotWaitForTheTurn(t *testing.T) {
	f := &fakePID1{calls: func(ctx context.Context, _ wire.RPCRequest) (any, error) {
		<-ctx.Done()
		return nil, nil
	}}
	c, _ := f.connect(t, nil)
	if err := c.Send(t.Context(), task.Input{Kind: task.InputMessage, Text: "go"}); err != nil {
		t.Fatal(err)
	}
}

// TestDeclinedSteerBecomesAMessage: its words are not lost.
func TestDeclinedSteerBecomesAMessage(t *testing.T) {
	var sent []wire.UserMessage
	f := &fakePID1{calls: func(_ context.Context, q wire.RPCRequest) (any, error) {
		var m wire.UserMessage
		_ = json.Unmarshal(q.Params, &m)
		sent = append(sent, m)
		steered := false
		return wire.TurnResult{Steered: &steered, Reason: "no turn"}, nil
	}}
	c, _ := f.connect(t, nil)
	if err := c.Send(t.Context(), task.Input{Kind: task.InputSteer, ID: "m", Text: "left"}); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2 || !sent[0].Steer || sent[1].Steer || sent[1].Content != "left" || sent[1].MessageID != "m" {
		t.Fatalf("%+v", sent)
	}
}
