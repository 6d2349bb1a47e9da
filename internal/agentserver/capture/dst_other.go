//go:build !linux

package capture

import (
	"errors"
	"net"
	"net/netip"
)

// originalDestination is known on Linux only, where sandboxes are.
func originalDestination(*net.TCPConn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.ErrUnsupported
}

func descriptors() int { return maxConns }
