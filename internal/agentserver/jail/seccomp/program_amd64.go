package seccomp

import _ "embed" // the program

//go:embed amd64.bpf
var program string

// Program returns the filter for this architecture, or "" where there is none.
func Program() string { return program }
