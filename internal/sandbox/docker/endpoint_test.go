package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

// home is a home directory with contexts a (unix) and b (ssh), and the given
// current one.
func home(t *testing.T, current string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(dir, ".docker", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, host := range map[string]string{"a": "unix:///a.sock", "b": "ssh://user@b"} {
		sum := sha256.Sum256([]byte(name))
		meta, _ := json.Marshal(map[string]any{
			"Name": name, "Endpoints": map[string]any{"docker": map[string]any{"Host": host, "SkipTLSVerify": false}},
		})
		write("contexts/meta/"+hex.EncodeToString(sum[:])+"/meta.json", string(meta))
	}
	if current != "" {
		write("config.json", `{"auths":{},"currentContext":"`+current+`"}`)
	}
	return dir
}

// The precedence of the docker command (C8).
func TestResolvePrecedence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       Options
		current string
		want    string
	}{
		{"host before context", Options{Host: "unix:///h.sock", Context: "a"}, "b", "unix:///h.sock (DOCKER_HOST)"},
		{"context before the current one", Options{Context: "a"}, "b", `unix:///a.sock (context "a")`},
		{"the current context", Options{}, "a", `unix:///a.sock (context "a")`},
		{"a context behind ssh", Options{}, "b", `ssh://user@b (context "b")`},
		{"the context default is none", Options{Context: "default"}, "a", "unix:///var/run/docker.sock (default socket)"},
		{"current context default", Options{}, "default", "unix:///var/run/docker.sock (default socket)"},
		{"nothing set", Options{}, "", "unix:///var/run/docker.sock (default socket)"},
		{"host without scheme", Options{Host: "10.0.0.1:2375"}, "", "tcp://10.0.0.1:2375 (DOCKER_HOST)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Home = home(t, tt.current)
			ep, err := resolve(t.Context(), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "unix:///var/run/docker.sock (default socket)" {
				testenv.Need(t, fmt.Sprintf("an engine at the default socket (it has only %s)", ep), ep.source == "default socket")
			}
			if ep.String() != tt.want {
				t.Errorf("got %s, want %s", ep, tt.want)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	for _, tt := range []struct {
		name, current string
		o             Options
		want          string
	}{
		{"missing context", "", Options{Context: "nope"}, `docker context "nope" (DOCKER_CONTEXT) does not exist`},
		{"missing current context", "gone", Options{}, `docker context "gone" (current context of`},
		{"unknown scheme", "", Options{Host: "ftp://x"}, `"ftp://x" from DOCKER_HOST is not the address of an engine`},
		{"empty address", "", Options{Host: "unix://"}, `is not the address of an engine`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Home = home(t, tt.current)
			_, err := resolve(t.Context(), tt.o)
			if errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s; %s), want %q", err, errs.KindOf(err), errs.HintOf(err), tt.want)
			}
		})
	}
}

func TestResolveBrokenConfigFile(t *testing.T) {
	dir := home(t, "")
	path := filepath.Join(dir, ".docker", "config.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(t.Context(), Options{Home: dir})
	if errs.KindOf(err) != errs.Config || !strings.Contains(errs.HintOf(err), path) {
		t.Errorf("got %v (%s)", err, errs.HintOf(err))
	}
}

// Of the well-known sockets the first that answers is taken, not the first file.
func TestFirstSocket(t *testing.T) {
	dir := t.TempDir()
	list := []endpoint{{host: "unix://" + dir + "/1"}, {host: "unix://" + dir + "/2"}, {host: "unix://" + dir + "/3"}}
	if got := firstSocket(context.Background(), list); got.host != list[0].host {
		t.Errorf("without any: %s", got)
	}
	if err := os.WriteFile(dir+"/2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := firstSocket(context.Background(), list); got.host != list[1].host {
		t.Errorf("with a dead one: %s", got)
	}
	ln, err := net.Listen("unix", dir+"/3")
	testenv.Need(t, "sockets in the temporary directory", err == nil)
	defer func() { _ = ln.Close() }()
	if got := firstSocket(context.Background(), list); got.host != list[2].host {
		t.Errorf("with a live one: %s", got)
	}
}

func TestRemote(t *testing.T) {
	for host, want := range map[string]bool{
		"unix:///x": false, "npipe:////./pipe/x": false, "tcp://127.0.0.1:2375": false, "tcp://localhost:1": false,
		"tcp://[::1]:1": false, "tcp://10.0.0.1:2376": true, "ssh://u@h": true, "tcp://engine": true,
	} {
		if got := (endpoint{host: host}).remote(); got != want {
			t.Errorf("remote(%s) = %v", host, got)
		}
	}
}
