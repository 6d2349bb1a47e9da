package egress_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// helloOf is the ClientHello that Go's TLS sends for a name.
func helloOf(t testing.TB, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(t.Context())
	}()
	b := make([]byte, 5)
	if _, err := io.ReadFull(ours, b); err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, binary.BigEndian.Uint16(b[3:]))...)
	if _, err := io.ReadFull(ours, b[5:]); err != nil {
		t.Fatal(err)
	}
	return b
}

// hello builds a ClientHello with these extensions.
func hello(extensions ...[]byte) []byte {
	ext := slices.Concat(extensions...)
	body := slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0, 2, 0x13, 1, 1, 0}, be16(len(ext)), ext)
	return records(len(body)+4, handshake(body))
}

func handshake(body []byte) []byte {
	return slices.Concat([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body)
}

// records puts a message into records of at most size bytes.
func records(size int, message []byte) (out []byte) {
	for part := range slices.Chunk(message, size) {
		out = slices.Concat(out, []byte{22, 3, 1}, be16(len(part)), part)
	}
	return out
}

func be16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }

func extension(kind int, data []byte) []byte {
	return slices.Concat(be16(kind), be16(len(data)), data)
}

func names(list ...string) []byte {
	var all []byte
	for _, n := range list {
		all = slices.Concat(all, []byte{0}, be16(len(n)), []byte(n))
	}
	return extension(0, slices.Concat(be16(len(all)), all))
}

// tlsWorld has good.test, at the ports that TLS is tried at.
func tlsWorld(t testing.TB, port string) (*world, *target) {
	t.Helper()
	w := newWorld(t, []string{"good.test", "good.test:8443", "other.test"})
	w.name("good.test", "93.184.216.1")
	return w, w.serve(t, "93.184.216.1:"+port, nil)
}

func TestTLSForTheNameIsCarried(t *testing.T) {
	grease := extension(0xfe0d, []byte("anything at all"))
	whole := helloOf(t, "good.test")
	for name, text := range map[string][]byte{
		"of Go":             whole,
		"in capitals":       hello(names("GOOD.test")),
		"with ECH":          hello(grease, names("good.test")),
		"in small records":  records(7, whole[5:]),
		"an octet a record": records(1, hello(names("good.test"))[5:]),
		"a large one":       hello(extension(21, make([]byte, 20000)), names("good.test"))[:5+4+0],
	} {
		if name == "a large one" {
			body := slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0, 2, 0x13, 1, 1, 0}, be16(20004+len(names("good.test"))), extension(21, make([]byte, 20000)), names("good.test"))
			text = records(16384, handshake(body))
		}
		for _, port := range []string{"443", "80", "8443", "22"} {
			t.Run(name+"/"+port, func(t *testing.T) {
				w, s := tlsWorld(t, port)
				conn, v := w.named(t, "good.test", atoi(port))
				if !v.OK {
					t.Fatal(v.Reason)
				}
				send := string(text) + "\x17\x03\x03\x00\x04data"
				say(t, conn, send)
				if got := w.ended(t, s); got != send {
					t.Errorf("%d bytes of %d arrived", len(got), len(send))
				}
			})
		}
	}
}

func TestTLSThatIsNotForTheNameArrivesNowhere(t *testing.T) {
	good := hello(names("good.test"))
	wrong := slices.Clone(good)
	wrong[len(wrong)-10]++ // the length of the name
	for name, text := range map[string][]byte{
		"another name":         helloOf(t, "evil.test"),
		"one that is allowed":  helloOf(t, "other.test"),
		"a suffix":             helloOf(t, "xgood.test"),
		"below":                helloOf(t, "a.good.test"),
		"a dot at its end":     hello(names("good.test.")),
		"a zero":               hello(names("good.test\x00.evil.test")),
		"no name":              hello(extension(10, []byte{0, 2, 0, 23})),
		"no extensions":        records(100, handshake(slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0, 2, 0x13, 1, 1, 0}))),
		"two names":            hello(names("good.test", "evil.test")),
		"two extensions":       hello(names("good.test"), names("evil.test")),
		"an empty name":        hello(names("")),
		"another kind of name": hello(extension(0, []byte("\x00\x0c\x01\x00\x09good.test"))),
		"a wrong length":       wrong,
		"more than one":        records(1000, slices.Concat(good[5:], good[5:])),
		"of a server":          append([]byte{22, 3, 1, 0, 4}, 2, 0, 0, 0),
		"an empty record":      {22, 3, 1, 0, 0},
		"endless":              records(16384, slices.Concat([]byte{1, 0xff, 0xff, 0xff}, make([]byte, 60000))),
		"an alert between":     slices.Concat(good[:3], be16(4), good[5:9], []byte{21, 3, 3, 0, 2, 1, 0}, good[9:]),
		"cut off":              good[:20],
		"ECH, evil outside":    hello(extension(0xfe0d, []byte("good.test")), names("evil.test")),
	} {
		for _, port := range []string{"443", "80", "8443", "22"} {
			t.Run(name+"/"+port, func(t *testing.T) {
				w, s := tlsWorld(t, port)
				conn, v := w.named(t, "good.test", atoi(port))
				if !v.OK {
					t.Fatal(v.Reason)
				}
				answer := say(t, conn, string(text))
				if got := w.ended(t, s); got != "" {
					t.Errorf("%q arrived", got)
				}
				if name != "cut off" && answer != "\x15\x03\x03\x00\x02\x02\x31" {
					t.Errorf("the client got %q", answer)
				}
				if denied, _ := w.told(); len(denied) != 1 || denied[0].Port != atoi(port) {
					t.Errorf("told: %+v", denied)
				}
			})
		}
	}
}

// On 443 there is TLS only, on 80 TLS and HTTP; other ports carry what is neither.
func TestWhatIsNeitherTLSNorHTTP(t *testing.T) {
	for _, c := range []struct {
		port, text string
		passes     bool
	}{
		{"443", "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", false},
		{"443", "SSH-2.0-x\r\n", false},
		{"443", "\x80\x2e\x01\x03\x01", false},
		{"443", "\x17\x03\x03\x00\x04data", false},
		{"80", "SSH-2.0-x\r\n", false},
		{"22", "SSH-2.0-x\r\nmore", true},
		{"8443", "\x00\x00\x00\x08\x04\xd2\x16\x2f", true},
		{"8443", "EHLO a.test\r\n", true},
		{"8443", "*1\r\n$4\r\nPING\r\n", true},
		{"8443", "G", true},
		{"22", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
		{"22", "get\t/ http/1.1\r\nHost: evil.test\r\n\r\n", false},
		{"22", "\r\n\n GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", false},
	} {
		w, s := tlsWorld(t, c.port)
		conn, v := w.named(t, "good.test", atoi(c.port))
		if !v.OK {
			t.Fatal(v.Reason)
		}
		say(t, conn, c.text)
		want := ""
		if c.passes {
			want = c.text
		}
		if got := w.ended(t, s); got != want {
			t.Errorf("port %s, %q: %q arrived", c.port, c.text, got)
		}
	}
}

// After a HelloRetryRequest a client sends a second hello in the clear, and servers go by
// its name. Early data may come before it.
func TestSecondHelloIsJudged(t *testing.T) {
	first := hello(names("good.test"))
	change, early := "\x14\x03\x03\x00\x01\x01", "\x17\x03\x03\x00\x05early"
	long := hello(names("evil.test"))
	long[6] = 1                                                        // of a length that only some servers take
	finished := "\x16\x03\x03\x00\x08\x01\xff\x01\x02\x03\x04\x05\x06" // encrypted: looks like nothing
	for name, c := range map[string]struct {
		text   string
		passes bool
	}{
		"the same":                   {string(first) + change + string(hello(names("good.test"))) + early, true},
		"another":                    {string(first) + string(hello(names("evil.test"))), false},
		"another behind early data":  {string(first) + early + change + early + string(hello(names("evil.test"))), false},
		"another in pieces":          {string(first) + change + string(records(9, hello(names("evil.test"))[5:])), false},
		"another octet by octet":     {string(first) + change + string(records(1, hello(names("evil.test"))[5:])), false},
		"another behind an alert":    {string(first) + "\x15\x03\x03\x00\x02\x01\x5a" + string(hello(names("evil.test"))), false},
		"another behind nothing":     {string(first) + "\x16\x03\x03\x00\x00" + string(hello(names("evil.test"))), false},
		"another, very long":         {string(first) + string(long), false},
		"an alert, and the end":      {string(first) + "\x15\x03\x03\x00\x02\x02\x30", true},
		"TLS 1.2":                    {string(first) + "\x16\x03\x03\x00\x02\x10\x00" + change + finished + early, true},
		"TLS 1.2, resumed":           {string(first) + change + finished + early, true},
		"an end within a record":     {string(first) + early[:7], true},
		"an end within a header":     {string(first) + early[:3], true},
		"what is no record any more": {string(first) + "whatever", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tlsWorld(t, "443")
			conn, _ := w.named(t, "good.test", 443)
			say(t, conn, c.text)
			got := w.ended(t, s)
			if c.passes && got != c.text || !c.passes && (strings.Contains(got, "evil") || !strings.HasPrefix(c.text, got)) {
				t.Errorf("%q arrived", got)
			}
			if denied, _ := w.told(); (len(denied) == 0) != c.passes {
				t.Errorf("told: %+v", denied)
			}
		})
	}
}

// A whole TLS connection, both ways, is what it was.
func TestTLSWorks(t *testing.T) {
	cert := certificate(t, "good.test")
	w := newWorld(t, []string{"*.good.test"})
	w.name("a.good.test", "93.184.216.1")
	w.serve(t, "93.184.216.1:443", func(r io.Reader, conn *net.TCPConn) {
		server := tls.Server(joined{conn, r}, &tls.Config{Certificates: []tls.Certificate{cert}})
		_, _ = io.Copy(server, server)
		_ = server.CloseWrite()
	})
	conn, v := w.offer(t, wire.Egress{Name: "a.good.test", Addr: "198.18.0.1:443"})
	if !v.OK {
		t.Fatal(v.Reason)
	}
	client := tls.Client(conn, &tls.Config{ServerName: "a.good.test", InsecureSkipVerify: true})
	sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	go func() {
		_, _ = client.Write(sent)
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// joined reads from a reader beside the connection.
type joined struct {
	net.Conn
	r io.Reader
}

func (j joined) Read(b []byte) (int, error) { return j.r.Read(b) }
