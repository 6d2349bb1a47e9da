package signing

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Insights/insightscli/test/fakegithub"
)

// Neither what is in a tree nor the user's own configuration makes git run a program
// on the host: the tree names drivers, the configuration has them, and every tool is
// used.
func TestNothingIsExecuted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	marker := filepath.Join(home, "executed")
	evil := fmt.Sprintf("touch '%s'; cat", marker)
	hook := filepath.Join(home, "hooks", "pre-push")
	config := fmt.Sprintf(`[core]
	fsmonitor = %[1]q
	hooksPath = %[2]q
	attributesFile = %[3]q
[diff "evil"]
	textconv = %[1]q
	command = %[1]q
[merge "evil"]
	driver = %[1]q
[filter "evil"]
	clean = %[1]q
	smudge = %[1]q
	required = true
[credential]
	helper = %[4]q
[push]
	recurseSubmodules = on-demand
`, evil, filepath.Dir(hook), filepath.Join(home, "attributes"), "!"+evil)
	all := start()
	all[".gitattributes"] = file{"100644", "* merge=evil diff=evil filter=evil\n"}
	all[".gitmodules"] = file{"100644", "[submodule \"x\"]\n\tpath = vendor/lib\n\turl = ext::sh -c touch% " + marker + "\n\tupdate = !touch " + marker + "\n"}
	w := newWorld(t, fakegithub.Options{}, all)
	for path, text := range map[string]string{
		filepath.Join(home, ".gitconfig"): config, filepath.Join(home, "attributes"): "* merge=evil diff=evil\n",
		hook: "#!/bin/sh\ntouch '" + marker + "'\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := w.client.o
	o.Environ = append(o.Environ, "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"),
		"GIT_EXTERNAL_DIFF="+hook, "GIT_ASKPASS="+hook, "GIT_SSH_COMMAND="+hook)
	var err error
	if w.client, err = New(o); err != nil {
		t.Fatal(err)
	}
	for _, op := range operations() {
		w.reset()
		if got, err := op.do(w); err != nil || got.SHA == "" {
			t.Errorf("%s: %+v, %v", op.name, got, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program ran")
	}
}

// A server that answers anything is believed nothing: every tool ends with an error, git
// is told no options, and the token goes nowhere else.
func TestAHostileServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(other.Close)
	place := func(name, ref string) string {
		return `{"data":{"repository":{"id":"x","nameWithOwner":"` + name + `","defaultBranchRef":{"name":"main"},"ref":` + ref + `}}}`
	}
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"another host":     {http.StatusTemporaryRedirect, ""},
		"reading instead":  {http.StatusFound, ""},
		"nothing":          {http.StatusOK, ""},
		"nothing, in JSON": {http.StatusOK, "null"},
		"an empty object":  {http.StatusOK, "{}"},
		"a list":           {http.StatusOK, "[]"},
		"numbers":          {http.StatusOK, `{"data":{"repository":{"id":1,"nameWithOwner":2}}}`},
		"a path":           {http.StatusOK, place("acme/../../x", "null")},
		"no name":          {http.StatusOK, place("", "null")},
		"an option":        {http.StatusOK, place("acme/app", `{"target":{"oid":"--output=x","tree":{"oid":"--output=x"},"signature":{"isValid":true}}}`)},
		"no commit":        {http.StatusOK, place("acme/app", `{"target":{}}`)},
		"deeply nested":    {http.StatusOK, strings.Repeat("[", 1<<20)},
		"no JSON":          {http.StatusOK, strings.Repeat("x", 1<<20)},
	} {
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer.status != http.StatusOK {
				w.Header().Set("Location", other.URL+r.URL.Path)
			}
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.body))
		}))
		o := w.client.o
		o.APIURL = hub.URL + "/api/v3"
		var err error
		if w.client, err = New(o); err != nil {
			t.Fatal(err)
		}
		for _, op := range append(operations(), operation{"nothing to merge", 1, func(w *world) (Result, error) {
			return w.client.Merge(t.Context(), Merge{
				Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Expected: w.base, From: w.base, Message: "Merge main",
			})
		}}) {
			if got, err := op.do(w); err == nil {
				t.Errorf("%s, %s: %+v", op.name, name, got)
			}
		}
		hub.Close()
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
}
