//go:build linux

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"strconv"
	"strings"
)

// arch is what the compiler must know about an architecture.
type arch struct {
	name  string // GOARCH
	audit uint32 // AUDIT_ARCH_*
	x32   bool   // system calls with bit 30 are another ABI
}

func arches() []arch {
	return []arch{
		{name: "amd64", audit: 0xc000003e, x32: true},
		{name: "arm64", audit: 0xc00000b7},
	}
}

// syscalls returns the numbers of an architecture's system calls by name, from the
// source of golang.org/x/sys, which has tables for architectures that are not ours.
func syscalls(goarch string) (map[string]uint32, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		return nil, fmt.Errorf("find golang.org/x/sys: %w", err)
	}
	file := strings.TrimSpace(string(dir)) + "/unix/zsysnum_linux_" + goarch + ".go"
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	numbers := map[string]uint32{}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		name, isCall := strings.CutPrefix(spec.Names[0].Name, "SYS_")
		if !ok || !isCall {
			return true
		}
		if v, err := strconv.ParseUint(lit.Value, 0, 32); err == nil {
			numbers[strings.ToLower(name)] = uint32(v)
		}
		return true
	})
	return numbers, nil
}
