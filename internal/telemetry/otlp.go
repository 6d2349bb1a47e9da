package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/task"
)

// The numbers of OTLP that are used here.
const (
	severityDebug = 5
	severityInfo  = 9
	severityWarn  = 13
	severityError = 17

	kindInternal = 1
	kindServer   = 2

	statusUnset = 0
	statusOK    = 1
	statusError = 2

	flagSampled = 1
)

// maxAttribute is the longest text of an attribute, in characters.
const maxAttribute = 200

// attribute is an OTLP KeyValue.
type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value is an OTLP AnyValue. Exactly one field is set.
type value struct {
	String *string  `json:"stringValue,omitempty"`
	Int    string   `json:"intValue,omitempty"` // a 64-bit number is a text in OTLP's JSON
	Double *float64 `json:"doubleValue,omitempty"`
}

func text(key, s string) attribute {
	s = cut(s, maxAttribute)
	return attribute{key, value{String: &s}}
}

func number(key string, n int64) attribute {
	return attribute{key, value{Int: strconv.FormatInt(n, 10)}}
}

func decimal(key string, f float64) attribute { return attribute{key, value{Double: &f}} }

// logRecord is an OTLP LogRecord.
type logRecord struct {
	Time       string      `json:"timeUnixNano"`
	Observed   string      `json:"observedTimeUnixNano"`
	Severity   int         `json:"severityNumber"`
	Level      string      `json:"severityText"`
	Body       value       `json:"body"`
	Attributes []attribute `json:"attributes,omitempty"`
	Flags      int         `json:"flags,omitempty"`
	TraceID    string      `json:"traceId,omitempty"`
	SpanID     string      `json:"spanId,omitempty"`
}

// span is an OTLP Span.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId,omitempty"`
	Flags      int         `json:"flags"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     status      `json:"status"`
}

type status struct {
	Code int `json:"code,omitempty"`
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func levelOf(severity int) string {
	switch {
	case severity >= severityError:
		return "ERROR"
	case severity >= severityWarn:
		return "WARN"
	case severity >= severityInfo:
		return "INFO"
	}
	return "DEBUG"
}

// traceID is the id of a run's trace: the hexadecimal digits of its id.
func traceID(run task.ID) string { return strings.ReplaceAll(string(run), "-", "") }

// spanID is the id of the span of a run that event seq has begun. Whoever makes it, of the
// run's log, gets the same.
func spanID(run task.ID, name string, seq uint64) string {
	sum := sha256.Sum256([]byte(string(run) + "\x00" + name + "\x00" + strconv.FormatUint(seq, 10)))
	return hex.EncodeToString(sum[:8])
}

// cut shortens a text to so many characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	if utf8.RuneCountInString(s) > most {
		r := []rune(s[:min(len(s), most*utf8.UTFMax)])
		s = string(r[:most])
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// envelope is what stands around a batch of items in a request.
type envelope struct{ head, tail []byte }

func (e envelope) wrap(items [][]byte) []byte {
	size := len(e.head) + len(e.tail) + len(items)
	for _, item := range items {
		size += len(item)
	}
	out := append(make([]byte, 0, size), e.head...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, e.tail...)
}

// newEnvelope makes an envelope for what: Logs or Spans.
func newEnvelope(what string, resource []attribute, scope, version string) envelope {
	type named struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	attributes, _ := json.Marshal(resource) // plain structs always marshal
	by, _ := json.Marshal(named{scope, version})
	records := "logRecords"
	if what == "Spans" {
		records = "spans"
	}
	return envelope{
		head: []byte(`{"resource` + what + `":[{"resource":{"attributes":` + string(attributes) + `},"scope` + what + `":[{"scope":` + string(by) + `,"` + records + `":[`),
		tail: []byte(`]}]}]}`),
	}
}
