package gitproc_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/gitproc"
)

func TestEnviron(t *testing.T) {
	got := gitproc.Environ([]string{"PATH=/bin", "HOME=/h", "GIT_DIR=/x", "GIT_TRACE_CURL=1", "GH_TOKEN=t", "HTTPS_PROXY=p", "LD_PRELOAD=x"})
	for _, want := range []string{"PATH=/bin", "HTTPS_PROXY=p", "GIT_TERMINAL_PROMPT=0"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	for _, not := range []string{"HOME=", "GIT_DIR=", "GIT_TRACE", "GH_TOKEN=", "LD_PRELOAD="} {
		if slices.ContainsFunc(got, func(kv string) bool { return strings.HasPrefix(kv, not) }) {
			t.Errorf("%s is in %q", not, got)
		}
	}
	if got := gitproc.Environ([]string{"HOME=/h"}, "HOME", "X"); !slices.Contains(got, "HOME=/h") || !slices.Contains(got, "PATH=/usr/local/bin:/usr/bin:/bin") {
		t.Errorf("with HOME, without PATH: %q", got)
	}
}

func TestEnvironNamesAuthorities(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    []string
	}{
		{[]string{"PATH=/bin"}, nil},
		{[]string{"SSL_CERT_FILE=/f", "SSL_CERT_DIR=/d:/e"}, []string{"GIT_PROXY_SSL_CAINFO=/f", "GIT_SSL_CAINFO=/f", "GIT_SSL_CAPATH=/d"}},
		{[]string{"SSL_CERT_FILE=/f", "GIT_SSL_CAINFO=/g", "SSL_CERT_DIR=/d", "GIT_SSL_CAPATH=/h"}, []string{"GIT_PROXY_SSL_CAINFO=/f", "GIT_SSL_CAINFO=/g", "GIT_SSL_CAPATH=/h"}},
		{[]string{"SSL_CERT_FILE=", "SSL_CERT_DIR="}, nil},
	} {
		var got []string
		for _, kv := range gitproc.Environ(c.environ) {
			if strings.HasPrefix(kv, "GIT_") && strings.Contains(kv, "SSL_") {
				got = append(got, kv)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.environ, got)
		}
	}
}

// git talks to a server that only a company's own authority vouches for.
func TestGitKnowsTheAuthorities(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that must fail
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "company.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for environ, want := range map[string]string{"SSL_CERT_FILE=" + file: "not found", "X=": "certificate"} {
		for proxy, address := range map[string]string{"": server.URL, server.URL: "https://good.test"} {
			cmd := exec.CommandContext(t.Context(), "git", "ls-remote", address+"/o/r.git")
			cmd.Env = gitproc.Environ([]string{"PATH=" + os.Getenv("PATH"), "HTTPS_PROXY=" + proxy, environ})
			out, err := cmd.CombinedOutput()
			if refused := proxy != "" && strings.Contains(string(out), "404"); err == nil || !strings.Contains(string(out), want) && !(refused && want == "not found") {
				t.Errorf("%s, proxy %q: %v: %s", environ, proxy, err, out)
			}
		}
	}
}

// What a repository's own configuration would have git run does not run.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	marker, evil := filepath.Join(dir, "executed"), filepath.Join(dir, "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch '"+marker+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, gitproc.Environ(os.Environ())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "-q", repo)
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.askPass", "core.alternateRefsCommand", "gpg.program"} {
		git("-C", repo, "config", key, evil)
	}
	git("-C", repo, "config", "commit.gpgSign", "true")
	for _, hook := range []string{"pre-commit", "post-commit", "reference-transaction", "post-index-change"} {
		_ = os.Mkdir(filepath.Join(repo, ".git", "hooks"), 0o755) // there may be one
		if err := os.Symlink(evil, filepath.Join(repo, ".git", "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	settings := gitproc.Settings("user.name=u", "user.email=u@example.com")
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-qm", "x"}, {"status"}, {"log"}} {
		git(append(append(slices.Clone(settings), "-C", repo), args...)...)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Error("a program ran")
	}
}

func TestTail(t *testing.T) {
	touched := 0
	tail := gitproc.Tail{Limit: 5, Touch: func() { touched++ }}
	for _, text := range []string{"ab", "cdef", "", strings.Repeat("x", 10) + "y"} {
		if n, err := tail.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if tail.String() != "xxxxy" || touched != 4 {
		t.Errorf("%q after %d writes", tail.String(), touched)
	}
}
