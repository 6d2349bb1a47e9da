package signing

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// personsWorld is a world whose client publishes with the token of a person.
func personsWorld(t *testing.T, first files) *world {
	t.Helper()
	w := newWorld(t, fakegithub.Options{}, first)
	w.token = w.gh.UserToken()
	w.person()
	return w
}

// person makes the client of a world a person's.
func (w *world) person() {
	w.t.Helper()
	o := w.client.o
	o.UserToken = true
	var err error
	if w.client, err = New(o); err != nil {
		w.t.Fatal(err)
	}
}

// sayable is what a person can publish over start.
func sayable() files {
	now := start()
	now["README.md"] = file{"100644", "changed\n"}
	now["run.sh"] = file{"100755", "#!/bin/sh\nchanged\n"}
	now["new.bin"] = file{"100644", "\x00\xff binary \x80"}
	now["odd \"name\"\t\\ \nñ"] = file{"100644", ""}
	now[".github/workflows/ci.yml"] = file{"100644", "on: push\n"}
	delete(now, "link")
	delete(now, "dir/b")
	return now
}

// inParts makes requests of a few bytes.
func (w *world) inParts() files {
	w.client.payload = 400
	now := start()
	for i := range 6 {
		now[fmt.Sprint("f", i)] = file{"100644", strings.Repeat(fmt.Sprint(i), 150)}
	}
	delete(now, "dir/a")
	return now
}

// personal are the operations of a person.
func personal() []operation {
	publish := func(w *world, all files, expected string) (Result, error) {
		r := w.request(w.tree(all))
		r.Expected = expected
		return w.client.Publish(w.t.Context(), r)
	}
	rewrite := operations()[3]
	return []operation{
		{"a commit", 1, func(w *world) (Result, error) { return publish(w, sayable(), w.base) }},
		{"a new branch", 1, func(w *world) (Result, error) {
			w.git(w.repo.Dir, "update-ref", "-d", "refs/heads/work")
			return publish(w, sayable(), "")
		}},
		{"several parts", 6, func(w *world) (Result, error) { return publish(w, w.inParts(), w.base) }},
		{"a folder for a file", 1, func(w *world) (Result, error) {
			now := start()
			delete(now, "README.md")
			now["README.md/x"] = file{"100644", "x"}
			return publish(w, now, w.base)
		}},
		{rewrite.name, 2, func(w *world) (Result, error) {
			all := start()
			all["one"] = file{"100644", "1"}
			one := w.commit(w.tree(all), "one\n\nbecause", w.base)
			all["one"] = file{"100644", "2"}
			two := w.commit(w.tree(all), "two", one)
			return w.client.Rewrite(w.t.Context(), Rewrite{
				Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Head: two, Onto: w.base, Expected: w.base,
			})
		}},
		operations()[4],
	}
}

func TestAPersonPublishes(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	tree := w.tree(sayable())
	got, err := w.client.Publish(t.Context(), w.request(tree))
	if err != nil || !got.Verified || got.SHA != w.tip("work") || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", tree, w.base)
	if n := w.gh.Requests(); w.gh.Count(fakegithub.OpGraphQL) != 2 || w.gh.Count(fakegithub.OpRef) != 0 {
		t.Errorf("%d requests", n)
	}
	again, err := w.client.Publish(t.Context(), w.request(tree))
	if err != nil || !again.Unchanged || again.SHA != got.SHA {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// Property: whatever two trees are, the second is published as it is, if a person can
// publish it at all.
func TestAnyTreeOfAPersonSurvives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			before := randomFiles(r, nil)
			after := sayableOver(before, randomFiles(r, before))
			w := personsWorld(t, before)
			w.client.payload = 300 + r.IntN(2000)
			tree := w.tree(after)
			got, err := w.client.Publish(t.Context(), w.request(tree))
			if w.git(w.bare, "rev-parse", w.base+"^{tree}") == tree {
				if !errors.Is(err, ErrNothing) {
					t.Errorf("nothing was published: %+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\nbefore %v\nafter %v", err, before, after)
			}
			if n := len(got.Commits); n == 1 {
				w.published("work", tree, w.base)
			} else {
				w.published("work", tree, got.Commits[n-2].SHA)
			}
		})
	}
}

// sayableOver is a tree with the modes that a person can publish over another.
func sayableOver(before, after files) files {
	now := files{}
	for path, f := range before {
		if f.mode == modeModule {
			now.put(path, f)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		f, was := after[path], before[path]
		switch {
		case was.mode == modeModule, was.mode == modeLink:
			f = was
		case was.mode != "":
			f.mode = was.mode
		default:
			f.mode = modeFile
		}
		if f.mode != modeModule && len(f.content) == 40 {
			f.content = "no module"
		}
		clear := true
		for module, m := range now {
			if m.mode == modeModule && module != path && (strings.HasPrefix(module, path+"/") || strings.HasPrefix(path, module+"/")) {
				clear = false
			}
		}
		if clear {
			now.put(path, f)
		}
	}
	return now
}

func TestWhatAPersonCannotPublish(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	for name, tt := range map[string]struct {
		change func(files)
		says   string
	}{
		"a new executable file": {func(f files) { f["x"] = file{"100755", "x"} }, `"x" (a new executable file)`},
		"a mode":                {func(f files) { f["README.md"] = file{"100755", "hello\n"} }, `"README.md" (a change of mode)`},
		"a lost mode":           {func(f files) { f["run.sh"] = file{"100644", "#!/bin/sh\n"} }, `"run.sh" (a change of mode)`},
		"a link":                {func(f files) { f["to"] = file{modeLink, "x"} }, `"to" (a symbolic link)`},
		"another target":        {func(f files) { f["link"] = file{modeLink, "dir"} }, `"link" (a symbolic link)`},
		"a file for a link":     {func(f files) { f["link"] = file{modeFile, "x"} }, `"link" (a symbolic link)`},
		"a submodule":           {func(f files) { f["vendor/lib"] = file{modeModule, strings.Repeat("2", 40)} }, `"vendor/lib" (a submodule)`},
		"no submodule":          {func(f files) { delete(f, "vendor/lib") }, `"vendor/lib" (a submodule)`},
		"many": {func(f files) {
			for i := range 14 {
				f[fmt.Sprintf("x%02d", i)] = file{"100755", "x"}
			}
		}, `"x09" (a new executable file) and 4 more`},
	} {
		now := start()
		tt.change(now)
		_, err := w.client.Publish(t.Context(), w.request(w.tree(now)))
		if !errors.Is(err, ErrUserToken) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(errs.HintOf(err), "create-github-app") || w.tip("work") != w.base {
			t.Errorf("%s: %v (hint %q)", name, err, errs.HintOf(err))
		}
	}
	now := start()
	now["big"] = file{modeFile, strings.Repeat("x", 27<<20)}
	_, err := w.client.Publish(t.Context(), w.request(w.tree(now)))
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `"big" has 27 MiB`) || !strings.Contains(errs.HintOf(err), "LFS") {
		t.Errorf("%v (hint %q)", err, errs.HintOf(err))
	}
}

// More than one request takes is published in parts, and seen all at once.
func TestAPersonPublishesInParts(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	r := w.request(w.tree(w.inParts()))
	got, err := w.client.Publish(t.Context(), r)
	if err != nil || len(got.Commits) != 6 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", r.Tree, got.Commits[4].SHA)
	if text := w.git(w.repo.Dir, "show", "-s", "--format=%B", got.SHA); text != "change things - part 6/6\n\nTask-Id: 1" {
		t.Errorf("message %q", text)
	}
	again, err := w.client.Publish(t.Context(), r)
	if err != nil || !again.Unchanged || again.SHA != got.SHA {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A branch that was made for a commit goes with it; one that another run of this left is
// gone on with.
func TestANewBranchOfAPersonWhoseCommitFails(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	r := w.request(w.tree(sayable()))
	r.Branch, r.Expected = "fresh", ""
	w.gh.Before(func(op string, n int) *fakegithub.Fault {
		if op == fakegithub.OpGraphQL && n == 3 {
			return &fakegithub.Fault{Status: 403, Message: "Resource not accessible by personal access token"}
		}
		return nil
	})
	_, err := w.client.Publish(t.Context(), r)
	if errs.KindOf(err) != errs.Auth || !strings.Contains(errs.HintOf(err), "gh auth refresh") || w.tip("fresh") != "" {
		t.Errorf("%v (hint %q), the branch is at %q", err, errs.HintOf(err), w.tip("fresh"))
	}
	w.gh.Before(nil)
	w.git(w.repo.Dir, "update-ref", "refs/heads/fresh", w.base)
	if _, err := w.client.Publish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.published("fresh", r.Tree, w.base)
}

// What GitHub makes otherwise than it is here, or does not sign, is taken back.
func TestACommitThatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o     fakegithub.Options
		alter func(map[string]any)
		is    error
	}{
		"not signed": {fakegithub.Options{NoSigning: true}, nil, ErrUnverified},
		"another tree": {fakegithub.Options{}, func(m map[string]any) {
			data, _ := m["data"].(map[string]any)
			if made, ok := data["createCommitOnBranch"].(map[string]any); ok {
				made["commit"].(map[string]any)["tree"] = map[string]any{"oid": strings.Repeat("a", 40)}
			}
		}, ErrUserToken},
	} {
		for _, branch := range []string{"work", "fresh"} {
			w := newWorld(t, tt.o, start())
			w.token = w.gh.UserToken()
			w.person()
			if tt.alter != nil {
				w.gh.Break(fakegithub.OpGraphQL, fakegithub.Fault{Alter: tt.alter})
			}
			r := w.request(w.tree(sayable()))
			if r.Branch = branch; branch == "fresh" {
				r.Expected = ""
			}
			was := w.tip(branch)
			got, err := w.client.Publish(t.Context(), r)
			if !errors.Is(err, tt.is) || w.tip(branch) != was || len(got.Warnings) > 0 {
				t.Errorf("%s, %s: %+v, %v, at %s", name, branch, got, err, w.tip(branch))
			}
		}
	}
}

func TestAPersonRewrites(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	old := w.others("work")
	w.git(w.bare, "fetch", "-q", w.repo.Dir, "work")
	now := start()
	now["one"] = file{modeFile, "1"}
	one := w.commit(w.tree(now), "one\n\nbecause", w.base)
	now["one"] = file{modeFile, "2"}
	two := w.commit(w.tree(now), "two", one)
	r := Rewrite{Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Head: two, Onto: w.base, Expected: old}
	got, err := w.client.Rewrite(t.Context(), r)
	if err != nil || len(got.Commits) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", w.tree(now), got.Commits[0].SHA)
	if text := w.git(w.repo.Dir, "show", "-s", "--format=%B", got.Commits[0].SHA); text != "one\n\nbecause\n\nCo-authored-by: Ada <ada@example.com>" {
		t.Errorf("message %q", text)
	}
	now["x"] = file{"100755", "x"}
	r.Head, r.Expected = w.commit(w.tree(now), "three", two), got.SHA
	if _, err := w.client.Rewrite(t.Context(), r); !errors.Is(err, ErrUserToken) || w.tip("work") != got.SHA {
		t.Errorf("%v", err)
	}
}

func TestAPersonMerges(t *testing.T) {
	t.Parallel()
	w := personsWorld(t, start())
	mine, theirs := start(), start()
	mine["mine"], theirs["theirs"], theirs["x"] = file{"100644", "m"}, file{"120000", "t"}, file{"100755", "x"}
	ours, other := w.commit(w.tree(mine), "ours", w.base), w.commit(w.tree(theirs), "theirs", w.base)
	w.git(w.bare, "push", "-q", w.repo.Dir, ours+":refs/heads/work", other+":refs/heads/main")
	m := Merge{Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Expected: ours, From: other, Message: "Merge main"}
	m.Tree = w.tree(start())
	if _, err := w.client.Merge(t.Context(), m); !errors.Is(err, ErrUserToken) || w.tip("work") != ours {
		t.Errorf("resolved by hand: %v", err)
	}
	m.Tree = ""
	got, err := w.client.Merge(t.Context(), m)
	if err != nil || !got.Verified {
		t.Fatalf("%+v, %v", got, err)
	}
	mine["theirs"], mine["x"] = theirs["theirs"], theirs["x"]
	w.published("work", w.tree(mine), ours, other)
	again, err := w.client.Merge(t.Context(), m)
	if err != nil || !again.Unchanged || again.SHA != got.SHA {
		t.Errorf("again: %+v, %v", again, err)
	}
}
