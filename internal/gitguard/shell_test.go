//go:build unix

package gitguard

import (
	"reflect"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for text, want := range map[string][][]string{
		"":                        nil,
		"git push":                {{"git", "push"}},
		"a;b&&c||d|e&f\ng":        {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}, {"g"}},
		"a 'b c' \"d e\"f\\ g":    {{"a", "b c", "d ef g"}},
		`a '' "" ""b`:             {{"a", "", "", "b"}},
		`a "\"\$\x" 'it'\''s'`:    {{"a", `"$\x`, "it's"}},
		"a # b; c\nd#e":           {{"a"}, {"d#e"}},
		"a >b c 2>&1 <d e >>f":    {{"a", "c", "e"}},
		"2>/dev/null a":           {{"a"}},
		"f() { a; }; f":           {{"f"}, {"{", "a"}, {"}"}, {"f"}},
		"(a; b)":                  {{"a"}, {"b"}},
		"a $(b `c`) d":            {{"c"}, {"b", "$()"}, {"a", "$()", "d"}},
		`a "$(b (c))"`:            {{"b"}, {"c"}, {"a", "$()"}},
		`a "$@"`:                  {{"a", "one", "two words"}},
		`a $* x"$1"y ${2} $3`:     {{"a", "one", "two words", "xoney", "two words"}},
		`a x$@y`:                  {{"a", "xone", "two wordsy"}},
		`shift; a "$@"`:           {{"shift"}, {"a", "two words"}},
		`f() { shift; a $1; }; f`: {{"f"}, {"{", "shift"}, {"a", "two words"}, {"}"}, {"f"}},
		`a $HOME ${X:-y} $ $# 5$`: {{"a", "$HOME", "${X:-y}", "$", "$#", "5$"}},
		"a 'open":                 {{"a", "open"}},
		"a \"open $(b":            {{"b"}, {"a", "open $()"}},
		"a \\":                    {{"a", ""}},
		"a \\\n b":                {{"a", "b"}},
		"é 'ü'":                   {{"é", "ü"}},
	} {
		if got := commands(text, []string{"one", "two words"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestScripts(t *testing.T) {
	for text, want := range map[string]bool{
		"git push":                                  true,
		"/usr/bin/git push":                         true,
		"git-push":                                  true,
		"/usr/lib/git-core/git-commit -m x":         true,
		"A=b C='d e' git push":                      true,
		"if git diff; then git commit; fi":          true,
		"for b in x y; do git push $b; done":        true,
		"while ! git push; do sleep 1; done":        true,
		"case x in x) git push;; esac":              true,
		"function f { git push; }; f":               true,
		"f() ( git push ); f":                       true,
		"{ git push; }":                             true,
		"echo \"$(git push)\"":                      true,
		"echo `git push`":                           true,
		"cd x && exec git -C . push":                true,
		"env -i A=b git push":                       true,
		"command git push":                          true,
		"sudo -u me nice -n 5 git push":             true,
		"echo x | xargs -n1 git push":               true,
		"sh -c 'git push'":                          true,
		"bash -lc \"git push\"":                     true,
		"sh -c 'git \"$@\"' - push":                 true,
		"sh -ec 'sh -c \"git push\"'":               true,
		"eval 'git push'":                           true,
		"eval git push":                             true,
		">log 2>&1 git push":                        true,
		"git log; git known":                        true,
		"git status":                                false,
		"echo git push":                             false,
		"grep -r 'git push' .":                      false,
		"git log --grep 'git push'":                 false,
		"git tag push":                              false,
		"gitk push":                                 false,
		"env":                                       false,
		"env A=b":                                   false,
		"sh push":                                   false,
		"sh -c":                                     false,
		"if":                                        false,
		"function":                                  false,
		"git-lfs push":                              false,
		"git-shell -c push":                         false,
		"ssh host git push":                         false,
		"=x git":                                    false,
		strings.Repeat("sh -c ", 50) + "'git push'": false,
	} {
		c := &checker{git: told{"alias.known": "push"}}
		if got := c.refusesScript(t.Context(), text, nil, invocation{}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestSplit(t *testing.T) {
	for value, want := range map[string][]string{
		"":                        nil,
		" commit  -v\t":           {"commit", "-v"},
		`a 'b c' "d\"e" f\ g`:     {"a", "b c", `d"e`, "f g"},
		`a '\' "$x" ; 'é'`:        {"a", `\`, "$x", ";", "é"},
		`log --grep "a 'b' c" ''`: {"log", "--grep", "a 'b' c", ""},
	} {
		if got := split(value); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// Whatever an alias holds, reading it ends.
func FuzzCommands(f *testing.F) {
	for _, text := range []string{"a 'b", "$(", "${", "\"$@\"", "`a\\", "a>&", "$($($(", "f(){ git push;};f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &checker{git: told{"alias.x": "!" + text, "alias.y": text}}
		c.refuses(t.Context(), invocation{args: []string{"x", "push", "a b"}})
		c.refuses(t.Context(), invocation{args: []string{"y", "commit"}})
	})
}
