package wire

import "fmt"

// Thread is what the kernel says about one thread of a sandbox (MethodThreads).
type Thread struct {
	PID  int    `json:"pid"` // inside
	TID  int    `json:"tid"`
	Name string `json:"name"`
	UID  int    `json:"uid"` // effective, inside
	// Parent is the PID of the parent; 0 is one outside. Only PID 1 has that, and what
	// carries the link where the engine has to start it.
	Parent int `json:"parent"`

	// Sets of capabilities, a bit each.
	Inheritable uint64 `json:"inheritable"`
	Permitted   uint64 `json:"permitted"`
	Effective   uint64 `json:"effective"`
	Bounding    uint64 `json:"bounding"`
	Ambient     uint64 `json:"ambient"`

	NoNewPrivs bool `json:"no_new_privs"`
	Seccomp    int  `json:"seccomp"` // 2: a filter
}

// Kept are the capabilities that PID 1 may have: KILL, SETGID and SETUID, by which it starts
// and ends processes of the agent's uid.
const Kept = 1<<5 | 1<<6 | 1<<7

// Wrong says what a thread has that none may have, or has not and must; "" is nothing. The
// bounding set of what carries the link from outside is not looked at: it starts no program,
// and with no_new_privs none could gain by it.
func (t Thread) Wrong() string {
	first := t.PID == 1
	held := t.Inheritable | t.Permitted | t.Effective | t.Ambient
	if first {
		held &^= Kept
	}
	if first || t.Parent != 0 {
		held |= t.Bounding
	}
	switch {
	case held != 0:
		return fmt.Sprintf("%s: capabilities %#x", t, held)
	case !t.NoNewPrivs:
		return fmt.Sprintf("%s: may gain privileges", t)
	case !first && t.Seccomp == 0:
		return fmt.Sprintf("%s: no filter of system calls", t)
	}
	return ""
}

// String implements fmt.Stringer.
func (t Thread) String() string {
	return fmt.Sprintf("thread %d of process %d (%q, uid %d)", t.TID, t.PID, t.Name, t.UID)
}
