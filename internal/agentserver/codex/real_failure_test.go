//go:build unix

package codex

import (
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/test/fakemodel"
)

func TestRealModelFails(t *testing.T) {
	r := began(t, wire.Start{})
	for _, status := range []int{400, 401, 403} { // another try is of no use
		before := len(r.model.Requests())
		got := r.do(fakemodel.Step{Status: status, Message: "scripted words"})
		if got.stop != "error" || !strings.Contains(got.err, "scripted words") || got.text() != "" {
			t.Errorf("%d: %q %q", status, got.stop, got.err)
		}
		if n := len(r.model.Requests()) - before; n > 2 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
	// What is said twice, because the connection was cut, is told once.
	got := r.do(fakemodel.Step{Cut: true, Times: 1}, say("a b c d e f g h"))
	r.wantEnd("cut", got, "a b c d e f g h")
	got = r.do(fakemodel.Step{Status: 500, Times: 1}, say("after a while"))
	r.wantEnd("500 once", got, "after a while")
	got = r.do(fakemodel.Step{Status: 429, RetryAfter: "0", Times: 1}, say("after 429"))
	r.wantEnd("429 once", got, "after 429")
}

// What Codex loses with its process it has written down.
func TestRealProcessDies(t *testing.T) {
	r := began(t, wire.Start{})
	r.wantEnd("first", r.do(say("remember me")), "remember me")
	from := r.count()
	id := r.say(fakemodel.Script(bash("echo $$ > pid; sleep 1000"), say("no")), "")
	r.running(from)
	pid := r.pid("pid")
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	r.driver.mu.Lock()
	child := r.driver.conn.pipe.Child
	r.driver.mu.Unlock()
	r.must(child.Signal(syscall.SIGKILL))
	if got := r.end(id); got.stop != "error" || !strings.HasPrefix(got.err, "codex ended by killed") {
		t.Errorf("%q %q", got.stop, got.err)
	}
	r.wantEnd("resumed", r.do(say("here")), "here")
	r.wantEnd("and on", r.do(say("still here")), "still here")
	if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, "remember me") {
		t.Error("the conversation is lost")
	}
}

// Codex takes a prompt of a mebibyte, and says so of a longer one.
func TestRealLongPrompts(t *testing.T) {
	r := began(t, wire.Start{})
	got := r.turn(strings.Repeat("x", 1<<20-1000)+fakemodel.Script(say("read")), "")
	r.wantEnd("1 MB", got, "read")
	got = r.turn(strings.Repeat("x", 2<<20), "")
	if got.stop != "error" || !strings.Contains(got.err, "maximum length") {
		t.Errorf("2 MB: %q %q", got.stop, got.err)
	}
}

// A model or a gateway that is not there is waited for, but not for ever.
func TestRealOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no gateway": {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "Connection failed"},
		"500":        {nil, "high demand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, tt.env)
			r.must(r.start(wire.Start{Model: model}))
			got := r.do(fakemodel.Step{Status: 500})
			if got.stop != "error" || !strings.Contains(got.err, tt.want) {
				t.Errorf("%q %q", got.stop, got.err)
			}
			if n := len(r.model.Requests()); tt.env == nil && n < 6 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
