package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LineVersion is the version of the stored line; it is printed as "v".
const LineVersion = 1

// method is the JSON-RPC method of a kind in the stored line, empty for an unknown one.
func (k Kind) method() string {
	switch k {
	case KindStep:
		return "_insights/progress"
	case KindAgent:
		return "session/update"
	case KindOutput:
		return "_insights/sandbox_output"
	case KindPermission:
		return "_insights/permission_request"
	case KindDenied:
		return "_insights/network_denied"
	case KindPublished:
		return "_insights/published"
	case KindUsage:
		return "_insights/usage_update"
	case KindTurn:
		return "_insights/turn_result"
	case KindNotice:
		return "_insights/console"
	case KindFinished:
		return "_insights/run_finished"
	}
	return ""
}

// MethodOf is the method of a kind in the stored line, empty for an unknown one.
func MethodOf(k Kind) string { return k.method() }

// Kinds are the kinds of event that this version knows, in the order in which they are
// told to people.
func Kinds() []Kind {
	return []Kind{KindStep, KindAgent, KindOutput, KindPermission, KindDenied, KindPublished, KindUsage, KindTurn, KindNotice, KindFinished}
}

// AppendLine appends the stored line of ev, newline included, to dst: the one
// form in which an event is kept, and exactly what --json prints.
func (ev Event) AppendLine(dst []byte) []byte {
	dst = append(dst, `{"type":"notification","v":1,"seq":`...)
	dst = strconv.AppendUint(dst, ev.Seq, 10)
	dst = append(dst, `,"timestamp":"`...)
	dst = ev.At.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	dst = append(dst, '"')
	dst = appendID(dst, "event_id", ev.EventID)
	dst = appendID(dst, "first_event_id", ev.FirstEventID)
	dst = append(dst, `,"notification":{"jsonrpc":"2.0","method":`...)
	method := ev.Method
	if method == "" {
		method = ev.Kind.method()
	}
	quoted, _ := json.Marshal(method) // a string always marshals
	dst = append(dst, quoted...)
	dst = append(dst, `,"params":`...)
	if len(ev.Params) == 0 {
		dst = append(dst, '{', '}')
	} else {
		dst = appendOneLine(dst, ev.Params)
	}
	return append(dst, "}}\n"...)
}

// appendOneLine appends JSON without its line ends. Outside of strings they are mere
// space, and inside they do not occur; but a sandbox that is free to put them into
// what it sends could end our line and write one of its own.
func appendOneLine(dst, params []byte) []byte {
	start := len(dst)
	dst = append(dst, params...)
	for rest := dst[start:]; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return dst
		}
		rest[i] = ' '
		rest = rest[i+1:]
	}
}

func appendID(dst []byte, name string, id uint64) []byte {
	if id == 0 {
		return dst
	}
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":"`...)
	dst = strconv.AppendUint(dst, id, 10)
	return append(dst, '"')
}

// line is the stored form, for reading.
type line struct {
	Type         string    `json:"type"`
	V            int       `json:"v"`
	Seq          uint64    `json:"seq"`
	Timestamp    time.Time `json:"timestamp"`
	EventID      string    `json:"event_id"`
	FirstEventID string    `json:"first_event_id"`
	Notification struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	} `json:"notification"`
}

// ErrLine is wrapped by every error of [ParseLine].
var ErrLine = errors.New("not an event line")

// ParseLine reads one stored line. Run is not part of a line and stays empty. An
// unknown method gives an Event of an unknown Kind (see [KindOf]); a newer version of
// the line is read as far as it is understood.
func ParseLine(b []byte) (Event, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if l.Type != "notification" {
		return Event{}, fmt.Errorf("%w: type %q", ErrLine, l.Type)
	}
	ev := Event{Seq: l.Seq, At: l.Timestamp, Method: l.Notification.Method, Params: l.Notification.Params}
	if ev.Params == nil {
		ev.Params = l.Notification.Result
	}
	ev.EventID, _ = strconv.ParseUint(l.EventID, 10, 64)
	ev.FirstEventID, _ = strconv.ParseUint(l.FirstEventID, 10, 64)
	ev.Kind = KindOf(l.Notification.Method)
	return ev, nil
}

// KindOf finds the kind of an event from its JSON-RPC method: of an unknown one its last
// word, or all of it behind "rpc:" where that would be the name of a known kind.
// "__insights/" is an older spelling of "_insights/" that readers must accept.
func KindOf(method string) Kind {
	m := strings.Replace(method, "__insights/", "_insights/", 1)
	for _, k := range Kinds() {
		if k.method() == m {
			return k
		}
	}
	last := Kind(m[strings.LastIndexByte(m, '/')+1:])
	if last.method() != "" {
		return Kind("rpc:" + m)
	}
	return last
}
