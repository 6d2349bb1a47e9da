package steps

import (
	"bytes"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
)

func (f *fixture) connect() *agent.Client {
	f.t.Helper()
	c, err := f.Connect(f.t.Context(), testRun, f.boxed(), nil)
	f.must(err)
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

// A command was recorded with names in the place of secrets: the agent must get the
// values, and a session that was begun is not begun again.
func TestAgentGetsTheValuesThatWereFolded(t *testing.T) {
	f := newFixture(t)
	f.must(f.vault.Put(t.Context(), testRun, "API", secret.New("canary-value")))
	f.spec.Secrets = []string{"API"}
	f.spec.Agent.Command = []string{"printf", "%s", secret.Fold("x=canary-value", f.vault[testRun])}
	c := f.connect()
	if begun, err := f.SessionBegun(t.Context(), c); err != nil || begun {
		t.Fatalf("begun before the start: %v, %v", begun, err)
	}
	_, err := f.StartAgent(t.Context(), c, AgentIn{Spec: f.spec})
	f.must(err)
	if begun, err := f.SessionBegun(t.Context(), c); err != nil || !begun {
		t.Errorf("not begun after the start: %v, %v", begun, err)
	}
	var out bytes.Buffer
	f.must(c.Follow(t.Context(), 0, func(fr wire.Frame) error {
		if fr.Type == wire.FrameStdout {
			out.Write(fr.Data)
		}
		c.Ack(fr.Seq)
		return nil
	}))
	if out.String() != "x=canary-value" {
		t.Errorf("it printed %q", &out)
	}
}

// A text that names what is the host's own, a model's key say, does not get its value.
func TestTextsNameOnlyTheUsersSecrets(t *testing.T) {
	values := map[string]secret.String{"API": secret.New("mine"), "insightscli.llm.x": secret.New("canary")}
	text := secret.Unfold("\x00API\x00 \x00insightscli.llm.x\x00", shareable(values, []string{"API"}))
	if text != "mine [hidden]" {
		t.Errorf("unfolded to %q", text)
	}
}

func TestAgentThatCannotStartIsNamed(t *testing.T) {
	f := newFixture(t)
	f.spec.Agent.Name = "nobody"
	_, err := f.StartAgent(t.Context(), f.connect(), AgentIn{Spec: f.spec})
	if err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte("start agent nobody: ")) {
		t.Error(err)
	}
}

// A host with another key is not this run's host: PID 1 must not talk to it.
func TestConnectNeedsTheKeyOfTheRun(t *testing.T) {
	f := newFixture(t)
	box := f.boxed()
	other, err := NewLinkKey(testRun)
	f.must(err)
	f.must(f.vault.Put(t.Context(), testRun, SecretLinkKey, other))
	if c, err := f.Connect(t.Context(), testRun, box, nil); err == nil {
		_ = c.Close()
		t.Error("PID 1 answers another key")
	}
	delete(f.vault[testRun], SecretLinkKey)
	if _, err := f.Connect(t.Context(), testRun, box, nil); err == nil {
		t.Error("no key, no error")
	}
}
