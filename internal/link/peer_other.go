//go:build !linux

package link

import "net"

// inside is a question that only Linux, where PID 1 runs, can answer.
func inside(net.Conn) bool { return false }
