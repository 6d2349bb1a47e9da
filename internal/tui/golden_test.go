package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// golden compares a screen with its file; UPDATE_GOLDEN=1 writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	var lines []string
	for _, l := range strings.Split(got, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	got = strings.Join(lines, "\n") + "\n"
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it anew. Got:\n%s", path, got)
	}
}

// each width is a screen of its own.
func eachWidth(t *testing.T, f func(t *testing.T, width int)) {
	for _, w := range []int{40, 80, 120} {
		t.Run(fmt.Sprint(w), func(t *testing.T) { f(t, w) })
	}
}

func TestRunScreen(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, width, 120)
		golden(t, fmt.Sprintf("run-%d", width), r.screen())
		for range 40 { // everything open
			r.press("g")
		}
		r.press("g")
		for range 60 {
			at := r.m.view.cursor.seq
			if b := r.m.view.blocks[at]; b != nil && (b.it.kind == tool || b.it.kind == thought) {
				r.press("enter")
			}
			if r.press("tab"); r.m.view.cursor.seq == at {
				break
			}
		}
		r.send(keyOf("g"))
		golden(t, fmt.Sprintf("run-open-%d", width), r.screen())
	})
}

func TestRunScreenInColour(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest", Color: true}, 60, 60)
	golden(t, "run-colour", strings.ReplaceAll(r.m.View(), "\x1b", "␛"))
	r = newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 60, 60)
	golden(t, "run-no-colour", strings.ReplaceAll(r.m.View(), "\x1b", "␛"))
}

func TestRawScreen(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 80, 40)
	r.press("r")
	golden(t, "raw-80", r.screen())
}

func someRuns() []Run {
	a, b, c := aRun(), aRun(), aRun()
	a.ID, a.State, a.Title, a.Created = "aaaaaaaa-0000-4000-8000-000000000001", task.StateInProgress, "日本語のとても長い題名です: this goes on and on and on until it is cut", noon()
	a.Usage = &task.Tokens{Requests: 3, CostUSD: 1.5}
	b.ID, b.State, b.Agent = "bbbbbbbb-0000-4000-8000-000000000001", task.StateCompleted, "acp:my-agent"
	b.Usage = &task.Tokens{Requests: 3, Unpriced: 3}
	c.Title = "hostile \x1b[2J\x1b]0;t\a title\nwith lines"
	return []Run{a, b, c}
}

func TestListScreen(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		r := newRig(t, &world{runs: someRuns()}, Options{}, width, 12)
		golden(t, fmt.Sprintf("list-%d", width), r.screen())
	})
}

func TestOtherScreens(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		w := &world{runs: []Run{aRun()}, log: inMemory(story(t)), patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\x1b[2J\n+\ttab\n"}
		r := newRig(t, w, Options{Run: "latest"}, width, 30)
		r.press("d")
		golden(t, fmt.Sprintf("diff-%d", width), r.screen())
		r.press("q", "?")
		golden(t, fmt.Sprintf("help-%d", width), r.screen())
		r.press("q", "t")
		golden(t, fmt.Sprintf("about-%d", width), r.screen())
		r = newRig(t, w, Options{Repo: "."}, width, 24)
		r.press("n")
		r.types("do something useful, and then")
		golden(t, fmt.Sprintf("form-%d", width), r.screen())
	})
}
