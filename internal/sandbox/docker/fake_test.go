package docker

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
)

// fakeEngine is an engine at the wire: it answers what a test gives it and keeps
// the paths that it was asked for.
type fakeEngine struct {
	api     string // version that it says it speaks
	answers map[string]any

	mu    sync.Mutex
	asked []string
}

var versionPrefix = regexp.MustCompile(`^/v[0-9.]+`)

// ServeHTTP answers by the path without its version. An unknown path is not found.
func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	w.Header().Set("Api-Version", f.api)
	w.Header().Set("Ostype", "linux")
	path := versionPrefix.ReplaceAllString(r.URL.Path, "")
	if path == "/_ping" {
		return
	}
	answer, ok := f.answers[r.Method+" "+path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]string{"message": "no such thing: " + path}
	}
	w.Header().Set("Content-Type", "application/json")
	if answerTo, dynamic := answer.(func(*http.Request) any); dynamic {
		answer = answerTo(r)
	}
	if err, bad := answer.(fakeError); bad {
		w.WriteHeader(err.status)
		answer = map[string]string{"message": err.message}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

type fakeError struct {
	status  int
	message string
}

func (f *fakeEngine) start(t *testing.T) *Provider {
	t.Helper()
	if f.api == "" {
		f.api = "1.41"
	}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	p := New(Options{Host: "tcp://" + strings.TrimPrefix(s.URL, "http://")})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// startHere is start for an engine that looks as if it shared this machine.
func (f *fakeEngine) startHere(t *testing.T) *Provider {
	t.Helper()
	p := f.start(t)
	if _, err := p.engine.facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-p.engine.asking
	p.engine.known.local = true
	p.engine.asking <- struct{}{}
	return p
}

func (f *fakeEngine) paths() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "\n")
}

// An engine of 2020 is spoken to in its own version (C9).
func TestNegotiatesTheVersion(t *testing.T) {
	for _, api := range []string{"1.41", "1.24", "1.99"} {
		t.Run(api, func(t *testing.T) {
			f := &fakeEngine{api: api, answers: map[string]any{"GET /containers/json": []any{}}}
			if _, err := f.start(t).List(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			want := "/v" + api + "/containers/json"
			if api == "1.99" { // newer than this client: the client's own
				want = "/v1.51/containers/json"
			}
			if !strings.Contains(f.paths(), want) {
				t.Errorf("asked:\n%s\nwant %s", f.paths(), want)
			}
		})
	}
}

// refusal checks an error that the user sees: where, why, and what helps.
func refusal(t *testing.T, err error, parts ...string) {
	t.Helper()
	if errs.KindOf(err) != errs.Unavailable || errs.HintOf(err) == "" {
		t.Fatalf("got %v (kind %s, hint %q)", err, errs.KindOf(err), errs.HintOf(err))
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q has more than one line", err)
	}
}

func TestDeadEngine(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close()
	for _, host := range []string{"tcp://" + address, "unix://" + filepath.Join(t.TempDir(), "none.sock")} {
		p := New(Options{Host: host})
		refusal(t, p.Ping(t.Context()), host, "DOCKER_HOST", "not reachable")
		_, err := p.List(t.Context(), nil)
		refusal(t, err, host)
	}
}

// An engine that takes the connection and says nothing is given up on (C9).
func TestHangingEngine(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	host := "tcp://" + ln.Addr().String()
	start := time.Now()
	refusal(t, New(Options{Host: host}).Ping(t.Context()), host, "did not answer within 1s")
	p := New(Options{Host: host, ConnectTimeout: 50 * time.Millisecond})
	_, err = p.Create(t.Context(), newRequest(t, "any", networkFull).Spec)
	refusal(t, err, host, "did not answer")
	if waited := time.Since(start); waited > 10*time.Second {
		t.Errorf("waited %s", waited)
	}
}

func TestContextIsNamedInErrors(t *testing.T) {
	dir := home(t, "a")
	err := New(Options{Home: dir}).Ping(t.Context())
	refusal(t, err, `context "a"`, "unix:///a.sock")
}

// answersFor is an engine of this platform with one image.
func answersFor(ref string, inspect map[string]any) map[string]any {
	return map[string]any{
		"GET /info":                    map[string]any{"Architecture": "x86_64", "NCPU": 2, "MemTotal": 4 << 30, "Name": "elsewhere"},
		"GET /images/" + ref + "/json": inspect,
		"GET /containers/json":         []any{},
		"GET /volumes":                 map[string]any{"Volumes": []any{}},
		"GET /networks":                []any{},
	}
}

// An image that cannot work is refused before anything is made, with the reason
// and the remedy (C11).
func TestImageIsCheckedFirst(t *testing.T) {
	base := image.DefaultBase.Tag()
	for _, tt := range []struct {
		name, ref string
		inspect   map[string]any
		kind      errs.Kind
		is        error
		want      []string
	}{
		{"missing", "absent", nil, errs.NotFound, image.ErrMissing, []string{"absent", "docker pull absent"}},
		{"ours is missing", "unbuilt", nil, errs.NotFound, image.ErrMissing, []string{"unbuilt"}},
		{
			"another platform", "foreign",
			map[string]any{"Os": "linux", "Architecture": "arm64"},
			errs.Config, nil,
			[]string{"foreign", "linux/arm64", "linux/amd64"},
		},
		{
			"stale", base,
			map[string]any{"Os": "linux", "Architecture": "amd64", "Config": map[string]any{
				"Labels": map[string]string{image.LabelDockerfile: "old"},
			}},
			errs.Conflict, image.ErrStale,
			[]string{base, "insightscli image build default_base"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := answersFor(tt.ref, tt.inspect)
			if tt.inspect == nil {
				delete(answers, "GET /images/"+tt.ref+"/json")
			}
			f := &fakeEngine{answers: answers}
			_, err := f.start(t).Create(t.Context(), newRequest(t, tt.ref, networkLink).Spec)
			if errs.KindOf(err) != tt.kind {
				t.Fatalf("got %v (kind %s)", err, errs.KindOf(err))
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error()+" / "+errs.HintOf(err), part) {
					t.Errorf("%q (%q) does not mention %q", err, errs.HintOf(err), part)
				}
			}
			if strings.Contains(f.paths(), "POST") {
				t.Errorf("something was made:\n%s", f.paths())
			}
			if _, built := image.ForTag(tt.ref); built {
				return // that one is built when it is needed
			}
			if err := f.start(t).Ready(t.Context(), tt.ref); errs.KindOf(err) != tt.kind {
				t.Errorf("Ready: %v", err)
			}
		})
	}
}

func TestRefusedMounts(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name     string
		mount    sandbox.Mount
		security []string
		want     string
	}{
		{"overlay on another machine", sandbox.Mount{Kind: sandbox.MountOverlay, Source: dir, Target: "/x", Upper: dir, Work: dir}, nil, "cannot overlay"},
		{"read-write with remapped users", sandbox.Mount{Kind: sandbox.MountBind, Source: dir, Target: "/x"}, []string{"name=userns"}, "remaps users"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
			answers["GET /info"].(map[string]any)["SecurityOptions"] = tt.security
			r := newRequest(t, "img", networkLink)
			r.Mounts = []sandbox.Mount{tt.mount}
			_, err := (&fakeEngine{answers: answers}).start(t).Create(t.Context(), r.Spec)
			if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s)", err, errs.KindOf(err))
			}
		})
	}
}

// On a rootless engine the agent is the container's root: the invoking user.
func TestRootlessAgent(t *testing.T) {
	r := newRequest(t, "img", networkLink)
	pl := &plan{spec: r.Spec, boot: r.Boot, facts: facts{rootless: true}}
	if err := pl.setAgent(); err != nil {
		t.Fatal(err)
	}
	var boot struct{ UID, GID int }
	if err := json.Unmarshal(pl.boot, &boot); err != nil || boot.UID != 0 || boot.GID != 0 || pl.agent != "0:0" {
		t.Errorf("boot %+v, agent %s, %v", boot, pl.agent, err)
	}
}

func TestForeignNetworkIsRefused(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	answers["GET /networks"] = []any{map[string]any{"Name": bridgeName, "Id": "1"}}
	_, err := (&fakeEngine{answers: answers}).start(t).Create(t.Context(), newRequest(t, "img", networkFull).Spec)
	if errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "another program") {
		t.Errorf("got %v", err)
	}
}

// Where the engine's own pools are used up, subnets are tried one by one.
func TestPoolsUsedUp(t *testing.T) {
	var subnets []string
	answers := answersFor("img", nil)
	answers["POST /networks/create"] = func(r *http.Request) any {
		var req struct {
			IPAM struct{ Config []struct{ Subnet string } }
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		switch {
		case len(req.IPAM.Config) == 0:
			return fakeError{http.StatusInternalServerError, "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"}
		case len(subnets) == 0:
			subnets = append(subnets, req.IPAM.Config[0].Subnet)
			return fakeError{http.StatusForbidden, "Pool overlaps with other one on this address space"}
		}
		subnets = append(subnets, req.IPAM.Config[0].Subnet)
		answers["GET /networks"] = []any{map[string]any{
			"Name": bridgeName, "Id": "made", "Labels": map[string]string{labelNetwork: bridgeName}, "Options": map[string]string{optionICC: "false"},
		}}
		return map[string]any{"Id": "made"}
	}
	p := (&fakeEngine{answers: answers}).start(t)
	id, err := p.engine.bridge(t.Context())
	if err != nil || id != "made" || len(subnets) != 2 || subnets[0] == subnets[1] {
		t.Errorf("bridge: %q, %v; subnets %v", id, err, subnets)
	}
}

// A name that another program's container has is not taken from it.
func TestForeignContainerIsLeftAlone(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	answers["POST /containers/create"] = fakeError{http.StatusConflict, "Conflict. The container name is already in use"}
	f := &fakeEngine{answers: answers}
	_, err := f.start(t).Create(t.Context(), newRequest(t, "img", networkLink).Spec)
	if errs.KindOf(err) != errs.Conflict || !strings.Contains(errs.HintOf(err), "docker rm") {
		t.Errorf("got %v (%s)", err, errs.HintOf(err))
	}
	if strings.Contains(f.paths(), "DELETE") {
		t.Errorf("something was removed:\n%s", f.paths())
	}
}

// An engine that looks local and does not see this machine's files gets copies.
func TestEngineWithAnotherFileSystem(t *testing.T) {
	var mounts []int
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	answers["POST /containers/create"] = func(r *http.Request) any {
		var req struct{ HostConfig struct{ Mounts []any } }
		_ = json.NewDecoder(r.Body).Decode(&req)
		mounts = append(mounts, len(req.HostConfig.Mounts))
		if len(mounts) == 1 {
			return fakeError{http.StatusBadRequest, "invalid mount config for type \"bind\": bind source path does not exist: /x"}
		}
		return map[string]any{"Id": "made"}
	}
	answers["PUT /containers/made/archive"] = func(r *http.Request) any {
		_, _ = io.Copy(io.Discard, r.Body)
		return nil
	}
	answers["POST /containers/made/start"] = map[string]any{}
	box, err := (&fakeEngine{answers: answers}).startHere(t).Create(t.Context(), newRequest(t, "img", networkLink).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := box.(*Sandbox).Transport(); got != TransportExec || mounts[0] != 2 || mounts[1] != 0 {
		t.Errorf("transport %s, mounts %v", got, mounts)
	}
}

// podman takes the profile as a path, calls a taken name an internal error, and has
// no network that keeps its containers apart.
func TestPodman(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	answers["GET /info"].(map[string]any)["Plugins"] = map[string]any{"Log": []string{"k8s-file"}}
	var profiles []string
	answers["POST /containers/create"] = func(r *http.Request) any {
		var req struct {
			HostConfig struct{ SecurityOpt []string }
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		profiles = append(profiles, strings.Join(req.HostConfig.SecurityOpt, " "))
		if len(profiles) == 1 {
			return fakeError{http.StatusInternalServerError, "that name is already in use"}
		}
		return map[string]any{"Id": "made"}
	}
	answers["POST /containers/made/start"] = map[string]any{}
	p := (&fakeEngine{answers: answers}).startHere(t)
	r := newRequest(t, "img", networkLink)
	if _, err := p.Create(t.Context(), r.Spec); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.Dir, seccompName)
	if want := "no-new-privileges seccomp=" + path; len(profiles) != 2 || profiles[1] != want {
		t.Errorf("security options %q, want %q", profiles, want)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != seccompProfile {
		t.Errorf("the profile's file: %v", err)
	}
	_, err := p.Create(t.Context(), newRequest(t, "img", networkFull).Spec)
	if errs.KindOf(err) != errs.Config || !strings.Contains(errs.HintOf(err), "--network=link") {
		t.Errorf("full on podman: %v", err)
	}
}

// An engine's words are shown on one line of bearable length.
func TestLongRefusal(t *testing.T) {
	answers := answersFor("img", map[string]any{"Os": "linux", "Architecture": "amd64"})
	answers["POST /containers/create"] = fakeError{http.StatusInternalServerError, "cannot\n" + strings.Repeat("x", 100_000) + "\nend"}
	_, err := (&fakeEngine{answers: answers}).start(t).Create(t.Context(), newRequest(t, "img", networkLink).Spec)
	text := err.Error()
	if len(text) > 1000 || strings.Contains(text, "\n") || !strings.Contains(text, "cannot x") || !strings.HasSuffix(text, "end") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestRefusedSpecs(t *testing.T) {
	p := New(Options{Host: "unix:///nowhere"})
	for name, change := range map[string]func(*sandbox.Spec){
		"network level":   func(s *sandbox.Spec) { s.Network = "nowhere" },
		"no agent server": func(s *sandbox.Spec) { s.AgentServer = filepath.Join(os.TempDir(), "no-such-server") },
		"no run":          func(s *sandbox.Spec) { s.Labels = nil },
		"target":          func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "/", Target: "/a/../b"}} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t, "img", networkLink)
			change(&r.Spec)
			if _, err := p.Create(t.Context(), r.Spec); err == nil || strings.Contains(err.Error(), "reachable") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Only the level full has a network; PID 1 captures what is dialled at every other.
func TestCaptureByLevel(t *testing.T) {
	p := New(Options{})
	for level, captures := range map[sandbox.Network]bool{networkFull: false, networkTrusted: true, networkCustom: true, networkLink: true} {
		spec := newRequest(t, "img", level).Spec
		if err := check(spec); err != nil || p.Captures(level) != captures {
			t.Errorf("%s: %v, captures: %v", level, err, p.Captures(level))
		}
		mode := (&plan{spec: spec, network: "none"}).hostConfig().ExtraHosts
		if (len(mode) > 0) == captures {
			t.Errorf("%s: the host is known as %q", level, mode)
		}
	}
}

func TestHostname(t *testing.T) {
	for in, want := range map[string]string{
		"Fix the flaky test!": "fix-the-flaky-test", "": "", "---": "", strings.Repeat("a", 80): strings.Repeat("a", 63),
	} {
		if got := hostname(in); got != want {
			t.Errorf("hostname(%q) = %q", in, got)
		}
	}
}
