package steps

import (
	"errors"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// gone checks that nothing of the run is left.
func (f *fixture) gone() {
	f.t.Helper()
	found, err := f.provider.List(f.t.Context(), map[string]string{sandbox.LabelRun: string(testRun)})
	if err != nil || len(found) != 0 || f.exists() || f.mint.live[testRun] != 0 {
		f.t.Errorf("left: %v, directory %v, tokens %v (%v)", found, f.exists(), f.mint.live, err)
	}
}

// By the sandbox itself, by its id and by its label: the three ways in which a runner,
// a recovery and a prune know a sandbox. Each may be repeated after a crash.
func TestDestroyLeavesNothing(t *testing.T) {
	for name, aim := range map[string]func(box sandbox.Sandbox) (sandbox.ID, sandbox.Sandbox){
		"held":     func(box sandbox.Sandbox) (sandbox.ID, sandbox.Sandbox) { return "", box },
		"by id":    func(box sandbox.Sandbox) (sandbox.ID, sandbox.Sandbox) { return box.ID(), nil },
		"by label": func(sandbox.Sandbox) (sandbox.ID, sandbox.Sandbox) { return "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.mint.live[testRun] = 1
			id, held := aim(f.boxed())
			for range 2 {
				if _, err := f.Destroy(t.Context(), DestroyIn{Spec: f.spec, Domain: "domain", Sandbox: id}, held); err != nil {
					t.Fatal(err)
				}
				f.gone()
			}
		})
	}
}

// A sandbox of another state directory with the same run label (a copied directory) is
// not ours to remove.
func TestDestroyLeavesOtherDomainsAlone(t *testing.T) {
	f := newFixture(t)
	box := f.boxed()
	if _, err := f.Destroy(t.Context(), DestroyIn{Spec: f.spec, Domain: "another"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), f.spec, box.ID()); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// While the sandbox lives it writes into the run's directory, and what is in there is all
// that tells of it: neither may go before it. The token must go all the same.
func TestDestroyKeepsTheDirectoryOfWhatItCannotRemove(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture) sandbox.Sandbox{
		"stuck": func(f *fixture) sandbox.Sandbox { return stuck{f.boxed()} },
		"provider gone": func(f *fixture) sandbox.Sandbox {
			f.boxed()
			f.Provider = absent(errs.New("x", errs.Unavailable, "start it", "no engine"))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.mint.live[testRun] = 1
			_, err := f.Destroy(t.Context(), DestroyIn{Spec: f.spec, Domain: "domain"}, spoil(f))
			if err == nil || !strings.HasPrefix(err.Error(), "remove sandbox") || errs.KindOf(err).Code() == 1 {
				t.Errorf("%v (%s)", err, errs.KindOf(err))
			}
			if !f.exists() || f.mint.live[testRun] != 0 {
				t.Errorf("directory there: %v; tokens %v", f.exists(), f.mint.live)
			}
		})
	}
}

// One thing that cannot be removed does not keep the others, and each is told.
func TestDestroyTellsEverythingThatIsLeft(t *testing.T) {
	f := newFixture(t)
	box := f.boxed()
	f.mint.failing = errors.New("disk full")
	f.spec.Run = "no id"
	_, err := f.Destroy(t.Context(), DestroyIn{Spec: f.spec, Domain: "domain"}, stuck{box})
	for _, want := range []string{"device or resource busy", "disk full", "no id"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %q", err, want)
		}
	}
}

func TestOpenTellsThatASandboxIsGone(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Open(t.Context(), f.spec, "x"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Error(err)
	}
	want := errors.New("no engine")
	f.Provider = absent(want)
	if _, err := f.Open(t.Context(), f.spec, "x"); !errors.Is(err, want) {
		t.Error(err)
	}
}
