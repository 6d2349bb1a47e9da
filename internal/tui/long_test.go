package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/tui/longlog"
)

const million = 1_000_000

// A log of a million events is found by its numbers, searched and scrolled; what is held of
// it is little, and no key waits for the file. The bounds are ten times what people feel:
// they tell an answer from a search through the whole. bench has the measurements.
func TestAMillionEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 600 MB")
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := longlog.Write(f, million); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, &world{runs: []Run{aRun()}, log: onDisk(path)}, Options{Run: "latest"}, 100, 40)
	x := &r.m.view.idx
	if x.n != million || x.tail != nil || r.m.view.sum.result == nil || r.m.view.sum.usage.Requests != million/longlog.Every {
		t.Fatalf("%d events, %+v", x.n, r.m.view.sum.usage)
	}
	r.has("completed in 16m40s")
	key := func(k string) {
		t.Helper()
		begin := time.Now()
		if r.press(k); time.Since(begin) > time.Second {
			t.Errorf("%s takes %v", k, time.Since(begin))
		}
		r.sound()
	}
	key("g")
	r.has("Round 0")
	for range 50 {
		key("pgdown")
	}
	for range 20 {
		key("e")
		if m := x.at(r.m.view.cursor.seq); m.kind != tool {
			t.Fatalf("an error of kind %s", m.kind)
		}
	}
	key("/")
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(longlog.Needle + " 31415"), Paste: true})
	key("enter")
	r.has(fmt.Sprintf("`%s 31415`", longlog.Needle)[1:len(longlog.Needle)+7], "2 match")
	if got := int(r.m.view.cursor.seq-1) / longlog.Every; got != 31415 {
		t.Errorf("the cursor is in round %d", got)
	}
	for _, k := range []string{"n", "n", "N", "G", "pgup", "esc", "r", "g", "G", "r"} {
		key(k)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 100<<20 {
		t.Errorf("%d MB are held", m.HeapAlloc>>20)
	}
	t.Logf("%d MB are held", m.HeapAlloc>>20)
	runtime.KeepAlive(r)
}
