package llm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// maxError is how much of an upstream's error is read.
const maxError = 1 << 20

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// answered looks at the upstream's answer before it is passed on.
func (x *exchange) answered(res *http.Response) error {
	x.line.Status = res.StatusCode
	key := x.upstream().Key.Reveal()
	for name, values := range res.Header {
		if name == "Set-Cookie" || name == "Set-Cookie2" || name == "Alt-Svc" || key != "" && strings.Contains(strings.Join(values, "\n"), key) {
			delete(res.Header, name)
		}
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return x.notAllowed(res)
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &refusal{
			status: http.StatusBadGateway, dialect: x.endpoint.dialect, code: "redirected",
			text: fmt.Sprintf("the model's provider answered with a redirection (%d): check %s", res.StatusCode, x.addressVariable()),
		}
	case res.StatusCode >= 400:
		return x.passError(res)
	}
	return x.passAnswer(res)
}

// notAllowed says that the upstream does not take the host's key. It is not the agent's
// credential that is wrong, so it hears of it as of something that it cannot mend.
func (x *exchange) notAllowed(res *http.Response) error {
	says := ""
	if body, err := x.readError(res); err == nil {
		says = messageOf(body)
	}
	text := fmt.Sprintf("the model's provider does not accept %s (HTTP %d)", x.keyVariable(), res.StatusCode)
	if res.StatusCode == http.StatusForbidden {
		text = fmt.Sprintf("the model's provider does not allow this with %s (HTTP 403)", x.keyVariable())
	}
	if says != "" {
		// Claude Code takes an answer with the name of the header for its own login that is
		// missing, and says nothing else.
		text += ": " + strings.ReplaceAll(says, "x-api-key", "API key")
	}
	x.g.cfg.Notify(x.line.Run, "error", text)
	return x.forbid("upstream_auth", "%s", text)
}

// passError takes the key out of an error, should the upstream repeat it.
func (x *exchange) passError(res *http.Response) error {
	body, err := x.readError(res)
	if err != nil {
		return err
	}
	res.Header.Del("Content-Length")
	res.Header.Del("Content-Encoding")
	res.ContentLength = int64(len(body))
	x.line.Received = int64(len(body))
	res.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func (x *exchange) readError(res *http.Response) ([]byte, error) {
	unzip(res)
	body, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	_ = res.Body.Close() // it has been read
	x.line.FirstByte = time.Since(x.started)
	return []byte(x.withoutKey(string(body))), err
}

func (x *exchange) withoutKey(s string) string {
	if key := x.upstream().Key.Reveal(); key != "" {
		s = strings.ReplaceAll(s, key, secret.Hidden)
	}
	return s
}

// messageOf finds the message in an error of either dialect, bounded to one line.
func messageOf(body []byte) string {
	var e struct {
		Error   struct{ Message string }
		Message string
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	says := e.Error.Message
	if says == "" {
		says = e.Message
	}
	says = strings.Join(strings.Fields(says), " ")
	if len(says) > 300 {
		says = strings.ToValidUTF8(says[:300], "") + "..."
	}
	return says
}

// keyVariable names the setting that an upstream's refusal is about.
func (x *exchange) keyVariable() string {
	if x.route.Forward != "" {
		return "the token of the run (SANDBOX_LLM_GATEWAY_URL)"
	}
	return x.endpoint.dialect.key()
}

func (x *exchange) addressVariable() string {
	if x.route.Forward != "" {
		return "SANDBOX_LLM_GATEWAY_URL"
	}
	return x.endpoint.dialect.urlVariable()
}

// passAnswer puts a meter into an answer's way.
func (x *exchange) passAnswer(res *http.Response) error {
	unzip(res)
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	x.meter = newMeter(x.endpoint.dialect, err == nil && kind == "text/event-stream")
	res.Body = &metered{x: x, res: res, body: res.Body}
	return nil
}

// unzip undoes the compression of an upstream that compresses unasked.
func unzip(res *http.Response) {
	if !strings.EqualFold(res.Header.Get("Content-Encoding"), "gzip") {
		return
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	res.ContentLength = -1
	res.Body = &gunzip{body: res.Body}
}

type gunzip struct {
	body io.ReadCloser
	zip  *gzip.Reader
}

// Read implements [io.Reader].
func (g *gunzip) Read(p []byte) (int, error) {
	if g.zip == nil {
		zip, err := gzip.NewReader(g.body)
		if err != nil {
			return 0, err
		}
		g.zip = zip
	}
	return g.zip.Read(p)
}

// Close implements [io.Closer].
func (g *gunzip) Close() error { return g.body.Close() }

// metered is the body of an answer. The account is written before its last byte goes
// out; what comes before does not wait for that.
type metered struct {
	x    *exchange
	res  *http.Response
	body io.ReadCloser

	held bool // last is still to go out
	last byte
	err  error // of body, after last
}

// Read implements [io.Reader].
func (b *metered) Read(p []byte) (int, error) {
	if b.held {
		b.account()
		b.held = false
		p[0] = b.last
		return 1, b.err
	}
	n, err := b.body.Read(p)
	x := b.x
	if n > 0 {
		if x.line.Received == 0 {
			x.line.FirstByte = time.Since(x.started)
		}
		x.line.Received += int64(n)
		over := x.meter.over
		x.meter.write(p[:n])
		if n > 1 && x.meter.over && !over {
			b.held, b.last, b.err = true, p[n-1], err
			return n - 1, nil
		}
	}
	if errors.Is(err, io.EOF) {
		x.meter.end()
	}
	if err != nil || x.meter.over {
		b.account()
	}
	return n, err
}

func (b *metered) account() { b.x.account(b.res.Request.Context()) }

// Close implements [io.Closer]. An answer that is closed early was cut by the client.
func (b *metered) Close() error {
	b.account()
	return b.body.Close()
}

// account writes what the request used, once, and tells when that used up the budget.
func (x *exchange) account(ctx context.Context) {
	x.once.Do(func() {
		if !x.endpoint.answers {
			return
		}
		s := x.upload.sent()
		m := x.meter
		if m == nil {
			m = newMeter(x.endpoint.dialect, false)
		}
		c, estimated := m.total(s.text)
		x.line.Model = shortened(m.model)
		if x.line.Model == "" {
			x.line.Model = s.model
		}
		x.line.Used, x.line.Estimated = x.route.Prices.priced(c, x.line.Model, s.model), estimated
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTime)
		defer cancel()
		total, err := x.g.cfg.Account(ctx, x.line.Run, x.line.Model, x.line.Used)
		if err != nil {
			x.g.cfg.Notify(x.line.Run, "error", "what a request to a model used was not recorded: "+err.Error())
			return
		}
		if why := x.route.Budget.usedUp(total, x.line.Used); why != "" {
			x.g.cfg.Notify(x.line.Run, "warn", why+": it gets no more answers")
		}
	})
}
