package probe

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// ask has a probe answer lines.
func ask(t *testing.T, lines ...string) []wire.ProbeAnswer {
	t.Helper()
	var out bytes.Buffer
	if err := Run(t.Context(), Config{In: strings.NewReader(strings.Join(lines, "\n") + "\n"), Out: &out}); err != nil {
		t.Fatal(err)
	}
	var answers []wire.ProbeAnswer
	for d := json.NewDecoder(&out); ; {
		var a wire.ProbeAnswer
		if err := d.Decode(&a); err == io.EOF {
			return answers
		} else if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
}

func TestNonsenseIsAnswered(t *testing.T) {
	for _, a := range ask(t, "nonsense", `{"op":"other"}`, `{"op":"dial","args":7}`, `{"op":"occupy","args":{"name":"../x","port":1}}`, `{"op":"cpu","args":0}`) {
		if a.Error == "" {
			t.Errorf("%s", a.Result)
		}
	}
}

// A marker is found where it was left, and gone with the probe.
func TestMarkersAreFoundAndTakenBack(t *testing.T) {
	const marker = `{"name":"probe-test-41872","port":41872}`
	found := ask(t, `{"op":"reach","args":`+marker+`}`, `{"op":"occupy","args":`+marker+`}`, `{"op":"reach","args":`+marker+`}`)
	if string(found[0].Result) != "[]" || found[1].Error != "" {
		t.Fatalf("%s, %+v", found[0].Result, found[1])
	}
	for _, where := range []string{"/tmp/probe-", "/dev/shm/probe-", "@probe-", "127.0.0.1:41872", "shared memory"} {
		if !strings.Contains(string(found[2].Result), where) {
			t.Errorf("%s is not in %s", where, found[2].Result)
		}
	}
	if after := ask(t, `{"op":"reach","args":`+marker+`}`); string(after[0].Result) != "[]" {
		t.Errorf("left: %s", after[0].Result)
	}
}

func TestDialCountsBytes(t *testing.T) {
	p := &prober{}
	defer p.undo()
	if _, err := p.occupy(t.Context(), wire.Marker{Name: "abc", Port: 41873}); err != nil {
		t.Fatal(err)
	}
	got, err := dial(t.Context(), wire.Dial{Address: "127.0.0.1:41873"})
	if d := got.(wire.Dialled); err != nil || !d.Connected || d.Bytes != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	got, _ = dial(t.Context(), wire.Dial{Address: "127.0.0.1:1"})
	if d := got.(wire.Dialled); d.Connected || d.Error == "" {
		t.Errorf("%+v", d)
	}
}

func TestProcessesEnd(t *testing.T) {
	got, err := processes(t.Context(), 5)
	if tried := got.(wire.Tried); err != nil || tried.Done != 5 {
		t.Errorf("%+v, %v", tried, err)
	}
}

func TestBusyThreadsAreMeasured(t *testing.T) {
	got, err := cpuTime(t.Context(), 1)
	if c := got.(wire.CPUTime); err != nil || c.Used <= 0 || c.Wall <= 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
