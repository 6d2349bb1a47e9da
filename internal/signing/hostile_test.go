package signing

import (
	"fmt"
	"os"
	"path/filepath"
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
