//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel are ways around the rules of the kernel: other protocols, other sockets, and changes
// to the rules themselves.
func kernel() map[string]func([]string) error {
	return map[string]func([]string) error{
		"raw": rawIP, "ping": ping, "packet": packet, "proto": otherProtocol, "vsock": vsock, "smc": smc, "uring": uring,
		"nft": flushRules, "route": func([]string) error { return rtnetlink(unix.RTM_NEWROUTE, newRoute()) },
		"addr": func([]string) error { return rtnetlink(unix.RTM_NEWADDR, newAddress()) },
		"link": func([]string) error { return rtnetlink(unix.RTM_NEWLINK, newLink()) },
		"tun":  tun, "conntrack": flushConntrack,
	}
}

func ipv4(s string) [4]byte { return [4]byte(net.ParseIP(s).To4()) }

// lacking wraps errors that tell of a kernel without the thing.
func lacking(err error) error {
	for _, e := range []unix.Errno{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENODEV, unix.ENOSYS, unix.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errLacks, err)
		}
	}
	return err
}

// rawIP PROTOCOL ADDRESS TOKEN: one packet of a protocol; that of ICMP is an echo request.
func rawIP(args []string) error {
	proto, _ := strconv.Atoi(args[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, echo(args[2]), 0, &unix.SockaddrInet4{Addr: ipv4(args[1])})
}

func echo(text string) []byte {
	b := append([]byte{8, 0, 0, 0, 1, 2, 0, 1}, text...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}

// ping ADDRESS TOKEN: an echo request by the socket that needs no privilege.
func ping(args []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, echo(args[1]), 0, &unix.SockaddrInet4{Addr: ipv4(args[0])})
}

// packet TOKEN: a frame on the only interface.
func packet(args []string) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(args[0]), 0, &unix.SockaddrLinklayer{Protocol: 0xb588, Ifindex: 1, Halen: 6})
}

// otherProtocol sctp|dccp|udplite ADDRESS PORT TOKEN.
func otherProtocol(args []string) error {
	kind := map[string][2]int{
		"sctp": {unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, "dccp": {6, 33}, "udplite": {unix.SOCK_DGRAM, 136},
	}[args[0]]
	fd, err := unix.Socket(unix.AF_INET, kind[0], kind[1])
	if err != nil {
		return lacking(err)
	}
	defer unix.Close(fd)
	port, _ := strconv.Atoi(args[2])
	to := &unix.SockaddrInet4{Addr: ipv4(args[1]), Port: port}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 2})
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(args[3]))
	return err
}

// smc ADDRESS PORT TOKEN: a socket of shared-memory communications, which falls back to TCP.
func smc(args []string) error {
	fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM, 0)
	if err != nil {
		return lacking(err)
	}
	defer unix.Close(fd)
	port, _ := strconv.Atoi(args[1])
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: ipv4(args[0]), Port: port}); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(args[2]))
	return err
}

// vsock CONTEXT PORT TOKEN: to the machine below a virtual machine, or to this one.
func vsock(args []string) error {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return lacking(err)
	}
	defer unix.Close(fd)
	cid, _ := strconv.Atoi(args[0])
	port, _ := strconv.Atoi(args[1])
	_ = unix.SetsockoptTimeval(fd, unix.AF_VSOCK, unix.SO_VM_SOCKETS_CONNECT_TIMEOUT, &unix.Timeval{Sec: 2})
	err = unix.Connect(fd, &unix.SockaddrVM{CID: uint32(cid), Port: uint32(port)})
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("%w, of which anybody answers: %w", errLacks, err)
	}
	if err != nil {
		return lacking(err)
	}
	_, err = unix.Write(fd, []byte(args[2]))
	return err
}

// message is a request of netlink.
func message(kind int, flags uint16, body []byte) []byte {
	e := binary.NativeEndian
	b := e.AppendUint32(nil, uint32(16+len(body)))
	b = e.AppendUint16(e.AppendUint16(b, uint16(kind)), unix.NLM_F_REQUEST|flags)
	b = append(append(b, make([]byte, 8)...), body...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func netlink(family int, messages []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, family)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
	if err := unix.Sendto(fd, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return err
	}
	if n < 20 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return errors.New("another answer")
	}
	if errno := int32(binary.NativeEndian.Uint32(b[16:])); errno != 0 && unix.Errno(-errno) != unix.EEXIST {
		return lacking(unix.Errno(-errno))
	}
	fmt.Println("ok")
	return nil
}

func rtnetlink(kind int, body []byte) error {
	return netlink(unix.NETLINK_ROUTE, message(kind, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, body))
}

func newRoute() []byte { // 203.0.113.0/24 on lo
	body := []byte{unix.AF_INET, 24, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0}
	body = append(body, attr(unix.RTA_DST, []byte{203, 0, 113, 0})...)
	return append(body, attr(unix.RTA_OIF, []byte{1, 0, 0, 0})...)
}

func newAddress() []byte {
	body := []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0}
	return append(body, attr(unix.IFA_LOCAL, []byte{203, 0, 113, 9})...)
}

func newLink() []byte {
	body := make([]byte, unix.SizeofIfInfomsg)
	body = append(body, attr(unix.IFLA_IFNAME, []byte("byp0\x00"))...)
	return append(body, attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, []byte("veth")))...)
}

// flushRules asks for an empty ruleset.
func flushRules([]string) error {
	gen := []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES}
	b := message(unix.NLMSG_MIN_TYPE, 0, gen)
	b = append(b, message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE, unix.NLM_F_ACK, []byte{unix.AF_UNSPEC, 0, 0, 0})...)
	return netlink(unix.NETLINK_NETFILTER, append(b, message(unix.NLMSG_MIN_TYPE+1, 0, gen)...))
}

// flushConntrack asks that connections are forgotten, and with them where they were led.
func flushConntrack([]string) error {
	const deleteTracked = 1<<8 | 2
	return netlink(unix.NETLINK_NETFILTER, message(deleteTracked, unix.NLM_F_ACK, []byte{unix.AF_INET, 0, 0, 0}))
}

// tun makes an interface, if need be on a device that it makes first.
func tun([]string) error {
	path := "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if errors.Is(err, unix.ENOENT) {
		if err := unix.Mknod("tun", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))); err != nil {
			return err
		}
		fd, err = unix.Open("tun", unix.O_RDWR, 0)
	}
	if err != nil {
		return lacking(err)
	}
	ifr, err := unix.NewIfreq("byp1")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return err
	}
	fmt.Println("ok")
	return nil
}

// uring ADDRESS PORT TOKEN: connects and sends by io_uring, of which tracers of system calls
// see nothing.
func uring(args []string) error {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		return errno // forbidden, or not there
	}
	ring, err := unix.Mmap(int(fd), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	entries, err := unix.Mmap(int(fd), 0x10000000, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	u := &submitter{fd: fd, ring: ring, entries: entries, params: params[:]}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	port, _ := strconv.Atoi(args[1])
	to := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: ipv4(args[0])}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&to.Port))[:], uint16(port))
	const connect, send = 16, 26
	if err := u.submit(connect, s, uintptr(unsafe.Pointer(&to)), 0, unix.SizeofSockaddrInet4); err != nil {
		return err
	}
	text := []byte(args[2])
	if err := u.submit(send, s, uintptr(unsafe.Pointer(&text[0])), len(text), 0); err != nil {
		return err
	}
	time.Sleep(talkTime / 4)
	fmt.Println("ok")
	return nil
}

type submitter struct {
	fd                    uintptr
	ring, entries, params []byte
}

// submit hands one operation in and waits for it.
func (u *submitter) submit(op byte, fd int, addr uintptr, size, off int) error {
	e := binary.NativeEndian
	tailAt, maskAt, arrayAt := e.Uint32(u.params[44:]), e.Uint32(u.params[48:]), e.Uint32(u.params[64:])
	tail := e.Uint32(u.ring[tailAt:])
	index := tail & e.Uint32(u.ring[maskAt:])
	sqe := u.entries[index*64 : index*64+64]
	clear(sqe)
	sqe[0] = op
	e.PutUint32(sqe[4:], uint32(fd))
	e.PutUint64(sqe[8:], uint64(off))
	e.PutUint64(sqe[16:], uint64(addr))
	e.PutUint32(sqe[24:], uint32(size))
	e.PutUint32(u.ring[arrayAt+4*index:], index)
	e.PutUint32(u.ring[tailAt:], tail+1)
	const getEvents = 1
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, u.fd, 1, 1, getEvents, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// whichPID reads the number of a process.
func whichPID(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

func errnoOf(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
