package egress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// speech is what the first bytes of a client are.
type speech int

const (
	speechOther speech = iota // or nothing at all
	speechTLS
	speechHTTP
)

// upward carries what the client sends, as far as it is for the place that was judged.
func (g *Gate) upward(p *passage) error {
	if g.cfg.Set.Public() {
		return g.buffers.copy(p.target, p.client, &p.up)
	}
	kind, said, err := p.listen()
	if err != nil {
		return err
	}
	requests := g.cfg.Set.Requests(p.place.name, p.place.port)
	switch {
	case !said:
		return nil
	case kind == speechHTTP && p.place.port != 443:
		return g.upHTTP(p, requests)
	case requests:
		return p.refuse(nil, "the network policy allows certain plain HTTP requests only to %s, and this is none", p.place)
	case kind == speechTLS:
		return g.upTLS(p)
	case p.place.port == 443:
		return p.refuse(nil, "%s: on port 443 only TLS is let through", p.place)
	case p.place.port == 80:
		return p.refuse(nil, "%s: on port 80 only HTTP and TLS are let through", p.place)
	}
	return g.buffers.copy(p.target, p.client, &p.up)
}

// refuse makes the error that ends a connection for what the client said on it.
func (p *passage) refuse(answer []byte, format string, args ...any) error {
	return &refusal{denial: denial{reason: fmt.Sprintf(format, args...)}, answer: answer}
}

// listen waits for the client's first bytes and says what they are. said tells whether there
// are any.
func (p *passage) listen() (kind speech, said bool, err error) {
	in := p.client.in
	defer p.within(0)
	for want := 1; ; {
		_, err := in.Peek(want)
		if err != nil && !errors.Is(err, io.EOF) {
			return speechOther, false, err
		}
		b, _ := in.Peek(in.Buffered())
		over := err != nil || len(b) >= lookAhead
		http, more := looksHTTP(b)
		switch {
		case len(b) == 0:
			return speechOther, false, nil
		case looksTLS(b) && (len(b) > 1 || over):
			return speechTLS, true, nil
		case http, more && len(b) >= lookAhead: // a long line: whoever reads it as HTTP is strict
			return speechHTTP, true, nil
		case over, !more && !looksTLS(b):
			return speechOther, true, nil
		}
		p.within(firstTime)
		want = len(b) + 1
	}
}

// tlsRefused is an alert: access denied. Programs tell it to their users.
func tlsRefused() []byte { return []byte{21, 3, 3, 0, 2, 2, 49} }

// upTLS carries TLS whose every ClientHello in the clear names the place.
func (g *Gate) upTLS(p *passage) error {
	if err := p.hello(); err != nil {
		return err
	}
	for seen := 0; seen < watched; {
		b, err := p.client.in.Peek(recordLen)
		if err != nil {
			break // the copy meets it again
		}
		size := int(binary.BigEndian.Uint16(b[3:]))
		switch b[0] {
		case recordHandshake:
			if b, _ = p.client.in.Peek(recordLen + min(size, 6)); secondHello(b) {
				err = p.hello()
			}
			seen = watched
		case recordChange, recordData, recordAlert:
			seen += recordLen + size
			err = g.buffers.copyN(p.target, p.client, int64(recordLen+size), &p.up)
		default:
			seen = watched // no TLS any more: not ours to understand
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return g.buffers.copy(p.target, p.client, &p.up)
}

// hello judges one ClientHello and sends it on as it came.
func (p *passage) hello() error {
	p.within(firstTime)
	defer p.within(0)
	raw, name, err := readHello(p.client)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.refuse(nil, "%s: %v", p.place, errHello)
	case errors.Is(err, errNotTLS), errors.Is(err, errHello), errors.Is(err, errNoName), errors.Is(err, errSeveralSNI):
		return p.refuse(tlsRefused(), "%s: %v", p.place, err)
	case err != nil:
		return err
	case strings.ToLower(name) != p.place.name:
		return p.refuse(tlsRefused(), "%s: TLS for another name, %s", p.place, short(name))
	}
	return p.send(raw)
}

func (p *passage) send(b []byte) error {
	n, err := p.target.Write(b)
	p.up.Add(int64(n))
	return err
}

// upHTTP carries requests, each of which must be for the place. requests tells that the
// policy allows some only.
func (g *Gate) upHTTP(p *passage, requests bool) error {
	for n := 1; ; n++ {
		raw, err := p.readHead()
		if err != nil || raw == nil {
			return err
		}
		h, err := parseHead(raw)
		if err != nil {
			return p.refuse(page(400, p.place, err.Error()), "%s: %v", p.place, err)
		}
		if err := g.judgeRequest(p, &h, requests); err != nil {
			return err
		}
		p.asks.Store(true)
		if err := p.send(h.forward); err != nil {
			return err
		}
		if err := g.body(p, &h); err != nil {
			return err
		}
		// Only the first response is known to be the answer to the first request. A later
		// change of protocol is not believed: what follows has to be requests.
		if n == 1 && h.upgrade == "websocket" && p.changed() {
			return g.buffers.copy(p.target, p.client, &p.up)
		}
	}
}

// changed waits for the first response and reports whether it changes the protocol.
func (p *passage) changed() bool {
	select {
	case status := <-p.status:
		return status == 101
	case <-p.over:
		return false
	}
}

func (g *Gate) judgeRequest(p *passage, h *head, requests bool) error {
	to := p.place
	if h.host != to.name || h.port != 0 && h.port != to.port {
		reason := fmt.Sprintf("%s: a request for another host, %s", to, short(h.host))
		return p.refuse(page(403, to, reason), "%s", reason)
	}
	if !requests {
		return nil
	}
	if _, ok := g.cfg.Set.Request(to.name, to.port, h.method, h.path); !ok {
		path, _, _ := strings.Cut(h.path, "?")
		reason := fmt.Sprintf("the network policy does not allow %s http://%s%s", short(h.method), to, short(path))
		return p.refuse(page(403, to, reason), "%s", reason)
	}
	return nil
}

// readHead reads the head of a request; nil is the end of the connection. Empty lines before
// it are left out, as servers do.
func (p *passage) readHead() ([]byte, error) {
	in := p.client.in
	for {
		b, err := in.Peek(2)
		if len(b) == 0 {
			return nil, ignoreEOF(err)
		}
		if !bytes.Equal(b, []byte("\r\n")) {
			break
		}
		_, _ = in.Discard(2)
	}
	p.within(firstTime)
	defer p.within(0)
	var raw []byte
	for atStart := true; ; {
		part, err := in.ReadSlice('\n')
		raw = append(raw, part...)
		switch {
		case len(raw) > maxHead, errors.Is(err, io.EOF):
			return raw, nil // too long, or cut off: it does not parse
		case errors.Is(err, errFull):
			atStart = false
			continue
		case err != nil:
			return nil, err
		case atStart && len(bytes.TrimRight(part, "\r\n")) == 0:
			return raw, nil
		}
		atStart = true
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
