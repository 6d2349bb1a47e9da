package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A stream of [ServiceExec] or [ServiceArchive] begins, after the name of the
// service, with one JSON line from the host, a [Command] or an [Archive]. After it
// both sides send pieces: one byte of type, four bytes of length, big endian, and
// that many bytes, at most [MaxChunk].
//
// The host may have at most [InputWindow] bytes of StreamInput on the way that
// PID 1 has not given back by StreamCredit; so PID 1 can go on reading, and sees a
// signal or the end of the host, while the process does not read its input.
// StreamExit is the last piece; a stream that ends without one was cut off. When
// the host closes the stream before, PID 1 kills the process group.
//
// An archive that comes out is StreamOutput pieces; one that goes in is StreamInput
// pieces and StreamEOF. Both end with StreamExit.

// StreamType is the type of one piece of an exec or archive stream.
type StreamType byte

// The types of piece.
const (
	StreamInput  StreamType = 1 // host: bytes for standard input
	StreamEOF    StreamType = 2 // host: standard input has ended
	StreamResize StreamType = 3 // host: the terminal's size: rows and columns, two bytes each
	StreamSignal StreamType = 4 // host: name of a signal ("SIGINT") for the process group
	StreamOutput StreamType = 5 // PID 1: bytes of standard output
	StreamError  StreamType = 6 // PID 1: bytes of standard error
	StreamExit   StreamType = 7 // PID 1: an Exit; the last piece
	StreamCredit StreamType = 8 // PID 1: four bytes, how much input was consumed
)

// InputWindow is how many bytes of input may be on the way without credit.
const InputWindow = 512 << 10

const streamHeader = 5

// Exit is the payload of StreamExit: how the process ended. Code follows the
// shell: 128+n after signal n, 127 not found, 126 not executable.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // "SIGKILL"
	Error  string `json:"error,omitempty"`  // why nothing was started, or why a transfer failed
}

// StreamReader reads pieces. It reuses one buffer.
type StreamReader struct {
	r   *bufio.Reader
	buf []byte
}

// NewStreamReader returns a reader of r. To read the JSON line that comes first,
// use [StreamReader.Line].
func NewStreamReader(r io.Reader) *StreamReader {
	return &StreamReader{r: bufio.NewReaderSize(r, bufferSize)}
}

// Line reads one JSON line of at most [MaxFrame] bytes into v.
func (r *StreamReader) Line(v any) error {
	line, err := ReadLine(r.r, MaxFrame)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

// Next reads one piece. The payload is valid until the next call. The error is
// [io.EOF] at an end between pieces and [io.ErrUnexpectedEOF] within one.
func (r *StreamReader) Next() (StreamType, []byte, error) {
	var head [streamHeader]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, err
	}
	t, n := StreamType(head[0]), binary.BigEndian.Uint32(head[1:])
	if t < StreamInput || t > StreamCredit || n > MaxChunk {
		return 0, nil, fmt.Errorf("%w: piece of type %d, %d bytes", ErrFrame, t, n)
	}
	body, err := readBody(r.r, &r.buf, int(n))
	return t, body, err
}

// StreamWriter writes pieces. Its methods may be called at the same time.
type StreamWriter struct {
	mu  sync.Mutex // guards buf and the order of writes
	w   io.Writer
	buf []byte
}

// NewStreamWriter returns a writer to w.
func NewStreamWriter(w io.Writer) *StreamWriter { return &StreamWriter{w: w} }

// Line writes v as the JSON line that begins a stream.
func (w *StreamWriter) Line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) >= MaxFrame {
		return fmt.Errorf("%w: request of %d bytes", ErrFrame, len(b))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(b, '\n'))
	return err
}

// Write writes p as pieces of type t, as many as it takes and at least one.
func (w *StreamWriter) Write(t StreamType, p []byte) error {
	for {
		n := min(len(p), MaxChunk)
		if err := w.piece(t, p[:n]); err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
}

func (w *StreamWriter) piece(t StreamType, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], byte(t))
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(p)))
	w.buf = append(w.buf, p...) // one write: header and payload are one packet of the link
	_, err := w.w.Write(w.buf)
	return err
}

// To returns an io.Writer whose writes become pieces of type t.
func (w *StreamWriter) To(t StreamType) io.Writer { return streamTo{w, t} }

type streamTo struct {
	w *StreamWriter
	t StreamType
}

func (s streamTo) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.w.Write(s.t, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Resize tells the size of the terminal.
func (w *StreamWriter) Resize(rows, cols uint16) error {
	var b [4]byte
	binary.BigEndian.PutUint16(b[:], rows)
	binary.BigEndian.PutUint16(b[2:], cols)
	return w.Write(StreamResize, b[:])
}

// Credit gives back n bytes of the input window.
func (w *StreamWriter) Credit(n int) error {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return w.Write(StreamCredit, b[:])
}

// Exit ends the stream.
func (w *StreamWriter) Exit(e Exit) error {
	if len(e.Error) > MaxHello {
		e.Error = e.Error[:MaxHello]
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return w.Write(StreamExit, b)
}

// ParseResize reads the payload of StreamResize.
func ParseResize(b []byte) (rows, cols uint16, err error) {
	if len(b) != 4 {
		return 0, 0, fmt.Errorf("%w: size of %d bytes", ErrFrame, len(b))
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), nil
}

// ParseCredit reads the payload of StreamCredit.
func ParseCredit(b []byte) (int, error) {
	if len(b) != 4 {
		return 0, fmt.Errorf("%w: credit of %d bytes", ErrFrame, len(b))
	}
	n := binary.BigEndian.Uint32(b)
	if n > InputWindow {
		return 0, fmt.Errorf("%w: credit of %d", ErrFrame, n)
	}
	return int(n), nil
}

// ParseExit reads the payload of StreamExit.
func ParseExit(b []byte) (Exit, error) {
	var e Exit
	if err := json.Unmarshal(b, &e); err != nil {
		return Exit{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return e, nil
}

// ReadLine reads one line of at most limit bytes, without its line end. The error
// is [io.ErrUnexpectedEOF] when the stream ends within the line.
func ReadLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("%w: line longer than %d bytes", ErrFrame, limit)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
