package egress

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// Bounds of the head of a request.
const (
	maxHead   = 64 << 10
	maxFields = 256
)

// head is what decides about an HTTP/1 request.
type head struct {
	method string
	target string // as it was sent
	path   string // of the target, with its query
	host   string // lower case, without its port
	port   uint16 // 0: none was given
	minor  byte   // of the version: 0 or 1

	length  int64 // of the body; 0 where chunked
	chunked bool
	upgrade string // lower case; empty: no Upgrade

	// forward is the head as it is sent on: what came, without an offer to change the
	// protocol to one that is not checked.
	forward []byte
}

// What is wrong with a request.
var (
	errBadRequest = errors.New("the HTTP request is malformed")
	errSeveral    = errors.New("an HTTP request with several Host or framing fields")
	errNoHost     = errors.New("an HTTP request without a Host")
	errHTTP2      = errors.New("HTTP/2 without TLS is not let through")
	errTunnel     = errors.New("CONNECT through a host that is not the proxy")
)

// parseHead reads a head, its empty line included. It takes only what every server reads in
// the same way.
func parseHead(b []byte) (head, error) {
	var h head
	lines, ok := bytes.CutSuffix(b, []byte("\r\n\r\n"))
	if !ok || len(b) > maxHead {
		return h, errBadRequest
	}
	first, rest, more := bytes.Cut(lines, []byte("\r\n"))
	if bytes.HasPrefix(first, []byte("PRI * HTTP/2")) {
		return h, errHTTP2
	}
	if err := h.requestLine(first); err != nil {
		return h, err
	}
	h.forward = append(append(make([]byte, 0, len(b)), first...), "\r\n"...)
	f := fieldsSeen{head: &h}
	for n := 0; more; n++ {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\r\n"))
		if n == maxFields {
			return h, errBadRequest
		}
		if err := f.add(line); err != nil {
			return h, err
		}
	}
	h.forward = append(h.forward, "\r\n"...)
	return h, f.finish()
}

// clean reports whether a line holds no octet that ends a line or a string somewhere.
func clean(line []byte) bool {
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func (h *head) requestLine(line []byte) error {
	method, rest, ok := strings.Cut(string(line), " ")
	target, version, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || !clean(line) || strings.Contains(rest, "\t") || !token(method) || target == "" {
		return errBadRequest
	}
	switch version {
	case "HTTP/1.0":
	case "HTTP/1.1":
		h.minor = 1
	default:
		return errBadRequest
	}
	h.method, h.target, h.path = method, target, target
	if method == "CONNECT" {
		return errTunnel
	}
	if target == "*" && method == "OPTIONS" || target[0] == '/' {
		return nil
	}
	return h.absolute()
}

// absolute reads a target with a host in it.
func (h *head) absolute() error {
	scheme, rest, _ := strings.Cut(h.target, "://")
	if !strings.EqualFold(scheme, "http") {
		return errBadRequest
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, h.path = rest[:i], rest[i:]
	} else {
		h.path = "/"
	}
	if !strings.HasPrefix(h.path, "/") {
		return errBadRequest
	}
	return h.setHost(authority)
}

// setHost takes a host with or without a port; a second one must be the same.
func (h *head) setHost(authority string) error {
	name, port, hasPort := strings.Cut(authority, ":")
	var n uint64
	if hasPort {
		var err error
		if n, err = strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '+' || port[0] == '0' {
			return errBadRequest
		}
	}
	name = strings.ToLower(name)
	if name == "" || strings.ContainsAny(name, "@[]/\\%, \t") {
		return errBadRequest
	}
	if h.host != "" && (h.host != name || h.port != uint16(n)) {
		return errSeveral
	}
	h.host, h.port = name, uint16(n)
	return nil
}

// fieldsSeen reads the fields of a head one by one.
type fieldsSeen struct {
	head                 *head
	host, length, coding bool
}

func (f *fieldsSeen) add(line []byte) error {
	name, value, err := field(line)
	if err != nil {
		return err
	}
	h := f.head
	switch name {
	case "host":
		if f.host {
			return errSeveral
		}
		f.host = true
		err = h.setHost(value)
	case "content-length":
		if f.length {
			return errSeveral
		}
		f.length = true
		h.length, err = contentLength(value)
	case "transfer-encoding":
		if f.coding {
			return errSeveral
		}
		f.coding, h.chunked = true, true
		if !strings.EqualFold(value, "chunked") {
			return errBadRequest
		}
	case "upgrade":
		if h.upgrade != "" {
			return errSeveral
		}
		if h.upgrade = strings.ToLower(value); h.upgrade != "websocket" {
			return nil // not sent on
		}
	case "http2-settings":
		return nil // not sent on
	}
	h.forward = append(append(h.forward, line...), "\r\n"...)
	return err
}

// field takes a line apart. Where a name might be read in two ways it is an error: a space
// before the colon, or a line that goes on with the one before.
func field(line []byte) (name, value string, err error) {
	before, after, found := bytes.Cut(line, []byte(":"))
	if !found || !token(string(before)) || !clean(line) {
		return "", "", errBadRequest
	}
	return strings.ToLower(string(before)), strings.Trim(string(after), " \t"), nil
}

func contentLength(value string) (int64, error) {
	n, err := strconv.ParseUint(value, 10, 62)
	if err != nil || value[0] == '+' {
		return 0, errBadRequest
	}
	return int64(n), nil
}

func (f *fieldsSeen) finish() error {
	switch {
	case f.length && f.coding, f.coding && f.head.minor == 0:
		return errSeveral
	case !f.host:
		return errNoHost
	}
	return nil
}

// token reports whether s is a name of HTTP: of a method or a field.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// chunkSize reads the line before a chunk. Its extensions are let through.
func chunkSize(line []byte) (int64, error) {
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || !clean(line) {
		return 0, errBadRequest
	}
	digits, _, _ := strings.Cut(string(line), ";")
	n, err := strconv.ParseUint(strings.TrimRight(digits, " \t"), 16, 62)
	if err != nil || digits[0] == '+' || strings.ContainsAny(digits, "_xX") {
		return 0, errBadRequest
	}
	return int64(n), nil
}

// looksHTTP says whether b, the first bytes of a connection, begin what some server takes for
// an HTTP request: with a method in small letters, other white space, or empty lines before
// it. more tells that it is not certain yet.
func looksHTTP(b []byte) (is, more bool) {
	const space = " \t\v\f\r"
	b = bytes.TrimLeft(b, space+"\n")
	line, _, whole := bytes.Cut(b, []byte("\n"))
	word := line
	if i := bytes.IndexAny(line, space); i >= 0 {
		word = line[:i]
	}
	switch {
	case len(word) > 32 || len(word) > 0 && !token(string(word)):
		return false, false
	case bytes.Contains(bytes.ToUpper(line[len(word):]), []byte("HTTP/")):
		return true, false
	}
	return false, !whole && len(b) < maxHead
}
