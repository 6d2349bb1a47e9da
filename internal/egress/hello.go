package egress

import (
	"encoding/binary"
	"errors"
	"io"
)

// Bounds of a ClientHello, which several records may carry.
const (
	maxHello  = 64 << 10
	maxRecord = 1 << 14
	recordLen = 5 // of a record's header
)

// watched is how much a client may send before a second ClientHello that is still seen:
// early data, which a server that asks for another hello has skipped. Servers take less.
const watched = 256 << 10

// Types of record and of handshake message.
const (
	recordChange    = 20
	recordAlert     = 21
	recordHandshake = 22
	recordData      = 23
	typeClientHello = 1
	extServerName   = 0
)

// What is wrong with the beginning of a TLS connection.
var (
	errNotTLS     = errors.New("what is sent is not TLS")
	errHello      = errors.New("the ClientHello is malformed")
	errNoName     = errors.New("TLS without a server name (SNI)")
	errSeveralSNI = errors.New("TLS with several server names")
)

// looksTLS reports whether b may be the beginning of a TLS record.
func looksTLS(b []byte) bool {
	return len(b) > 0 && b[0] == recordHandshake && (len(b) < 2 || b[1] == 3)
}

// readHello reads a ClientHello, which is returned as it was sent, and the one server name
// in it. r is read up to the end of its last record and no further.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var body []byte
	for {
		payload, next, err := readHandshake(r, raw)
		if raw = next; err != nil {
			return raw, "", err
		}
		if body = append(body, payload...); len(body) < 4 {
			continue
		}
		size := int(body[1])<<16 | int(body[2])<<8 | int(body[3])
		switch {
		case body[0] != typeClientHello || size > maxHello || len(raw) > 2*maxHello:
			return raw, "", errHello
		case len(body) > 4+size:
			return raw, "", errHello // nothing may follow it before the server answers
		case len(body) == 4+size:
			name, err = serverName(body[4:])
			return raw, name, err
		}
	}
}

// readHandshake reads one record of handshake bytes, and appends it to raw as it is.
func readHandshake(r io.Reader, raw []byte) (payload, all []byte, err error) {
	at := len(raw)
	raw = append(raw, make([]byte, recordLen)...)
	if _, err := io.ReadFull(r, raw[at:at+1]); err != nil {
		return nil, raw[:at], err
	}
	if raw[at] != recordHandshake {
		return nil, raw[:at+1], errNotTLS
	}
	if n, err := io.ReadFull(r, raw[at+1:]); err != nil {
		return nil, raw[:at+1+n], err
	}
	size := int(binary.BigEndian.Uint16(raw[at+3:]))
	switch {
	case raw[at+1] != 3:
		return nil, raw, errNotTLS
	case size == 0 || size > maxRecord:
		return nil, raw, errHello
	}
	raw = append(raw, make([]byte, size)...)
	payload = raw[at+recordLen:]
	if n, err := io.ReadFull(r, payload); err != nil {
		return nil, raw[:at+recordLen+n], err
	}
	return payload, raw, nil
}

// fields reads a message of TLS: the parts of a known size, or behind their size.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n > len(f.rest) {
		f.bad, f.rest = true, nil
		return nil
	}
	out := f.rest[:n]
	f.rest = f.rest[n:]
	return out
}

// sized takes a part whose length is in the n bytes before it.
func (f *fields) sized(n int) []byte {
	size := 0
	for _, b := range f.take(n) {
		size = size<<8 | int(b)
	}
	return f.take(size)
}

// serverName reads the body of a ClientHello. It is stricter than servers are: what two
// readers could read in two ways is an error.
func serverName(hello []byte) (string, error) {
	f := fields{rest: hello}
	f.take(2 + 32) // version, random
	session, suites, methods := f.sized(1), f.sized(2), f.sized(1)
	if f.bad || len(session) > 32 || len(suites) == 0 || len(suites)%2 != 0 || len(methods) == 0 {
		return "", errHello
	}
	if len(f.rest) == 0 {
		return "", errNoName
	}
	list := fields{rest: f.sized(2)}
	if f.bad || len(f.rest) != 0 {
		return "", errHello
	}
	name, found := "", false
	for len(list.rest) > 0 {
		kind, data := list.take(2), list.sized(2)
		if list.bad {
			return "", errHello
		}
		if binary.BigEndian.Uint16(kind) != extServerName {
			continue
		}
		if found {
			return "", errSeveralSNI
		}
		var err error
		if name, err = oneName(data); err != nil {
			return "", err
		}
		found = true
	}
	if !found {
		return "", errNoName
	}
	return name, nil
}

// oneName reads the extension of server names.
func oneName(data []byte) (string, error) {
	ext := fields{rest: data}
	list := fields{rest: ext.sized(2)}
	if ext.bad || len(ext.rest) != 0 {
		return "", errHello
	}
	kind, name := list.take(1), list.sized(2)
	switch {
	case list.bad || kind[0] != 0 || len(name) == 0:
		return "", errHello
	case len(list.rest) != 0:
		return "", errSeveralSNI
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return "", errHello
		}
	}
	return string(name), nil
}

// secondHello reports whether a record of handshake bytes that begins with b (its header, and
// up to six bytes behind) begins a ClientHello in the clear, and is not an encrypted message
// that looks like one. Encrypted ones are longer than six bytes, and a record without any is
// read by some servers as if it were not there.
func secondHello(b []byte) bool {
	switch size := binary.BigEndian.Uint16(b[3:]); {
	case size == 0:
		return true
	case size < 6:
		return len(b) > recordLen && b[5] == typeClientHello
	}
	return len(b) == recordLen+6 && b[5] == typeClientHello && b[6] <= 1 && b[9] == 3
}
