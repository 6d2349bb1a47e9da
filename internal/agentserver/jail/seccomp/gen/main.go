//go:build linux

// Command gen compiles Docker's default seccomp profile into the programs that
// package seccomp embeds. Run it by `go generate`, with golang.org/x/sys in the
// module cache: its tables give the numbers of the system calls.
package main

import (
	"fmt"
	"os"

	"github.com/moby/profiles/seccomp"
)

func main() {
	if err := generate("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate writes one program per architecture into dir.
func generate(dir string) error {
	for _, a := range arches() {
		program, err := compileFor(a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if err := os.WriteFile(dir+"/"+a.name+".bpf", program.bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compileFor reads the profile and the numbers and compiles them.
func compileFor(a arch) (program, error) {
	numbers, err := syscalls(a.name)
	if err != nil {
		return nil, err
	}
	rules, err := rulesOf(seccomp.DefaultProfile(), a, numbers)
	if err != nil {
		return nil, err
	}
	return assemble(a, rules, numbers), nil
}
