package relay

import (
	"errors"
	"io"
)

// copy carries one direction until its end, which is no error. Unlike [io.Copy] it holds
// little memory while nothing comes, and never hands the two over to the kernel: splice
// does not know our streams, and its attempt costs a pipe for each connection.
func (r *Relay) copy(to io.Writer, from io.Reader) (total int64, err error) {
	small := make([]byte, smallBuffer)
	buf := small
	var large *[]byte
	defer func() {
		if large != nil {
			r.large.Put(large)
		}
	}()
	for {
		n, readErr := from.Read(buf)
		if n > 0 {
			written, err := to.Write(buf[:n])
			total += int64(written)
			if err != nil {
				return total, err
			}
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return total, nil
		case readErr != nil:
			return total, readErr
		case large == nil && n == len(small):
			large = r.take()
			buf = *large
		case large != nil && n < len(small):
			r.large.Put(large)
			large, buf = nil, small
		}
	}
}

// take returns a large buffer.
func (r *Relay) take() *[]byte {
	if buf, ok := r.large.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, largeBuffer)
	return &buf
}
