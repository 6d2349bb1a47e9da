package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzHello compares our reading of a ClientHello to that of Go's TLS: a name that we take
// is the one that a server goes by, whatever is sent.
func FuzzHello(f *testing.F) {
	f.Add([]byte{22, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	for _, name := range []string{"good.test", "a.b.c.example"} {
		f.Add(sentBy(&tls.Config{ServerName: name, InsecureSkipVerify: true}))
		f.Add(sentBy(&tls.Config{ServerName: name, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := bytes.NewReader(sent)
		raw, name, err := readHello(in)
		if !bytes.HasPrefix(sent, raw) {
			t.Fatalf("%x is not what was sent", raw)
		}
		if err != nil {
			return
		}
		if used := len(sent) - in.Len(); used != len(raw) {
			t.Fatalf("%d bytes were read of %d", used, len(raw))
		}
		if theirs, parsed := nameForGo(raw); parsed && theirs != name {
			t.Fatalf("we read %q, Go reads %q", name, theirs)
		}
	})
}

// sentBy is what a client sends first.
func sentBy(config *tls.Config) []byte {
	var sent bytes.Buffer
	_ = tls.Client(&half{w: &sent}, config).Handshake()
	return sent.Bytes()
}

// nameForGo returns the server name that a server of Go's TLS sees.
func nameForGo(sent []byte) (name string, parsed bool) {
	_ = tls.Server(&half{r: bytes.NewReader(sent), w: io.Discard}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, parsed = h.ServerName, true
			return nil, errors.New("seen")
		},
	}).Handshake()
	return name, parsed
}

// half is a connection to nobody.
type half struct {
	net.Conn
	r io.Reader
	w io.Writer
}

func (h *half) Write(b []byte) (int, error) { return h.w.Write(b) }
func (h *half) Read(b []byte) (int, error) {
	if h.r == nil {
		return 0, io.EOF
	}
	return h.r.Read(b)
}
func (h *half) Close() error                     { return nil }
func (h *half) SetDeadline(time.Time) error      { return nil }
func (h *half) SetWriteDeadline(time.Time) error { return nil }

// FuzzHead compares our reading of a request to that of Go's HTTP: what we take has the same
// host and the same body, whatever is sent.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"GET http://good.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: good.test:80\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.0\r\nHost: good.test\r\nContent-Length: 5\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n X: y\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		h, err := parseHead(sent)
		if err != nil {
			return
		}
		for _, b := range [][]byte{sent, h.forward} {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
			if err != nil {
				continue // it is stricter in places
			}
			host, _, _ := strings.Cut(strings.ToLower(r.Host), ":")
			chunked := len(r.TransferEncoding) > 0
			if host != h.host || chunked != h.chunked || !chunked && r.ContentLength != h.length || r.Method != h.method {
				t.Fatalf("%q: we read %+v, Go reads host %q, length %d, %v", b, h, r.Host, r.ContentLength, r.TransferEncoding)
			}
		}
		if again, err := parseHead(h.forward); err != nil || again.host != h.host || again.length != h.length || again.chunked != h.chunked {
			t.Fatalf("%q is sent on as %q: %v", sent, h.forward, err)
		}
		if is, _ := looksHTTP(sent); !is {
			t.Fatalf("%q does not look like what it is", sent)
		}
	})
}

// FuzzLooksHTTP: what Go's HTTP takes for a request looks like one.
func FuzzLooksHTTP(f *testing.F) {
	f.Add([]byte("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		is, more := looksHTTP(sent)
		if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(sent))); err == nil && !is {
			t.Fatalf("%q: %v, %v", sent, is, more)
		}
	})
}

// FuzzChunkSize: no size that others read otherwise.
func FuzzChunkSize(f *testing.F) {
	for _, seed := range []string{"5\r\n", "5;a=b\r\n", "0x5\r\n", "-1\r\n", " 5\r\n", "5 \r\n", "ffffffffffffffff\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		n, err := chunkSize(line)
		if err == nil && (n < 0 || bytes.ContainsAny(line[:len(line)-2], "\r\n\x00")) {
			t.Fatalf("%q is %d", line, n)
		}
	})
}
