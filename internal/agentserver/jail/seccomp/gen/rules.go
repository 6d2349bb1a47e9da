//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// What a filter answers.
const (
	allow = 0x7fff0000
	errno = 0x00050000
	kill  = 0x80000000 // the whole process

	eperm  = errno | 1
	enosys = errno | 38
)

// test is one condition on an argument: both halves, masked where there is a mask.
type test struct {
	arg         int
	lo, hi      uint64 // allowed range, inclusive
	mask        uint64 // 0: none
	low         bool   // the kernel looks at the low 32 bits only
	alternative bool   // true: enough by itself; false: all of those that are not must hold
}

// rule is what happens to one system call: action, or tests that decide between
// allow and EPERM.
type rule struct {
	action uint32
	tests  []test
}

// rulesOf turns the profile into rules by system call number, for a process that
// has no capability.
func rulesOf(profile *seccomp.Seccomp, a arch, numbers map[string]uint32) (map[uint32]rule, error) {
	rules := map[uint32]rule{}
	for _, s := range profile.Syscalls {
		if !applies(s, a) {
			continue
		}
		r, err := ruleOf(s)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s.Names, err)
		}
		for _, name := range s.Names {
			if nr, ok := numbers[name]; ok {
				rules[nr] = merge(rules[nr], r)
			}
		}
	}
	ours(rules, numbers)
	return rules, nil
}

func applies(s *seccomp.Syscall, a arch) bool {
	if i := s.Includes; i != nil && (len(i.Caps) > 0 || len(i.Arches) > 0 && !slices.Contains(i.Arches, a.name)) {
		return false // minKernel: the sandbox needs a newer kernel than any rule
	}
	return s.Excludes == nil || !slices.Contains(s.Excludes.Arches, a.name)
}

func ruleOf(s *seccomp.Syscall) (rule, error) {
	switch s.Action {
	case specs.ActAllow:
	case specs.ActErrno:
		if s.ErrnoRet == nil || len(s.Args) > 0 {
			return rule{}, fmt.Errorf("unknown form of errno rule")
		}
		return rule{action: errno | uint32(*s.ErrnoRet)}, nil
	default:
		return rule{}, fmt.Errorf("unknown action %s", s.Action)
	}
	if len(s.Args) > 1 {
		return rule{}, fmt.Errorf("more than one argument")
	}
	r := rule{action: allow}
	for _, arg := range s.Args {
		t := test{arg: int(arg.Index), alternative: true}
		switch arg.Op {
		case specs.OpLessThan:
			t.hi = arg.Value - 1
		case specs.OpEqualTo:
			t.lo, t.hi = arg.Value, arg.Value
		case specs.OpMaskedEqual:
			t.mask, t.lo, t.hi = arg.Value, arg.ValueTwo, arg.ValueTwo
		default:
			return rule{}, fmt.Errorf("unknown operator %s", arg.Op)
		}
		r.tests = append(r.tests, t)
	}
	return r, nil
}

// merge joins two rules of one call: a call that is allowed without a test stays so.
func merge(old, add rule) rule {
	switch {
	case old.action == 0:
		return add
	case len(old.tests) == 0 || len(add.tests) == 0:
		return rule{action: max(old.action, add.action)}
	}
	return rule{action: allow, tests: append(old.tests, add.tests...)}
}

// ours are the rules that Docker's profile does not have. With one uid for PID 1
// and the agent, calls that name a process could slow or limit PID 1: they may name
// the caller itself only. pthread_setaffinity_np of another thread is refused too.
func ours(rules map[uint32]rule, numbers map[string]uint32) {
	for name, nr := range numbers {
		if strings.HasPrefix(name, "io_uring_") {
			rules[nr] = rule{action: enosys} // as on a kernel without it: libraries fall back
		}
	}
	self := func(arg int) test { return test{arg: arg, low: true} }
	set := func(name string, tests ...test) {
		if nr, ok := numbers[name]; ok {
			rules[nr] = rule{action: allow, tests: tests}
		}
	}
	noLimit := test{arg: 2, alternative: true} // the pointer to the new limit is null
	set("prlimit64", noLimit, self(0))
	// Classes: process, process group; user, which is everybody of the uid, is not.
	set("setpriority", test{arg: 0, hi: 1, low: true}, self(1))
	set("ioprio_set", test{arg: 0, lo: 1, hi: 2, low: true}, self(1))
	for _, name := range []string{"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"} {
		set(name, self(0))
	}
}
