package jail

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// The little of netlink that the set-up needs is written out here. The libraries for it
// (vishvananda/netlink, google/nftables) would be a third of a megabyte in a binary that is
// copied into sandboxes, and tables that every start of it has to build.

// netlink is a socket to one part of the kernel's networking.
type netlink struct{ fd int }

func openNetlink(family int) (netlink, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return netlink{}, os.NewSyscallError("socket", err)
	}
	return netlink{fd: fd}, nil
}

func (n netlink) close() { _ = unix.Close(n.fd) }

func (n netlink) send(messages []byte) error {
	return os.NewSyscallError("sendto", unix.Sendto(n.fd, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// answer reads what the kernel says first: an error, or that what asked for an answer is
// done.
func (n netlink) answer() error {
	b := make([]byte, 8192)
	size, _, err := unix.Recvfrom(n.fd, b, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	if size < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return os.NewSyscallError("netlink", unix.EPROTO)
	}
	if errno := int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// appendMessage appends a request with its header. The kernel tells the messages of one
// socket apart by their order here, so none has a number.
func appendMessage(dst []byte, kind uint16, flags uint16, body []byte) []byte {
	e := binary.NativeEndian
	dst = e.AppendUint32(dst, uint32(unix.NLMSG_HDRLEN+len(body)))
	dst = e.AppendUint16(dst, kind)
	dst = e.AppendUint16(dst, unix.NLM_F_REQUEST|flags)
	dst = append(dst, make([]byte, 8)...) // sequence and port
	return pad(append(dst, body...))
}

func appendAttr(msg []byte, kind uint16, value []byte) []byte {
	msg = binary.NativeEndian.AppendUint16(msg, uint16(unix.SizeofRtAttr+len(value)))
	msg = binary.NativeEndian.AppendUint16(msg, kind)
	return pad(append(msg, value...))
}

func pad(msg []byte) []byte {
	for len(msg)%unix.NLMSG_ALIGNTO != 0 {
		msg = append(msg, 0)
	}
	return msg
}
