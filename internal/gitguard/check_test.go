//go:build unix

package gitguard

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// repository makes one whose git is asked, and goes there. Nothing of the machine's
// configuration is seen.
func repository(t *testing.T) *realGit {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Chdir(home)
	env := environment{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	g := &realGit{path: path, environ: env}
	for _, args := range [][]string{
		{"init", "-q", "."},
		{"init", "-q", "other"},
		{"-C", "other", "config", "alias.here", "commit"},
		{"config", "alias.ci", "commit -v"},
		{"config", "alias.CamelCase", "push"},
		{"config", "alias.st", "status"},
		{"config", "alias.both", "ci --amend"},
		{"config", "alias.a", "b"},
		{"config", "alias.b", "a"},
		{"config", "alias.endless", "!git endless $@ $@ $@ $@; git endless $@ $@ $@"},
		{"config", "alias.shellst", "!git status"},
		{"config", "alias.up", "!git push"},
		{"config", "alias.git", "!git"},
		{"config", "alias.sub", "!f() { git push; }; f"},
		{"config", "alias.all", "!f() { git add -A && git commit -m \"$1\"; }; f"},
		{"config", "--file", "extra", "alias.extra", "commit"},
		{"config", "include.path", "../extra"},
	} {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return g
}

func list(words ...string) []string { return words }

func TestRefused(t *testing.T) {
	g := repository(t)
	for _, args := range [][]string{
		list("commit"),
		list("push"),
		list("commit", "--dry-run", "-m", "x"),
		list("push", "--help"),
		list("-C", "other", "commit"),
		list("-C", "other", "-C", "..", "push", "origin", "main"),
		list("--git-dir", "other/.git", "commit"),
		list("--git-dir=other/.git", "--work-tree=other", "commit"),
		list("--work-tree", "other", "commit"),
		list("--namespace", "n", "push"),
		list("--config-env", "user.name=HOME", "commit"),
		list("--config-env=user.name=HOME", "commit"),
		list("--attr-source", "HEAD", "commit"),
		list("--attr-source=HEAD", "commit"),
		list("--exec-path=/usr/lib/git-core", "commit"),
		list("-p", "commit"),
		list("-P", "--no-pager", "--paginate", "--bare", "--no-replace-objects", "--literal-pathspecs", "push"),
		list("-c", "a.b=c", "-c", "d.e", "push"),
		list("-c", "alias.x=commit", "x"),
		list("-c", "alias.x=commit", "X"),
		list("-c", "alias.x=y", "-c", "alias.y=push", "x"),
		list("-c", "alias.x=--no-pager commit", "x"),
		list("-c", "alias.x= 'com'\"m\"\\it", "x"),
		list("-c", "alias.x=-c alias.y=push y", "x"),
		list("-c", "alias.commit=commit", "COMMIT"),
		list("-c", "alias.x=!git -c alias.y=push y", "x"),
		list("-c", "alias.y=push", "-c", "alias.x=!git -c a.b=c y", "x"),
		list("--config-env=alias.x=PUSH", "x"),
		list("--a-newer-option", "commit"),
		list("--a-newer-option", "value", "commit"),
		list("ci"),
		list("camelcase"),
		list("both"),
		list("extra"),
		list("up", "origin"),
		list("sub"),
		list("all", "message"),
		list("git", "push"),
		list("git", "ci"),
		list("-C", "other", "here"),
		list("--git-dir=other/.git", "here"),
	} {
		g.environ = append(g.environ, "PUSH=push")
		if _, refused := check(t.Context(), args, g); !refused {
			t.Errorf("git %q passes", args)
		}
	}
}

func TestPasses(t *testing.T) {
	g := repository(t)
	for _, args := range [][]string{
		nil,
		list("status"),
		list("commit-tree", "HEAD^{tree}", "-m", "push"),
		list("commit-graph", "write"),
		list("log", "--grep", "commit"),
		list("help", "commit"),
		list("-h", "commit"),
		list("--help", "push"),
		list("--version", "commit"),
		list("--exec-path", "commit"), // prints a directory and ends
		list("--html-path", "push"),
		list("--list-cmds=builtins", "commit"),
		list("-C", "commit", "status"),
		list("-c", "push", "status"),
		list("--git-dir", "commit"),
		list("-c"),
		list("", "commit"),
		list("branch", "push"),
		list("stash", "push"),
		list("subtree", "push"),
		list("send-pack", "."),
		list("Commit"),
		list("no-such-command", "commit"),
		list("here"),
		list("st"),
		list("shellst"),
		list("git", "status"),
		list("a"),
		list("endless", "x"),
		list("-c", "alias.status=commit", "status"),       // git does not heed these
		list("-c", "alias.credential=push", "credential"), // a command that is none of the well-known
		list("-c", "alias.commit=status", "x"),
		list("-c", "alias.x", "x"),
		list("-c", "alias.x=", "x"),
		list("-c", "alias.x=log --grep commit", "x"),
		list("-c", "alias.x=!echo git push", "x"),
		list("-c", "alias.x=!echo 'a; git push'", "x"),
		list("-c", "alias.x=!git log # git push", "x"),
		list("-c", "no-section", "x"),
		list("-C", "missing", "ci"), // git says what is wrong
	} {
		if pass, refused := check(t.Context(), args, g); refused || !slices.Equal(pass, args) {
			t.Errorf("git %q: refused %v, becomes %q", args, refused, pass)
		}
	}
}

// A slip of the pen must not commit by git's own guess; nor does the guard guess.
func TestGuesses(t *testing.T) {
	g := repository(t)
	want := list("-c", "help.autocorrect=immediate", "-c", "help.autocorrect=0", "comit", "-m", "x")
	pass, refused := check(t.Context(), list("-c", "help.autocorrect=immediate", "comit", "-m", "x"), g)
	if refused || !slices.Equal(pass, want) {
		t.Errorf("%v, %q", refused, pass)
	}
	if _, refused := check(t.Context(), list("-c", "help.autocorrect=1", "ci"), g); !refused {
		t.Error("an alias is no slip of the pen")
	}
}

// Variables by which git config sees something else than git itself does.
func TestEnvironmentOfTheQuestion(t *testing.T) {
	g := repository(t)
	trace := filepath.Join(t.TempDir(), "trace")
	g.environ = append(g.environ, "GIT_CONFIG=/dev/null", "GIT_TRACE="+trace, "GIT_TRACE2_EVENT="+trace,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=alias.fromenv", "GIT_CONFIG_VALUE_0=push")
	for _, alias := range []string{"ci", "fromenv"} {
		if _, refused := check(t.Context(), list(alias), g); !refused {
			t.Errorf("%s passes", alias)
		}
	}
	if _, err := os.Stat(trace); !os.IsNotExist(err) {
		t.Errorf("the question is in the trace: %v", err)
	}
}

// A directory whose git config needs no repository, and one that is broken.
func TestOutsideARepository(t *testing.T) {
	g := repository(t)
	t.Chdir(t.TempDir())
	if _, refused := check(t.Context(), list("-c", "alias.x=commit", "x"), g); !refused {
		t.Error("passes outside a repository")
	}
	if err := os.WriteFile(filepath.Join(g.environ.get("HOME"), ".gitconfig"), []byte("[broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, refused := check(t.Context(), list("x"), g); refused {
		t.Error("git is to say what is broken")
	}
}

// The newer form of aliases, which this machine's git may not know.
func TestAliasForms(t *testing.T) {
	c := parseConfig("alias.Foo.command\ncommit\x00alias.bar\nstatus\x00alias.bar\npush\x00alias.none\x00")
	for name, want := range map[string]string{"foo": "commit", "bar": "push", "none": "", "command": ""} {
		if got, ok := c.alias(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}
