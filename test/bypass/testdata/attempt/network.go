//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialTime = 4 * time.Second
	talkTime = 1500 * time.Millisecond // for an answer to the last words
	pause    = 80 * time.Millisecond   // between words
)

func network() map[string]func([]string) error {
	return map[string]func([]string) error{
		"tcp": tcp, "tls": tlsHello, "udp": udp, "dns": dns, "unix": unixSocket,
		"dial": dialWith, "port": takePort, "hammer": hammer,
	}
}

// tcp ADDRESS WORDS...: dials and says the words, each after a pause, in which an answer may
// come.
func tcp(args []string) error { return converse("tcp", args) }

// udp ADDRESS WORDS: sends one datagram.
func udp(args []string) error { return converse("udp", args) }

func unixSocket(args []string) error { return converse("unix", args) }

func converse(network string, args []string) error { return converseFor(talkTime, network, args) }

func converseFor(wait time.Duration, network string, args []string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).Dial(network, args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	return talkFor(wait, conn, args[1:])
}

func talk(conn net.Conn, words []string) error { return talkFor(talkTime, conn, words) }

// talkFor says words, and waits for the answer to the last.
func talkFor(patience time.Duration, conn net.Conn, words []string) error {
	for i, w := range words {
		text, err := unescape(w)
		if err != nil {
			return fmt.Errorf("%q: %w", w, err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		wait := pause
		if i == len(words)-1 {
			wait = patience
		}
		answer := make([]byte, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		n, err := conn.Read(answer)
		fmt.Printf("<- %q\n", answer[:min(n, 160)])
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}

// dialWith OPTION ADDRESS WORDS: dials with a socket option that might lead another way.
func dialWith(args []string) error {
	options := map[string]func(fd int) error{
		"lo":          func(fd int) error { return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo") },
		"mark":        func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1) },
		"transparent": func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1) },
		"priority":    func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 6) },
		"dontroute":   func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1) },
		"freebind":    func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_FREEBIND, 1) },
		"fastopen":    func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_FASTOPEN_CONNECT, 1) },
	}
	switch name := args[0]; name {
	case "mptcp":
		d := net.Dialer{Timeout: dialTime}
		d.SetMultipathTCP(true)
		return dialAnd(&d, args[1:])
	case "freebind", "transparent":
		d := net.Dialer{Timeout: dialTime, Control: control(options[name]), LocalAddr: &net.TCPAddr{IP: net.IPv4(198, 18, 0, 77)}}
		return dialAnd(&d, args[1:])
	case "loopback":
		d := net.Dialer{Timeout: dialTime, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
		return dialAnd(&d, args[1:])
	default:
		d := net.Dialer{Timeout: dialTime, Control: control(options[name])}
		return dialAnd(&d, args[1:])
	}
}

func control(set func(fd int) error) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = set(int(fd)) })
		return errors.Join(err, failed)
	}
}

func dialAnd(d *net.Dialer, args []string) error {
	conn, err := d.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	return talk(conn, args[1:])
}

// dns udp|tcp SERVER NAME TYPE [EDNS OPTION]: one question.
func dns(args []string) error {
	q := binary.BigEndian.AppendUint16(nil, 4711)
	name, opcode := args[2], uint16(0)
	if n, rest, ok := strings.Cut(name, "!"); ok { // OPCODE!NAME
		code, _ := strconv.Atoi(n)
		name, opcode = rest, uint16(code)
	}
	more := uint16(min(len(args)-4, 1))
	for _, n := range []uint16{0x100 | opcode<<11, 1, 0, 0, more} {
		q = binary.BigEndian.AppendUint16(q, n)
	}
	for _, label := range strings.Split(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	kind, _ := strconv.Atoi(args[3])
	q = append(q, 0, byte(kind>>8), byte(kind), 0, 1)
	if more == 1 {
		q = append(q, 0, 0, 41, 4, 0, 0, 0, 0, 0, 0, byte(4+len(args[4])), 0xfd, 0xe9, 0, byte(len(args[4])))
		q = append(q, args[4]...)
	}
	if args[0] == "tcp" {
		q = append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	}
	conn, err := net.DialTimeout(args[0], args[1], dialTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(q); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(talkTime))
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	fmt.Printf("<- %d octets, code %d\n", n, answer[3]&15)
	return err
}

// takePort ADDRESS...: listens where PID 1 does, so that connections would end here.
func takePort(args []string) error {
	for _, addr := range args {
		lc := net.ListenConfig{Control: control(func(fd int) error {
			return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		})}
		ln, err := lc.Listen(noContext(), "tcp", addr)
		if err != nil {
			return err
		}
		defer ln.Close()
	}
	return nil
}

// hammer N ADDRESS WORD: N connections that say nothing, and then one that says the word.
func hammer(args []string) error {
	n, _ := strconv.Atoi(args[0])
	network, address := "tcp", args[1]
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	var open []net.Conn
	refused := 0
	for range n {
		c, err := net.DialTimeout(network, address, dialTime)
		if err != nil {
			refused++
			continue
		}
		if open = append(open, c); len(open) == 256 {
			for _, c := range open {
				c.Close()
			}
			open = open[:0]
		}
	}
	for _, c := range open {
		c.Close()
	}
	fmt.Println(refused, "of", n, "were refused")
	var err error
	for range 10 { // the ones before may not have been let go of yet
		if err = converseFor(jobTime/4, network, args[1:]); err == nil {
			return nil
		}
		time.Sleep(talkTime / 5)
	}
	return err
}
