package seccomp

import (
	"embed"
	"encoding/binary"
	"testing"
)

//go:embed *.bpf
var programs embed.FS

// call is struct seccomp_data.
type call struct {
	nr, arch uint32
	args     [6]uint64
}

const (
	allow  = 0x7fff0000
	eperm  = 0x00050001
	enosys = 0x00050026
	kill   = 0x80000000

	amd64 = 0xc000003e
	arm64 = 0xc00000b7
	i386  = 0x40000003
)

// run interprets a program as the kernel does.
func run(t *testing.T, file string, c call) uint32 {
	t.Helper()
	code, err := programs.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], c.nr)
	binary.LittleEndian.PutUint32(data[4:], c.arch)
	for i, a := range c.args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var acc uint32
	for pc := 0; pc < len(code)/8; pc++ {
		in := code[8*pc:]
		k := binary.LittleEndian.Uint32(in[4:])
		jump := func(holds bool) {
			if holds {
				pc += int(in[2])
			} else {
				pc += int(in[3])
			}
		}
		switch binary.LittleEndian.Uint16(in) {
		case 0x20:
			acc = binary.LittleEndian.Uint32(data[k:])
		case 0x05:
			pc += int(k)
		case 0x15:
			jump(acc == k)
		case 0x25:
			jump(acc > k)
		case 0x35:
			jump(acc >= k)
		case 0x54:
			acc &= k
		case 0x06:
			return k
		default:
			t.Fatalf("unknown instruction %x at %d", in[:2], pc)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

func args(a ...uint64) (all [6]uint64) {
	copy(all[:], a)
	return all
}

func TestProgramForAMD64(t *testing.T) {
	const high = 1 << 32
	for name, tt := range map[string]struct {
		call call
		want uint32
	}{
		"read":                         {call{nr: 0}, allow},
		"execve":                       {call{nr: 59}, allow},
		"openat2":                      {call{nr: 437}, allow},
		"another architecture":         {call{nr: 0, arch: i386}, kill},
		"x32":                          {call{nr: 0x40000000}, enosys},
		"newer than we are":            {call{nr: 9999}, enosys},
		"no such call":                 {call{nr: 400}, eperm},
		"mount":                        {call{nr: 165}, eperm},
		"unshare":                      {call{nr: 272}, eperm},
		"setns":                        {call{nr: 308}, eperm},
		"bpf":                          {call{nr: 321}, eperm},
		"keyctl":                       {call{nr: 250}, eperm},
		"chroot":                       {call{nr: 161}, eperm},
		"io_uring_setup":               {call{nr: 425}, enosys},
		"io_uring_enter":               {call{nr: 426}, enosys},
		"clone3":                       {call{nr: 435}, enosys},
		"clone, thread":                {call{nr: 56, args: args(0x3d0f00)}, allow},
		"clone, user namespace":        {call{nr: 56, args: args(0x10000000)}, eperm},
		"clone, mount namespace":       {call{nr: 56, args: args(0x00020000 | 17)}, eperm},
		"socket, unix":                 {call{nr: 41, args: args(1)}, allow},
		"socket, inet":                 {call{nr: 41, args: args(2)}, allow},
		"socket, inet6":                {call{nr: 41, args: args(10)}, allow},
		"socket, netlink":              {call{nr: 41, args: args(16)}, allow},
		"socket, alg":                  {call{nr: 41, args: args(38)}, eperm},
		"socket, vsock":                {call{nr: 41, args: args(40)}, eperm},
		"socket, high bits":            {call{nr: 41, args: args(high | 2)}, eperm},
		"personality, query":           {call{nr: 135, args: args(0xffffffff)}, allow},
		"personality, no randomising":  {call{nr: 135, args: args(0x0040000)}, eperm},
		"prlimit64, own":               {call{nr: 302, args: args(0, 7, 0x1000)}, allow},
		"prlimit64, own, high bits":    {call{nr: 302, args: args(high, 7, 0x1000)}, allow},
		"prlimit64, read another's":    {call{nr: 302, args: args(1, 7, 0, 0x1000)}, allow},
		"prlimit64, set another's":     {call{nr: 302, args: args(1, 7, 0x1000)}, eperm},
		"prlimit64, high pointer":      {call{nr: 302, args: args(1, 7, high)}, eperm},
		"setpriority, own":             {call{nr: 141, args: args(0, 0, 5)}, allow},
		"setpriority, own group":       {call{nr: 141, args: args(1, 0, 5)}, allow},
		"setpriority, another":         {call{nr: 141, args: args(0, 1, 5)}, eperm},
		"setpriority, user":            {call{nr: 141, args: args(2, 0, 5)}, eperm},
		"setpriority, user, high bits": {call{nr: 141, args: args(high|2, 0, 5)}, eperm},
		"sched_setaffinity, own":       {call{nr: 203, args: args(0)}, allow},
		"sched_setaffinity, another":   {call{nr: 203, args: args(1)}, eperm},
		"ioprio_set, own":              {call{nr: 251, args: args(1, 0)}, allow},
		"ioprio_set, user":             {call{nr: 251, args: args(3, 0)}, eperm},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.call.arch == 0 {
				tt.call.arch = amd64
			}
			if got := run(t, "amd64.bpf", tt.call); got != tt.want {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}

func TestProgramForARM64(t *testing.T) {
	for name, tt := range map[string]struct {
		call call
		want uint32
	}{
		"read":                  {call{nr: 63}, allow},
		"execve":                {call{nr: 221}, allow},
		"another architecture":  {call{nr: 63, arch: amd64}, kill},
		"mount":                 {call{nr: 40}, eperm},
		"io_uring_setup":        {call{nr: 425}, enosys},
		"clone, thread":         {call{nr: 220, args: args(0x3d0f00)}, allow},
		"clone, user namespace": {call{nr: 220, args: args(0x10000000)}, eperm},
		"socket, vsock":         {call{nr: 198, args: args(40)}, eperm},
		"prlimit64, another's":  {call{nr: 261, args: args(1, 7, 1)}, eperm},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.call.arch == 0 {
				tt.call.arch = arm64
			}
			if got := run(t, "arm64.bpf", tt.call); got != tt.want {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}
