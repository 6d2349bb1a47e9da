// Package seccomp holds the system call filter of the agent's processes, compiled
// when the source was generated: Docker's default profile without the rules that
// need a capability, without io_uring, and with arguments checked where a call could
// reach PID 1 although it has the agent's uid. Compiling at run time would cost half
// a millisecond in every process; the compiler and Docker's profile are linked into
// the generator only.
//
// The bytes are struct sock_filter in little-endian order, for one architecture each.
package seccomp

//go:generate go run ./gen
