package capture

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// timeToLive is short: an address is the same as long as its name is remembered, but
	// a program that has left the sandbox's memory must not keep it.
	timeToLive = 10
	// udpSize is what we say we take, which is more than any question has.
	udpSize = 1232
)

// answer returns the answer to one message, nil for what is no question. What comes from
// the agent is hostile: it is never passed on, and nothing in it costs more than its own
// length. An answer always fits into 512 bytes.
func (s *Server) answer(message []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return nil
	}
	reply := dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode,
		RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	}
	if header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, nil, nil, false)
	}
	q, err := onlyQuestion(&p)
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, nil, false)
	}
	edns := hasEDNS(&p)
	if q.Class != dnsmessage.ClassINET && q.Class != dnsmessage.ClassANY {
		reply.RCode = dnsmessage.RCodeRefused
		return build(reply, &q, nil, edns)
	}
	body, code := s.resolve(q)
	reply.RCode = code
	return build(reply, &q, body, edns)
}

func onlyQuestion(p *dnsmessage.Parser) (dnsmessage.Question, error) {
	q, err := p.Question()
	if err != nil {
		return q, err
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, errors.New("more than one question")
	}
	return q, nil
}

// hasEDNS reports whether a message has an OPT record. What else is wrong with what follows
// the question is nobody's business.
func hasEDNS(p *dnsmessage.Parser) bool {
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return false
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return false
		}
		if h.Type == dnsmessage.TypeOPT {
			return true
		}
		if p.SkipAdditional() != nil {
			return false
		}
	}
}

// resolve answers for one name: nil and success mean that the name is there, but has
// nothing of what was asked for.
func (s *Server) resolve(q dnsmessage.Question) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	switch {
	case name == "":
		return nil, dnsmessage.RCodeSuccess
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return localhost(q.Type), dnsmessage.RCodeSuccess
	case strings.HasSuffix(name, ".arpa"):
		return s.reverse(name, q.Type)
	}
	if _, ok := s.Names.Name(name); !ok {
		if plain(name) {
			s.teller.tell(name)
		}
		return nil, dnsmessage.RCodeNameError
	}
	if q.Type != dnsmessage.TypeA {
		// That there is no AAAA keeps programs on IPv4; without HTTPS and SVCB none
		// learns a key to hide the name that it connects to.
		return nil, dnsmessage.RCodeSuccess
	}
	addr, ok := s.table.address(name)
	if !ok {
		return nil, dnsmessage.RCodeServerFailure
	}
	return &dnsmessage.AResource{A: addr.As4()}, dnsmessage.RCodeSuccess
}

func localhost(t dnsmessage.Type) dnsmessage.ResourceBody {
	switch t {
	case dnsmessage.TypeA:
		return &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}
	case dnsmessage.TypeAAAA:
		return &dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}
	}
	return nil
}

// reverse answers for the names of addresses of ours.
func (s *Server) reverse(name string, t dnsmessage.Type) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	owner := s.table.name(reversed(name))
	if owner == "" {
		return nil, dnsmessage.RCodeNameError
	}
	pointer, err := dnsmessage.NewName(owner + ".")
	if err != nil || t != dnsmessage.TypePTR {
		return nil, dnsmessage.RCodeSuccess
	}
	return &dnsmessage.PTRResource{PTR: pointer}, dnsmessage.RCodeSuccess
}

// reversed is the address that a name below in-addr.arpa stands for, or the zero Addr.
func reversed(name string) netip.Addr {
	rest, ok := strings.CutSuffix(name, ".in-addr.arpa")
	labels := strings.Split(rest, ".")
	if !ok || len(labels) != 4 {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(labels[3] + "." + labels[2] + "." + labels[1] + "." + labels[0])
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// plain keeps what is no name of a host from the host's records.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.", r)
	})
}

// build makes a message of its parts. It cannot fail for a question that was read.
func build(h dnsmessage.Header, q *dnsmessage.Question, body dnsmessage.ResourceBody, edns bool) []byte {
	b := dnsmessage.NewBuilder(make([]byte, 0, 512), h)
	b.EnableCompression()
	if q == nil {
		return finished(&b, nil)
	}
	err := errors.Join(b.StartQuestions(), b.Question(*q))
	if body != nil {
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: timeToLive}
		err = errors.Join(err, b.StartAnswers(), resource(&b, head, body))
	}
	if edns {
		var head dnsmessage.ResourceHeader
		err = errors.Join(err, head.SetEDNS0(udpSize, dnsmessage.RCodeSuccess, false), b.StartAdditionals(), b.OPTResource(head, dnsmessage.OPTResource{}))
	}
	return finished(&b, err)
}

func resource(b *dnsmessage.Builder, head dnsmessage.ResourceHeader, body dnsmessage.ResourceBody) error {
	switch r := body.(type) {
	case *dnsmessage.AResource:
		return b.AResource(head, *r)
	case *dnsmessage.AAAAResource:
		return b.AAAAResource(head, *r)
	case *dnsmessage.PTRResource:
		return b.PTRResource(head, *r)
	}
	return errors.ErrUnsupported
}

func finished(b *dnsmessage.Builder, err error) []byte {
	message, finishErr := b.Finish()
	if err != nil || finishErr != nil {
		return nil
	}
	return message
}
