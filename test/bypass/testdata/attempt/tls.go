//go:build linux

package main

import (
	"encoding/binary"
	"net"
	"strings"
	"time"
)

// tlsHello HOW ADDRESS SNI TOKEN [WORDS...]: dials and says a ClientHello that carries the
// token as its session id, and then the words. HOW is how the hello is made: plain, none
// (no SNI), twice (two extensions), list (two names in one; the second is behind a comma in
// SNI), records (one octet of the name in another record), slow (in single segments), v2
// (the hello of SSL 2), connect (through the proxy, by a CONNECT to the name before a
// slash), after (behind a hello for the name before the slash), grease (with an extension of ECH).
func tlsHello(args []string) error {
	how, address, sni, token, words := args[0], args[1], args[2], args[3], args[4:]
	conn, err := (&net.Dialer{Timeout: dialTime}).Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	sni, err = unescape(sni)
	if err != nil {
		return err
	}
	first, second, _ := strings.Cut(sni, "/")
	switch how {
	case "none":
		return sayHello(conn, record(hello(token)), words)
	case "twice":
		return sayHello(conn, record(hello(token, serverNames(first), serverNames(second))), words)
	case "list":
		return sayHello(conn, record(hello(token, serverNames(strings.Split(sni, "/")...))), words)
	case "grease":
		return sayHello(conn, record(hello(token, serverNames(sni), extension(0xfe0d, []byte(token)))), words)
	case "records":
		h := hello(token, serverNames(sni))
		at := strings.Index(string(h), sni) + 1
		return sayHello(conn, append(record(h[:at]), record(h[at:])...), words)
	case "slow":
		for _, b := range record(hello(token, serverNames(sni))) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return err
			}
		}
		return sayHello(conn, nil, words)
	case "v2":
		return sayHello(conn, helloV2(token), words)
	case "connect":
		if err := talk(conn, []string{"CONNECT " + first + " HTTP/1.1\r\nHost: " + first + "\r\n\r\n"}); err != nil {
			return err
		}
		return sayHello(conn, record(hello(token, serverNames(second))), words)
	case "after": // a whole hello with another name, then the one with the token
		if err := talk(conn, []string{string(escaped(record(hello("0123456789abcdef", serverNames(first)))))}); err != nil {
			return err
		}
		return sayHello(conn, record(hello(token, serverNames(second))), words)
	case "ccs": // what comes in between when a server asks for another hello
		before := append(record(hello("0123456789abcdef", serverNames(first))), 20, 3, 3, 0, 1, 1)
		return sayHello(conn, append(before, record(hello(token, serverNames(second)))...), words)
	default:
		return sayHello(conn, record(hello(token, serverNames(sni))), words)
	}
}

// escaped makes octets words.
func escaped(b []byte) []byte {
	const hex = "0123456789abcdef"
	var out []byte
	for _, c := range b {
		out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
	}
	return out
}

func sayHello(conn net.Conn, raw []byte, words []string) error {
	_ = conn.SetWriteDeadline(time.Now().Add(dialTime))
	return talk(conn, append([]string{string(escaped(raw))}, words...))
}

func record(payload []byte) []byte {
	return append([]byte{22, 3, 1, byte(len(payload) >> 8), byte(len(payload))}, payload...)
}

// hello is a ClientHello whose session id is token.
func hello(token string, extensions ...[]byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(append(body, byte(len(token))), token...)
	body = append(body, 0, 4, 0x13, 1, 0xc0, 0x2f, 1, 0)
	var all []byte
	for _, e := range extensions {
		all = append(all, e...)
	}
	all = append(all, extension(10, []byte{0, 2, 0, 29})...)
	all = append(all, extension(43, []byte{2, 3, 4})...)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(all))), all...)
	return append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

func extension(kind uint16, data []byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, kind)
	return append(binary.BigEndian.AppendUint16(out, uint16(len(data))), data...)
}

func serverNames(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(append(list, 0, byte(len(n)>>8), byte(len(n))), n...)
	}
	return extension(0, append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...))
}

func helloV2(token string) []byte {
	body := []byte{1, 3, 1, 0, 3, 0, 0, 0, byte(len(token)), 0, 0, 0x2f}
	body = append(body, token...)
	return append([]byte{0x80 | byte(len(body)>>8), byte(len(body))}, body...)
}
