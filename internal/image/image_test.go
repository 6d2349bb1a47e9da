package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// fakeEngine keeps images by reference. It obeys the contract of engine.
type fakeEngine struct {
	platform string
	offline  error // of Pull
	refuse   error // of Import and Build

	mu     sync.Mutex
	images map[string]Info
	built  []BuildRequest
	root   string // what was imported
}

func newFake() *fakeEngine {
	return &fakeEngine{platform: "linux/" + runtime.GOARCH, images: map[string]Info{}}
}

func (f *fakeEngine) Platform(context.Context) (string, error) { return f.platform, nil }

func (f *fakeEngine) Inspect(_ context.Context, ref string) (Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, ok := f.images[ref]
	if !ok {
		return Info{}, fmt.Errorf("image %s: %w", ref, ErrMissing)
	}
	return info, nil
}

func (f *fakeEngine) Pull(_ context.Context, ref string, progress func(string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.offline != nil {
		return f.offline
	}
	progress("pulled " + ref)
	f.images[ref] = Info{ID: ref, Platform: f.platform}
	return nil
}

func (f *fakeEngine) Import(_ context.Context, ref string, root io.Reader) error {
	if f.refuse != nil {
		return f.refuse
	}
	data, err := io.ReadAll(root)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.root = string(data)
	f.images[ref] = Info{ID: ref, Platform: f.platform}
	return nil
}

func (f *fakeEngine) Build(_ context.Context, req BuildRequest, progress func(string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return f.refuse
	}
	if _, ok := f.images[req.Args["BASE"]]; !ok {
		return fmt.Errorf("no base %s", req.Args["BASE"])
	}
	progress("built")
	f.built = append(f.built, req)
	f.images[req.Tag] = Info{ID: req.Tag, Platform: f.platform, Labels: req.Labels}
	return nil
}

// lines collects progress.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Template{"": DefaultBase, "default_base": DefaultBase, "VM_Base": VMBase, "NOTEBOOK_BASE": NotebookBase} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := Parse("nope"); errs.KindOf(err) != errs.Usage || errs.HintOf(err) == "" {
		t.Errorf("unknown: %v", err)
	}
}

func TestTags(t *testing.T) {
	want := []string{"insights-sandbox-base", "insights-sandbox-notebook", "insights-sandbox-vm"}
	for i, template := range Templates() {
		if template.Tag() != want[i] {
			t.Errorf("%s has the tag %s", template, template.Tag())
		}
		for _, ref := range []string{want[i], want[i] + ":latest"} {
			if got, ok := ForTag(ref); !ok || got != template {
				t.Errorf("ForTag(%s) = %s, %v", ref, got, ok)
			}
		}
	}
	if _, ok := ForTag("insights-sandbox-base:other"); ok {
		t.Error("another tag is ours")
	}
}

func TestDockerfileListsThePackagesOnce(t *testing.T) {
	got := packages(DefaultBase.Dockerfile())
	for _, want := range []string{"git", "curl", "ca-certificates", "jq", "ripgrep", "python3", "nodejs", "npm", "openssh-client", "build-essential", "procps"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %v", want, got)
		}
	}
	if packages("FROM x") != nil {
		t.Error("packages without a list")
	}
}

func TestStale(t *testing.T) {
	fresh := map[string]string{LabelDockerfile: DefaultBase.Hash()}
	for _, tt := range []struct {
		ref    string
		labels map[string]string
		want   bool
	}{
		{DefaultBase.Tag(), fresh, false},
		{DefaultBase.Tag(), nil, true},
		{DefaultBase.Tag(), map[string]string{LabelDockerfile: "x"}, true},
		{"ubuntu", nil, false},
		{VMBase.Tag(), nil, false}, // not built here, so nothing to compare with
	} {
		if got := Stale(tt.ref, tt.labels); got != tt.want {
			t.Errorf("Stale(%s, %v) = %v", tt.ref, tt.labels, got)
		}
	}
}

func TestEnsureBuildsOnlyWhatIsMissingOrStale(t *testing.T) {
	f := newFake()
	b := &Builder{Engine: f, Args: map[string]string{"http_proxy": "p"}}
	var progress lines
	for range 2 {
		if _, err := b.Ensure(t.Context(), DefaultBase, progress.add); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.built) != 1 || f.built[0].Args["BASE"] != baseRef || f.built[0].Args["http_proxy"] != "p" {
		t.Fatalf("built: %+v", f.built)
	}
	f.images[DefaultBase.Tag()] = Info{Labels: map[string]string{LabelDockerfile: "old"}}
	if info, err := b.Ensure(t.Context(), DefaultBase, progress.add); err != nil || Stale(DefaultBase.Tag(), info.Labels) {
		t.Errorf("after Ensure: %+v, %v", info, err)
	}
	if !strings.Contains(progress.String(), "building "+DefaultBase.Tag()) {
		t.Errorf("progress:\n%s", &progress)
	}
}

func TestBootstrapsWhereNothingCanBePulled(t *testing.T) {
	f := newFake()
	f.offline = errors.New("no such host")
	b := &Builder{Engine: f, Bootstrap: func(_ context.Context, packages []string, root io.Writer, progress func(string)) error {
		progress("bootstrapping")
		_, err := io.WriteString(root, strings.Join(packages, " "))
		return err
	}}
	var progress lines
	for range 2 {
		if _, err := b.Build(t.Context(), DefaultBase, false, progress.add); err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.Join(packages(DefaultBase.Dockerfile()), " "); f.root != want {
		t.Errorf("imported %q, want %q", f.root, want)
	}
	text := progress.String()
	if !strings.Contains(text, "cannot be pulled (no such host)") || strings.Count(text, "bootstrapping") != 1 {
		t.Errorf("progress:\n%s", text)
	}
	for _, req := range f.built {
		if req.Args["BASE"] != bootstrapRef(DefaultBase) {
			t.Errorf("built on %s", req.Args["BASE"])
		}
	}
}

func TestBootstrapFailures(t *testing.T) {
	boom := errors.New("boom")
	fails := func(err error) Bootstrapper {
		return func(context.Context, []string, io.Writer, func(string)) error { return err }
	}
	// writes until the import that reads it is over
	endless := func(ctx context.Context, _ []string, root io.Writer, _ func(string)) error {
		for {
			if _, err := root.Write(make([]byte, 1<<10)); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*fakeEngine, *Builder)
		kind   errs.Kind
		want   string
	}{
		{"no tool", func(_ *fakeEngine, b *Builder) { b.Bootstrap = fails(errNoTool) }, errs.Unavailable, "neither mmdebstrap nor debootstrap"},
		{"tool fails", func(_ *fakeEngine, b *Builder) { b.Bootstrap = fails(boom) }, errs.Internal, "boom"},
		{"import fails", func(f *fakeEngine, b *Builder) { f.refuse, b.Bootstrap = boom, endless }, errs.Internal, "boom"},
		{"another platform", func(f *fakeEngine, _ *Builder) { f.platform = "linux/riscv64" }, errs.Unavailable, "riscv64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.offline = errors.New("offline")
			b := &Builder{Engine: f}
			tt.change(f, b)
			_, err := b.Ensure(t.Context(), DefaultBase, func(string) {})
			if err == nil || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s)", err, errs.KindOf(err))
			}
		})
	}
}

func TestBuildOfAnUnknownTemplate(t *testing.T) {
	_, err := (&Builder{Engine: newFake()}).Build(t.Context(), VMBase, false, func(string) {})
	if errs.KindOf(err) != errs.Usage {
		t.Errorf("got %v", err)
	}
}

// Many that need the image at once build it once.
func TestEnsureAtTheSameTime(t *testing.T) {
	f := newFake()
	lock := filepath.Join(t.TempDir(), "lock")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			b := &Builder{Engine: f, Lock: lock}
			if _, err := b.Ensure(context.Background(), DefaultBase, func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(f.built) != 1 {
		t.Errorf("built %d times", len(f.built))
	}
}

func TestRunReportsTheToolsLastWords(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tool is a shell script")
	}
	tool := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho out\necho first >&2\necho E: no mirror >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var progress lines
	err := run(t.Context(), &out, progress.add, tool)
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "E: no mirror") {
		t.Errorf("got %v", err)
	}
	if out.String() != "out\n" || progress.String() != "first\nE: no mirror" {
		t.Errorf("out %q, progress %q", out.String(), progress.String())
	}
}
