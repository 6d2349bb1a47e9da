package egress

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Sizes of what one direction of a connection is copied through. It begins small; one that
// is fast gets a large one, of which there are few: a thousand connections that stand still
// must not hold much.
const (
	smallBuffer = 8 << 10
	largeBuffer = 256 << 10
	maxLarge    = 48
)

// buffers are shared by the connections of a gate.
type buffers struct {
	small, large sync.Pool
	slots        chan struct{} // one for each large buffer in use
}

func newBuffers() *buffers {
	return &buffers{
		small: sync.Pool{New: func() any { b := make([]byte, smallBuffer); return &b }},
		large: sync.Pool{New: func() any { b := make([]byte, largeBuffer); return &b }},
		slots: make(chan struct{}, maxLarge),
	}
}

func (p *buffers) getLarge() *[]byte {
	select {
	case p.slots <- struct{}{}:
		return p.large.Get().(*[]byte)
	default:
		return nil
	}
}

func (p *buffers) putLarge(b *[]byte) {
	p.large.Put(b)
	<-p.slots
}

// copy copies src to dst until src ends, which is no error, and adds to count.
func (p *buffers) copy(dst io.Writer, src io.Reader, count *atomic.Int64) error {
	small := p.small.Get().(*[]byte)
	defer p.small.Put(small)
	var large *[]byte
	defer func() {
		if large != nil {
			p.putLarge(large)
		}
	}()
	for {
		buf := *small
		if large != nil {
			buf = *large
		}
		n, err := src.Read(buf)
		if n > 0 {
			w, werr := dst.Write(buf[:n])
			count.Add(int64(w))
			if werr != nil {
				return werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case large == nil && n == len(buf):
			large = p.getLarge()
		case large != nil && n < smallBuffer/2:
			p.putLarge(large)
			large = nil
		}
	}
}

// copyN copies n bytes as they come. Less is [io.ErrUnexpectedEOF].
func (p *buffers) copyN(dst io.Writer, src io.Reader, n int64, count *atomic.Int64) error {
	before := count.Load()
	err := p.copy(dst, io.LimitReader(src, n), count)
	if err == nil && count.Load()-before < n {
		return io.ErrUnexpectedEOF
	}
	return err
}
