package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/Insights/insightscli/internal/agentserver"
)

const (
	// maxLine bounds one line of an agent.
	maxLine = 32 << 20
	// maxPassed bounds one that the library reads, which takes no longer one.
	maxPassed = 10<<20 - 1<<10
)

// reader sorts what an agent writes: session updates go into the journal, requests and
// answers to the library, all in the order of the lines.
type reader struct {
	agent *agent
	host  *agentserver.Host
	line  []byte
}

// message is what is read of every line.
type message struct {
	ID     *json.RawMessage `json:"id"`
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
}

// all reads to the end of the stream. The error is why it ended before.
func (r *reader) all(ctx context.Context, out io.Reader) error {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		err := r.next(in)
		if line := bytes.TrimSpace(r.line); len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if err := r.take(ctx, line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, errLong):
			return err
		case err != nil:
			return nil // the end, however it came
		}
	}
}

var errLong = errors.New("it has written a line that is too long")

// next reads one line.
func (r *reader) next(in *bufio.Reader) error {
	if cap(r.line) > 1<<20 {
		r.line = nil // a huge one was an exception
	}
	r.line = r.line[:0]
	for {
		part, err := in.ReadSlice('\n')
		r.line = append(r.line, part...)
		if len(r.line) > maxLine {
			return fmt.Errorf("%w: more than %d bytes", errLong, maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// take does with one line what it is for. Lines that are no messages are words of the
// agent to nobody.
func (r *reader) take(ctx context.Context, line []byte) error {
	var m message
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("?"))
	}
	if line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return nil
	}
	switch {
	case m.ID == nil && m.Method == sdk.ClientMethodSessionUpdate:
		return r.update(ctx, m.Params)
	case m.ID == nil && m.Method != "$/cancel_request":
		return nil // a notification of the vendor's own
	case len(line) > maxPassed:
		return fmt.Errorf("%w: %d bytes", errLong, len(line))
	}
	if m.ID != nil && m.Method != "" {
		select {
		case r.agent.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := r.agent.feed.Write(append(line, '\n'))
	return err
}
