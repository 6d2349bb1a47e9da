package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
)

// stub answers by rules, without a host.
func stub(t testing.TB, rules ...string) *Server {
	t.Helper()
	set, err := rule.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Names: set, Open: func(context.Context) (net.Conn, error) { return nil, errors.New("no host") }})
}

func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	q := dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 9, RecursionDesired: true}, Questions: []dnsmessage.Question{q}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// asked is the answer in short: its code, and what it gives.
func asked(t testing.TB, s *Server, message []byte) string {
	t.Helper()
	answer := s.answer(message)
	if answer == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		t.Fatalf("%v: % x", err, answer)
	}
	if !m.Response || !m.RecursionAvailable || m.Truncated || len(answer) > 512 || m.ID != binary.BigEndian.Uint16(message) {
		t.Errorf("%+v, %d bytes", m.Header, len(answer))
	}
	text := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, r := range m.Answers {
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			text += fmt.Sprintf(" %d.%d", body.A[0], body.A[1])
		case *dnsmessage.AAAAResource:
			text += " " + net.IP(body.AAAA[:]).String()
		case *dnsmessage.PTRResource:
			text += " " + body.PTR.String()
		}
		if r.Header.TTL > 60 {
			t.Errorf("TTL %d", r.Header.TTL)
		}
	}
	return text
}

func TestAnswers(t *testing.T) {
	s := stub(t, "a.example", "*.wild.example", "b.example:8443", "GET http://c.example/x/*")
	long := strings.Repeat("a.", 100) + "wild.example."
	const https, svcb = dnsmessage.Type(65), dnsmessage.Type(64)
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"a.example.", dnsmessage.TypeA, "Success 198.18"},
		{"A.eXample.", dnsmessage.TypeA, "Success 198.18"},
		{"wild.example.", dnsmessage.TypeA, "Success 198.18"},
		{"x.y.wild.example.", dnsmessage.TypeA, "Success 198.18"},
		{long, dnsmessage.TypeA, "Success 198.18"},
		{"_acme.wild.example.", dnsmessage.TypeA, "Success 198.18"},
		{"b.example.", dnsmessage.TypeA, "Success 198.18"},
		{"c.example.", dnsmessage.TypeA, "Success 198.18"},
		{"a.example.", dnsmessage.TypeAAAA, "Success"},
		{"a.example.", https, "Success"},
		{"a.example.", svcb, "Success"},
		{"a.example.", dnsmessage.TypeTXT, "Success"},
		{"a.example.", dnsmessage.TypeALL, "Success"},
		{"example.", dnsmessage.TypeA, "NameError"},
		{"x.a.example.", dnsmessage.TypeA, "NameError"},
		{"xa.example.", dnsmessage.TypeAAAA, "NameError"},
		{"a.example.evil.test.", dnsmessage.TypeA, "NameError"},
		{"a\x00.wild.example.", dnsmessage.TypeA, "NameError"},
		{"wild.example\x00.evil.test.", dnsmessage.TypeA, "NameError"},
		{"*.wild.example.", dnsmessage.TypeA, "NameError"},
		{"a", dnsmessage.TypeA, "NameError"},
		{"1.2.3.4.", dnsmessage.TypeA, "NameError"},
		{".", dnsmessage.TypeNS, "Success"},
		{"localhost.", dnsmessage.TypeA, "Success 127.0"},
		{"x.localhost.", dnsmessage.TypeAAAA, "Success ::1"},
		{"localhost.", dnsmessage.TypeMX, "Success"},
		{"1.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, "Success a.example."},
		{"1.0.18.198.in-addr.arpa.", dnsmessage.TypeA, "Success"},
		{"9.9.19.198.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"x.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"4.3.2.1.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
	} {
		name := c.name
		if !strings.HasSuffix(name, ".") {
			name += "."
		}
		if got := asked(t, s, question(t, name, c.kind)); got != c.want {
			t.Errorf("%q %s: %s, want %s", c.name, c.kind, got, c.want)
		}
	}
}

// Where everything is allowed, every whole name is there, and the host resolves it.
func TestEveryPublicName(t *testing.T) {
	s := stub(t, "*")
	for name, want := range map[string]string{
		"anything.at.all.": "Success 198.18", "single.": "NameError", "1.2.3.4.": "NameError", "0x7f.1.": "NameError", "host.docker.internal.": "NameError",
	} {
		if got := asked(t, s, question(t, name, dnsmessage.TypeA)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestMessagesThatAreNoPlainQuestion(t *testing.T) {
	s := stub(t, "a.example")
	plain := question(t, "a.example.", dnsmessage.TypeA)
	change := func(at int, value byte) []byte {
		b := append([]byte(nil), plain...)
		b[at] = value
		return b
	}
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"empty":          {nil, "nothing"},
		"short":          {plain[:11], "nothing"},
		"response":       {change(2, 0x81), "nothing"},
		"other opcode":   {change(2, 0x29), "NotImplemented"},
		"no question":    {change(5, 0), "FormatError"},
		"two questions":  {change(5, 2), "FormatError"},
		"cut":            {plain[:20], "FormatError"},
		"other class":    {change(len(plain)-1, 3), "Refused"},
		"any class":      {change(len(plain)-1, 255), "Success 198.18"},
		"lying sections": {change(7, 255), "Success 198.18"},
		"loop":           {append(append([]byte(nil), plain[:12]...), 0xc0, 0x0c, 0, 1, 0, 1), "FormatError"},
	} {
		if name == "empty" {
			if s.answer(nil) != nil {
				t.Error("an empty message was answered")
			}
			continue
		}
		if got := asked(t, s, c.message); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestEDNSIsAnswered(t *testing.T) {
	s := stub(t, "a.example")
	var head dnsmessage.ResourceHeader
	if err := head.SetEDNS0(4096, dnsmessage.RCodeSuccess, true); err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(question(t, "a.example.", dnsmessage.TypeA)); err != nil {
		t.Fatal(err)
	}
	m.Additionals = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: 10, Data: make([]byte, 8)}}}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if got := asked(t, s, b); got != "Success 198.18" {
		t.Error(got)
	}
	if err := m.Unpack(s.answer(b)); err != nil || len(m.Additionals) != 1 || m.Additionals[0].Header.Type != dnsmessage.TypeOPT {
		t.Errorf("%+v, %v", m.Additionals, err)
	}
}

// A name that was asked for in vain is told once, and one that is none never is.
func TestTeller(t *testing.T) {
	s := stub(t, "a.example")
	for range 3 {
		for _, name := range []string{"evil.test.", "a.example.", "x\x01y.test.", "4.3.2.1.in-addr.arpa."} {
			s.answer(question(t, name, dnsmessage.TypeA))
		}
	}
	if got := len(s.teller.names); got != 1 {
		t.Fatalf("%d names", got)
	}
	if name := <-s.teller.names; name != "evil.test" {
		t.Error(name)
	}
	for i := range 2 * maxTold {
		s.teller.tell(fmt.Sprint(i)) // never waits
	}
	if len(s.teller.told) > maxTold || len(s.teller.names) != maxWaiting {
		t.Errorf("%d told, %d waiting", len(s.teller.told), len(s.teller.names))
	}
}

func TestQuestionsOverOneConnection(t *testing.T) {
	s := stub(t, "a.example")
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() { s.converse(theirs); _ = theirs.Close(); close(done) }()
	for _, name := range []string{"a.example.", "evil.test."} {
		q := question(t, name, dnsmessage.TypeA)
		_, _ = ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...))
		size := make([]byte, 2)
		if _, err := io.ReadFull(ours, size); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, ours, int64(binary.BigEndian.Uint16(size))); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = ours.Write([]byte{0xff, 0xff}) // more than any question
	<-done
	_ = ours.Close()
}

// FuzzAnswer: no message does harm, and every answer is one.
func FuzzAnswer(f *testing.F) {
	s := stub(f, "a.example", "*.wild.example")
	for _, name := range []string{"a.example.", "x.wild.example.", "evil.test.", "1.0.18.198.in-addr.arpa.", "localhost."} {
		q := question(f, name, dnsmessage.TypeA)
		f.Add(q)
		f.Add(q[:len(q)-3])
	}
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\xff\xff\xff\xff\xff\xff\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		_ = asked(t, s, append(make([]byte, 0, max(2, len(message))), message...))
		for len(s.teller.names) > 0 {
			if name := <-s.teller.names; len(name) > 254 || len(name)+100 > wire.MaxEgressLine {
				t.Fatalf("%q is told", name)
			}
		}
	})
}
