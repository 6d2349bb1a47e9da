package docker

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// runtimes are what a fake engine says about its own.
func runtimes(answers map[string]any) {
	info := answers["GET /info"].(map[string]any)
	info["Runtimes"] = map[string]any{
		"runc": map[string]any{"path": "runc"}, "io.containerd.runc.v2": map[string]any{},
		"runsc": map[string]any{"path": "/opt/runsc", "runtimeArgs": []string{"--platform=systrap"}},
		"crun":  map[string]any{"path": "/opt/runsc"}, "mine": map[string]any{"path": "/usr/sbin/runc"},
	}
	info["DefaultRuntime"] = "runc"
}

func TestRuntimeIsTheContainers(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	runtimes(answers)
	var asked []string
	answers["POST /containers/create"] = func(r *http.Request) any {
		var req struct {
			HostConfig struct {
				Runtime string
				Mounts  []struct{ Target string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		asked = append(asked, req.HostConfig.Runtime+map[bool]string{true: " socket", false: " exec"}[len(req.HostConfig.Mounts) > 0])
		return map[string]any{"Id": "made"}
	}
	answers["PUT /containers/made/archive"] = map[string]any{}
	answers["POST /containers/made/start"] = map[string]any{}
	p := (&fakeEngine{answers: answers}).startHere(t)
	for _, name := range []string{"", "runc", "io.containerd.runc.v2", "mine", "runsc", "crun"} {
		r := newRequest(t, "img", networkLink)
		r.Runtime = name
		if _, err := p.Create(t.Context(), r.Spec); err != nil {
			t.Fatal(err)
		}
	}
	// A kernel of its own shares no socket with the host, whatever it is called.
	want := " socket, runc socket, io.containerd.runc.v2 socket, mine socket, runsc exec, crun exec"
	if got := strings.Join(asked, ", "); got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestRuntimeThatTheEngineLacks(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	runtimes(answers)
	p := (&fakeEngine{answers: answers}).start(t)
	r := newRequest(t, "img", networkLink)
	r.Runtime = "kata"
	_, err := p.Create(t.Context(), r.Spec)
	if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), `no runtime "kata"; it has crun, io.containerd.runc.v2, mine, runc, runsc`) {
		t.Errorf("got %v", err)
	}
	if _, other := p.Runtime(t.Context(), "kata"); other == nil {
		t.Error("a runtime that is not there is described")
	}
}

func TestRuntimeKeys(t *testing.T) {
	keyOf := func(name string, change func(info map[string]any)) Runtime {
		answers := answersFor("img", map[string]any{})
		runtimes(answers)
		change(answers["GET /info"].(map[string]any))
		r, err := (&fakeEngine{answers: answers}).start(t).Runtime(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	same := func(map[string]any) {}
	first := keyOf("runsc", same)
	if again := keyOf("runsc", same); again != first || !first.Foreign || first.Name != "runsc" {
		t.Errorf("%+v, then %+v", first, again)
	}
	for what, other := range map[string]Runtime{
		"another runtime": keyOf("crun", same),
		"another engine":  keyOf("runsc", func(i map[string]any) { i["ID"] = "other" }),
		"another version": keyOf("runsc", func(i map[string]any) { i["ServerVersion"] = "99" }),
	} {
		if other.Key == first.Key {
			t.Errorf("%s has the key of the first", what)
		}
	}
	if r := keyOf("", same); r.Name != "runc" || r.Foreign {
		t.Errorf("the engine's own choice: %+v", r)
	}
	if r := keyOf("", func(i map[string]any) { i["DefaultRuntime"] = "runsc" }); r.Name != "runsc" || !r.Foreign {
		t.Errorf("the engine's own choice: %+v", r)
	}
}
