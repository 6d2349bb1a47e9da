//go:build linux

package bypass

import (
	"bytes"
	"io"
	"net"
	"strings"
	"time"
)

// talk is a server of everything: to HTTP it answers as HTTP, to all else with a word.
func (w *world) talk(c net.Conn, a *arrival) {
	if a.port == 15001 || a.port == 3128 {
		w.openProxy(c)
		return
	}
	var said []byte
	b := make([]byte, 16<<10)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		said = append(said, b[:n]...)
		for {
			head, rest, found := bytes.Cut(said, []byte("\r\n\r\n"))
			if !found || !bytes.Contains(head, []byte(" HTTP/1.")) {
				break
			}
			said = rest
			if _, err := io.WriteString(c, response(string(head))); err != nil {
				return
			}
		}
		if len(said) > 0 && !bytes.Contains(said, []byte(" HTTP/1.")) {
			said = nil
			if _, err := io.WriteString(c, "world\n"); err != nil {
				return
			}
		}
	}
}

// response answers a request: /to/N leads to the N-th evil name, and a wish to speak
// WebSocket is granted but at /no-upgrade.
func response(head string) string {
	line, fields, _ := strings.Cut(head, "\r\n")
	_, path, _ := strings.Cut(line, " ")
	if i := strings.Index(path, "://"); i >= 0 {
		_, path, _ = strings.Cut(path[i+3:], "/")
		path = "/" + path
	}
	if n, ok := strings.CutPrefix(path, "/to/"); ok {
		n, _, _ = strings.Cut(n, " ")
		return "HTTP/1.1 302 Found\r\nLocation: http://evil" + n + ".test/\r\nContent-Length: 0\r\n\r\n"
	}
	if strings.Contains(strings.ToLower(fields), "upgrade: websocket") && !strings.HasPrefix(path, "/no-upgrade") {
		return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
	}
	return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nworld\n"
}

// openProxy is a proxy that lets everybody everywhere, for the runs in which nothing is
// enforced.
func (w *world) openProxy(c net.Conn) {
	var said []byte
	b := make([]byte, 16<<10)
	for !bytes.Contains(said, []byte("\r\n\r\n")) {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		said = append(said, b[:n]...)
	}
	_, rest, _ := strings.Cut(string(said), " ")
	target, _, _ := strings.Cut(rest, " ")
	tunnel := bytes.HasPrefix(said, []byte("CONNECT "))
	if i := strings.Index(target, "://"); i >= 0 {
		target, _, _ = strings.Cut(target[i+3:], "/")
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), "80"
	}
	// As a proxy in C would, which sees a name end at a NUL.
	host, _, _ = strings.Cut(host, "\x00")
	host, _, _ = strings.Cut(host, "%00")
	if _, after, found := strings.Cut(host, "@"); found {
		host = after
	}
	up, err := net.DialTimeout("tcp", net.JoinHostPort(w.names.loosely(host), port), 5*time.Second)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 "+err.Error()+"\r\n\r\n")
		return
	}
	defer up.Close()
	if tunnel {
		_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	} else {
		_, err = up.Write(said)
	}
	if err != nil {
		return
	}
	w.wg.Go(func() {
		_, _ = io.Copy(up, c)
		_ = up.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(c, up)
}
