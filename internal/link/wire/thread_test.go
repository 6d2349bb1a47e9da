package wire

import (
	"strings"
	"testing"
)

func TestThreadsThatAreWrong(t *testing.T) {
	agent := Thread{PID: 7, TID: 8, Name: "sh", UID: 1000, Parent: 1, NoNewPrivs: true, Seccomp: 2}
	bridge := Thread{PID: 9, TID: 9, UID: 1000, Bounding: 0x11e1, NoNewPrivs: true, Seccomp: 2}
	first := Thread{PID: 1, TID: 1, Permitted: Kept, Effective: Kept, NoNewPrivs: true}
	for _, ok := range []Thread{agent, first, bridge} {
		if why := ok.Wrong(); why != "" {
			t.Error(why)
		}
	}
	for want, change := range map[string]func(t *Thread){
		"capabilities 0x1":   func(t *Thread) { t.Inheritable = 1 },
		"capabilities 0x2":   func(t *Thread) { t.Permitted = 2 },
		"capabilities 0x4":   func(t *Thread) { t.Effective = 4 },
		"capabilities 0x100": func(t *Thread) { t.Ambient = 1 << 8 },
		"may gain":           func(t *Thread) { t.NoNewPrivs = false },
	} {
		for _, thread := range []Thread{agent, first, bridge} {
			change(&thread)
			if why := thread.Wrong(); !strings.Contains(why, want) {
				t.Errorf("%+v: %q, want %q", thread, why, want)
			}
		}
	}
	bridge.Effective = Kept
	if bridge.Wrong() == "" {
		t.Error("another process may have what is PID 1's")
	}
	first.Bounding = 1 << 21
	if first.Wrong() == "" {
		t.Error("PID 1 may gain what it has not")
	}
	agent.Bounding = Kept
	if agent.Wrong() == "" {
		t.Error("the agent may have what is PID 1's")
	}
	agent.Bounding, agent.Seccomp = 0, 0
	if agent.Wrong() == "" {
		t.Error("a process without a filter")
	}
}
