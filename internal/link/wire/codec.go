package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// An event frame on the wire and in the journal of PID 1, big endian:
//
//	4 bytes  how many bytes follow, at most MaxFrame-4
//	1        type
//	1        flags: 1 = continued
//	2        length of the method
//	8        sequence number
//	8        time, nanoseconds since 1970
//	n        method
//	m        data, the rest
const frameHeader = 24

const flagContinued = 1

// bufferSize holds several frames of MaxChunk, so that a busy stream crosses the
// link in few large writes.
const bufferSize = 512 << 10

// ErrFrame is wrapped by every error that malformed input causes. The stream is of
// no use after it.
var ErrFrame = errors.New("malformed frame")

// FrameSize returns how many bytes f takes.
func FrameSize(f *Frame) int { return frameHeader + len(f.Method) + len(f.Data) }

// AppendFrame appends the encoded f to dst. It refuses a frame larger than
// [MaxFrame] and leaves dst as it was.
func AppendFrame(dst []byte, f *Frame) ([]byte, error) {
	if size := FrameSize(f); size > MaxFrame || len(f.Method) > 0xffff {
		return dst, fmt.Errorf("%w: %d bytes", ErrFrame, size)
	}
	dst = appendFrameHeader(dst, f)
	dst = append(dst, f.Method...)
	return append(dst, f.Data...), nil
}

func appendFrameHeader(dst []byte, f *Frame) []byte {
	var flags byte
	if f.Continued {
		flags |= flagContinued
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(FrameSize(f)-4))
	dst = append(dst, byte(f.Type), flags)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.Method)))
	dst = binary.BigEndian.AppendUint64(dst, f.Seq)
	return binary.BigEndian.AppendUint64(dst, uint64(f.At.UnixNano()))
}

// DecodeFrame reads the frame at the start of b into f and returns its length. The
// error is [io.ErrUnexpectedEOF] when b ends before the frame does. f.Data is part
// of b.
func DecodeFrame(b []byte, f *Frame) (int, error) {
	if len(b) < 4 {
		return 0, io.ErrUnexpectedEOF
	}
	size, err := frameLength(b)
	if err != nil {
		return 0, err
	}
	if len(b) < size {
		return 0, io.ErrUnexpectedEOF
	}
	return size, decodeBody(b[4:size], f)
}

// frameLength returns the length of the whole frame whose first four bytes are b.
func frameLength(b []byte) (int, error) {
	n := binary.BigEndian.Uint32(b)
	if n < frameHeader-4 || n > MaxFrame-4 {
		return 0, fmt.Errorf("%w: length %d", ErrFrame, n)
	}
	return int(n) + 4, nil
}

// decodeBody reads what follows the length.
func decodeBody(b []byte, f *Frame) error {
	method := int(binary.BigEndian.Uint16(b[2:]))
	rest := b[frameHeader-4:]
	t := FrameType(b[0])
	switch {
	case t < FrameStdout || t > FrameHeartbeat:
		return fmt.Errorf("%w: type %d", ErrFrame, t)
	case b[1]&^flagContinued != 0:
		return fmt.Errorf("%w: flags %#x", ErrFrame, b[1])
	case method > len(rest):
		return fmt.Errorf("%w: method of %d bytes", ErrFrame, method)
	}
	*f = Frame{
		Type:      t,
		Seq:       binary.BigEndian.Uint64(b[4:]),
		At:        time.Unix(0, int64(binary.BigEndian.Uint64(b[12:]))),
		Continued: b[1]&flagContinued != 0,
		Data:      rest[method:],
	}
	if method > 0 {
		f.Method = string(rest[:method])
	}
	return nil
}

// FrameReader reads event frames from a stream. It reuses one buffer.
type FrameReader struct {
	r   *bufio.Reader
	buf []byte
}

// NewFrameReader returns a reader of r, which it buffers.
func NewFrameReader(r io.Reader) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, bufferSize)}
}

// Next reads one frame into f. f.Data is valid until the next call. The error is
// [io.EOF] at an end between frames and [io.ErrUnexpectedEOF] within one.
func (r *FrameReader) Next(f *Frame) error {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return err
	}
	size, err := frameLength(head[:])
	if err != nil {
		return err
	}
	body, err := readBody(r.r, &r.buf, size-4)
	if err != nil {
		return err
	}
	return decodeBody(body, f)
}

// Buffered reports whether the start of another frame has arrived already, so
// that a consumer can tell when it has caught up.
func (r *FrameReader) Buffered() bool { return r.r.Buffered() > 0 }

// readBody reads n bytes into *buf, which grows as it must.
func readBody(r io.Reader, buf *[]byte, n int) ([]byte, error) {
	if cap(*buf) < n {
		*buf = make([]byte, n+n/2)
	}
	b := (*buf)[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// FrameWriter writes event frames to a stream through a buffer.
type FrameWriter struct {
	w    *bufio.Writer
	head []byte
}

// NewFrameWriter returns a writer to w.
func NewFrameWriter(w io.Writer) *FrameWriter {
	return &FrameWriter{w: bufio.NewWriterSize(w, bufferSize)}
}

// Write puts f into the buffer and sends the buffer when it is full.
func (w *FrameWriter) Write(f *Frame) error {
	if size := FrameSize(f); size > MaxFrame || len(f.Method) > 0xffff {
		return fmt.Errorf("%w: %d bytes", ErrFrame, size)
	}
	w.head = append(appendFrameHeader(w.head[:0], f), f.Method...)
	if _, err := w.w.Write(w.head); err != nil {
		return err
	}
	_, err := w.w.Write(f.Data)
	return err
}

// Flush sends what the buffer holds. Call it when no further frame is at hand.
func (w *FrameWriter) Flush() error { return w.w.Flush() }
