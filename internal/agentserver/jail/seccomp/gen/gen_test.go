//go:build linux

package main

import (
	"bytes"
	"os"
	"testing"
)

// The embedded programs are what the generator makes of the pinned profile.
func TestProgramsAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	for _, a := range arches() {
		made, err := os.ReadFile(dir + "/" + a.name + ".bpf")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile("../" + a.name + ".bpf")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(made, kept) {
			t.Errorf("%s.bpf is out of date: run go generate ./internal/agentserver/jail/seccomp", a.name)
		}
		const most = 4096 // BPF_MAXINSNS
		if n := len(kept) / 8; n > most {
			t.Errorf("%s: %d instructions", a.name, n)
		}
	}
}

func TestRulesRefuseUnknownForms(t *testing.T) {
	numbers := map[string]uint32{"read": 0}
	if _, err := compileFor(arch{name: "nosuch"}); err == nil {
		t.Error("an architecture without a table was compiled")
	}
	p := assemble(arches()[0], map[uint32]rule{0: {action: allow}}, numbers)
	if len(p) == 0 || p[len(p)-1].code != opRet {
		t.Errorf("program %v", p)
	}
}
