//go:build linux

package main

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// insn is struct sock_filter.
type insn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

type program []insn

// The operations of classic BPF that are used.
const (
	opLoad = 0x20 // ld [k], a word of struct seccomp_data
	opJump = 0x05
	opJEq  = 0x15
	opJGt  = 0x25
	opJGe  = 0x35
	opAnd  = 0x54
	opRet  = 0x06
)

// Offsets in struct seccomp_data of a little-endian machine.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

func (p program) bytes() []byte {
	var b []byte
	for _, i := range p {
		b = binary.LittleEndian.AppendUint16(b, i.code)
		b = append(b, i.jt, i.jf)
		b = binary.LittleEndian.AppendUint32(b, i.k)
	}
	return b
}

func ret(action uint32) program { return program{{code: opRet, k: action}} }

// span is a range of numbers with the same fate, from lo to the next span's lo.
type span struct {
	lo   uint32
	body program
}

// assemble makes the whole filter: architecture, then a search tree over the call's
// number. Numbers above those that we know are of calls newer than we are, and get
// ENOSYS, so that callers fall back; what is known and not allowed gets EPERM.
func assemble(a arch, rules map[uint32]rule, numbers map[string]uint32) program {
	newest := slices.Max(slices.Collect(maps.Values(numbers)))
	var spans []span
	add := func(lo uint32, body program) {
		if n := len(spans); n > 0 && slices.Equal(spans[n-1].body, body) {
			return
		}
		spans = append(spans, span{lo, body})
	}
	for nr := uint32(0); nr <= newest; nr++ {
		r, ok := rules[nr]
		switch {
		case !ok:
			add(nr, ret(eperm))
		case len(r.tests) == 0:
			add(nr, ret(r.action))
		default:
			add(nr, tested(r.tests))
		}
	}
	add(newest+1, ret(enosys)) // the x32 ABI too: its numbers are above all
	p := program{
		{code: opLoad, k: offArch},
		{code: opJEq, k: a.audit, jt: 1},
		{code: opRet, k: kill},
		{code: opLoad, k: offNr},
	}
	return append(p, search(spans)...)
}

// search is a binary tree that runs the body of the span that the accumulator is in.
func search(spans []span) program {
	if len(spans) == 1 {
		return spans[0].body
	}
	mid := len(spans) / 2
	return branch(opJGe, spans[mid].lo, search(spans[mid:]), search(spans[:mid]))
}

// branch runs yes if the comparison of the accumulator with k holds, else no. Both
// end in a return. The offset of a conditional jump has eight bits only.
func branch(op uint16, k uint32, yes, no program) program {
	var p program
	if len(no) <= 255 {
		p = program{{code: op, k: k, jt: uint8(len(no))}}
	} else {
		p = program{{code: op, k: k, jf: 1}, {code: opJump, k: uint32(len(no))}}
	}
	return append(append(p, no...), yes...)
}

// tested allows when one of the alternatives holds, or all of the others (of which
// there is at least one, or none at all).
func tested(tests []test) program {
	no := ret(eperm)
	all, required := ret(allow), false
	var alternatives []test
	for _, t := range slices.Backward(tests) {
		if t.alternative {
			alternatives = append(alternatives, t)
			continue
		}
		all, required = check(t, all, ret(eperm)), true
	}
	if required {
		no = all
	}
	switch len(alternatives) {
	case 0:
		return no
	case 1:
		return check(alternatives[0], ret(allow), no)
	}
	return among(alternatives, no)
}

// among allows when the argument that all tests are about has one of their values,
// by a search tree: a chain of checks would repeat what follows in each of them.
func among(tests []test, no program) program {
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.lo, b.lo) })
	var spans []span
	next := uint64(0)
	for _, t := range tests {
		if t.lo > next || len(spans) == 0 && t.lo > 0 {
			spans = append(spans, span{uint32(next), no})
		}
		if n := len(spans); n == 0 || !slices.Equal(spans[n-1].body, ret(allow)) {
			spans = append(spans, span{uint32(t.lo), ret(allow)})
		}
		next = t.hi + 1
	}
	if next <= math.MaxUint32 {
		spans = append(spans, span{uint32(next), no})
	}
	at := uint32(offArgs + 8*tests[0].arg)
	low := append(program{{code: opLoad, k: at}}, search(spans)...)
	return append(program{{code: opLoad, k: at + 4}}, branch(opJEq, 0, low, no)...)
}

// check runs yes if the argument passes t, else no.
func check(t test, yes, no program) program {
	at := uint32(offArgs + 8*t.arg)
	half := func(off uint32, mask, lo, hi uint32, yes program) program {
		p := program{{code: opLoad, k: off}}
		if mask != 0 {
			p = append(p, insn{code: opAnd, k: mask})
		}
		if lo == hi {
			return append(p, branch(opJEq, lo, yes, no)...)
		}
		return append(p, branch(opJGe, lo, branch(opJGt, hi, no, yes), no)...)
	}
	low := half(at, uint32(t.mask), uint32(t.lo), uint32(t.hi), yes)
	if t.low || t.mask != 0 && t.mask>>32 == 0 {
		return low
	}
	return half(at+4, uint32(t.mask>>32), uint32(t.lo>>32), uint32(t.hi>>32), low)
}
