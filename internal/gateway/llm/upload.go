package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// includeUsage is put into a streaming request of Chat Completions, whose answer would
// not say what it used.
const includeUsage = `,"stream_options":{"include_usage":true}`

// upload is the body of a request on its way to the upstream. It reads the model's name
// as it passes, and refuses what could not be accounted before the last byte is sent:
// an upstream does not begin without it.
type upload struct {
	in      io.Reader
	dialect dialect
	chat    bool // ask for usage in streams
	// price reports whether the cost of a model is known. nil: it need not be.
	price func(model string) bool

	rest []byte // goes out before more is read
	last error  // of in

	mu       sync.Mutex // guards what follows: the answer may begin before the body has ended
	text     scan
	n        int64
	complete bool
	model    string
	refused  *refusal

	stream, options, usage bool
}

func newUpload(in io.Reader, e endpoint, price func(string) bool) *upload {
	u := &upload{in: in, dialect: e.dialect, chat: e.path == pathChat, price: price}
	u.text.found = u.member
	return u
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (int, error) {
	if len(u.rest) > 0 {
		n := copy(p, u.rest)
		u.rest = u.rest[n:]
		return n, nil
	}
	if u.last != nil {
		return 0, u.last
	}
	n, err := u.in.Read(p)
	u.last = err
	return u.pass(p, n)
}

// peek reads ahead where a price is needed: the model's name is nearly always among the
// first words, and a request that is refused then has not been seen by anybody.
func (u *upload) peek() error {
	if u.price == nil {
		return nil
	}
	first := make([]byte, 4<<10)
	n, err := u.Read(first)
	u.rest = append(first[:n], u.rest...)
	if err == io.EOF { //nolint:errorlint // a reader's plain EOF
		return nil
	}
	return err
}

// pass looks at the n bytes that were read into p, and returns how many of p go out now.
func (u *upload) pass(p []byte, n int) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n += int64(n)
	before := u.text.done
	u.text.write(p[:n])
	ended := u.text.done && !before
	if ended || u.last == io.EOF { //nolint:errorlint // a reader's plain EOF
		u.judge()
	}
	if u.refused != nil {
		u.last, u.rest = u.refused, nil
		return 0, u.refused
	}
	u.complete = u.complete || u.last == io.EOF //nolint:errorlint // see above
	if ended && u.chat && u.stream && !u.options {
		u.rest = append([]byte(includeUsage), p[u.text.end:n]...)
		n = u.text.end
		if n == 0 {
			n = copy(p, u.rest)
			u.rest = u.rest[n:]
		}
	}
	if len(u.rest) > 0 {
		return n, nil
	}
	return n, u.last
}

// judge looks at the request as a whole.
func (u *upload) judge() {
	switch {
	case u.refused != nil:
	case u.price != nil && u.model == "":
		u.refuse("no_model", "the request names no model, so --max-cost cannot be kept")
	case u.chat && u.stream && u.options && !u.usage:
		u.refuse("no_usage", "leave stream_options out, or set include_usage in it: the LLM gateway of insightscli counts tokens")
	}
}

func (u *upload) refuse(code, text string) {
	status := http.StatusBadRequest
	if code == "no_price" {
		status = http.StatusForbidden
	}
	if u.refused == nil {
		u.refused = &refusal{status: status, dialect: u.dialect, code: code, text: text}
	}
}

// member takes a value that the scan has found.
func (u *upload) member(parent, key string, raw []byte, _ int) {
	if parent != "" {
		return
	}
	switch key {
	case "model":
		u.model = shortened(text(raw))
		if u.price != nil && !u.price(u.model) {
			u.refuse("no_price", "the price of model "+u.model+" is not known, so --max-cost cannot be kept: set INSIGHTS_LLM_PRICES")
		}
	case "stream":
		u.stream = string(raw) == "true"
	case "stream_options":
		var o struct {
			Usage bool `json:"include_usage"`
		}
		u.options, u.usage = true, json.Unmarshal(raw, &o) == nil && o.Usage
	case "background":
		// Its answer is fetched later, by a request that is not served here.
		if u.dialect == openai && string(bytes.TrimSpace(raw)) == "true" {
			u.refuse("no_background", "the LLM gateway of insightscli does not serve background responses")
		}
	case "service_tier", "speed":
		if tier := text(raw); u.price != nil && (tier == "priority" || tier == "fast") {
			u.refuse("no_price", "what "+key+" "+tier+" costs is not known, so --max-cost cannot be kept: leave it out")
		}
	}
}

// sent is what an upload knows of itself.
type sent struct {
	bytes    int64
	text     int64
	model    string
	complete bool
	refused  *refusal
}

func (u *upload) sent() sent {
	u.mu.Lock()
	defer u.mu.Unlock()
	return sent{bytes: u.n, text: int64(u.text.text), model: u.model, complete: u.complete, refused: u.refused}
}

// shortened bounds a name that came from outside.
func shortened(name string) string {
	const most = 128
	if len(name) > most {
		name = name[:most]
	}
	return string(bytes.ToValidUTF8([]byte(name), nil))
}
