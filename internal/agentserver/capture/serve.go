package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxAsking bounds the connections that ask for names.
	maxAsking = 128
	// askingTime bounds how long one of them may be silent.
	askingTime = 10 * time.Second
	// maxQuestion is more than the longest question.
	maxQuestion = 4 << 10
)

// serveUDP answers questions in datagrams, one at a time: an answer takes microseconds and
// waits for nothing.
func (s *Server) serveUDP(ctx context.Context) {
	b := make([]byte, maxQuestion)
	for {
		n, from, err := s.UDP.ReadFromUDPAddrPort(b)
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		case err != nil: // an earlier answer that nobody took
			pause(ctx, acceptPause)
			continue
		}
		if answer := s.answer(b[:n]); answer != nil {
			_, _ = s.UDP.WriteToUDPAddrPort(answer, from)
		}
	}
}

// serveTCP answers questions over connections.
func (s *Server) serveTCP(ctx context.Context) {
	slots := make(chan struct{}, maxAsking)
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := s.DNS.AcceptTCP()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil:
			pause(ctx, acceptPause)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		conns.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer func() { _ = conn.Close() }()
			s.converse(conn)
		})
	}
}

// converse answers the questions of one connection, each behind its length.
func (s *Server) converse(conn net.Conn) {
	b := make([]byte, maxQuestion)
	for {
		_ = conn.SetDeadline(time.Now().Add(askingTime))
		if _, err := io.ReadFull(conn, b[:2]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(b))
		if size > len(b) {
			return
		}
		if _, err := io.ReadFull(conn, b[:size]); err != nil {
			return
		}
		answer := s.answer(b[:size])
		if answer == nil {
			return
		}
		answer = append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(answer)), uint16(len(answer))), answer...)
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
