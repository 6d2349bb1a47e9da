package ghapp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/Insights/insightscli/internal/errs"
)

// DefaultManualPort is where GitHub sends the browser in a manual session. Nothing
// listens there, on any machine: the browser shows an error, with the code in its
// address bar.
const DefaultManualPort = "47013"

// ManualSession makes an app where no browser can reach this machine: a file is opened
// elsewhere, and the address on which that ends is pasted.
type ManualSession struct {
	*trade
	page []byte

	mu   sync.Mutex
	used map[string]bool // codes
}

// Manual checks the options and writes the page. Port, Headless, Open and Timeout play
// no part.
func Manual(o Options) (*ManualSession, error) {
	t, err := newTrade(o)
	if err != nil {
		return nil, err
	}
	p, err := t.formPage(t.states.issue(time.Now()), "http://localhost:"+DefaultManualPort+callbackPath)
	if err != nil {
		return nil, err
	}
	p.Text += " Once the app is created, GitHub leads to a page that does not open: copy its address, and paste it in the terminal."
	p.Nonce = rand.Text()
	p.Policy = p.policy()
	body, err := p.render()
	return &ManualSession{trade: t, page: body, used: map[string]bool{}}, err
}

// Page is the file to open in any browser. It holds no secret.
func (m *ManualSession) Page() []byte { return m.page }

// Finish returns the app that was created, by what was pasted: the address that GitHub
// led to, or the code in it. It may be called again when it was the wrong one; no code
// is used twice.
func (m *ManualSession) Finish(ctx context.Context, pasted string) (Result, error) {
	const op = "ghapp.Finish"
	code, state, err := ParseRedirect(pasted)
	if err != nil {
		return Result{}, err
	}
	if state != "" {
		switch err := m.states.check(state, time.Now()); {
		case errors.Is(err, errExpired):
			return Result{}, errs.New(op, errs.Conflict, "delete the app at "+m.site.appsURL(m.o.Org)+" and start again", "what was pasted is too old: %w", err)
		case err != nil:
			return Result{}, errs.New(op, errs.Usage, "open the page of this session and paste the address it ends on", "what was pasted: %w", err)
		}
	}
	m.mu.Lock()
	used := m.used[code]
	m.used[code] = true
	m.mu.Unlock()
	if used {
		return Result{}, errs.New(op, errs.Conflict, "create the app again", "the code was used")
	}
	return m.convert(ctx, code)
}

// ParseRedirect finds the code and the state in what a person copied from the address
// bar, with or without the beginning of the address, in quotes, or broken over lines.
// The code alone is enough; it has no state then.
func ParseRedirect(pasted string) (code, state string, err error) {
	const hint = "paste the whole address of the page on which GitHub left you; it has code= in it"
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, pasted)
	text = strings.Trim(text, "\"'`<>")
	if code = text; strings.ContainsAny(text, "?&=/") {
		query := text[strings.Index(text, "?")+1:]
		query, _, _ = strings.Cut(query, "#")
		q, perr := url.ParseQuery(query)
		if perr != nil {
			return "", "", errs.New("ghapp.ParseRedirect", errs.Usage, hint, "what was pasted is no address")
		}
		code, state = q.Get("code"), q.Get("state")
	}
	if !validCode(code) || code == text && !bareCode(code) {
		return "", "", errs.New("ghapp.ParseRedirect", errs.Usage, hint, "what was pasted has no code")
	}
	return code, state, nil
}

// bareCode tells a code from a word that was typed by mistake.
func bareCode(text string) bool {
	const shortest = 10
	return len(text) >= shortest && !strings.ContainsFunc(text, func(r rune) bool {
		return !alphanumeric(r) && r != '-' && r != '_'
	})
}
