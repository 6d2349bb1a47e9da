package ghapp

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// handler serves the pages of one session.
type handler struct {
	*trade
	hosts    []string // what a browser on this machine may call us
	path     string   // of the form: other users of this machine do not know it
	redirect string
	now      func() time.Time

	codes chan string   // at most one is ever sent
	done  chan struct{} // closed when the outcome stands

	mu      sync.Mutex
	taken   bool           // a code was sent
	told    map[error]bool // what the user heard of
	outcome page           // read after done is closed
	failed  bool
}

const callbackPath = "/callback"

func newHandler(t *trade, port string) *handler {
	return &handler{
		trade: t, now: time.Now, told: map[error]bool{},
		hosts: []string{"localhost:" + port, "127.0.0.1:" + port},
		path:  "/" + strings.ToLower(rand.Text()), redirect: "http://localhost:" + port + callbackPath,
		codes: make(chan string, 1), done: make(chan struct{}),
	}
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !slices.Contains(h.hosts, r.Host):
		// A name that some site made to point here must not read the page.
		http.Error(w, "this is not the address that was printed", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case r.URL.Path == h.path:
		h.form(w)
	case r.URL.Path == callbackPath && r.Method == http.MethodGet:
		h.callback(w, r)
	default:
		http.Error(w, "open the whole address that was printed", http.StatusNotFound)
	}
}

// form shows the page that posts the manifest, until an app is on its way.
func (h *handler) form(w http.ResponseWriter) {
	h.mu.Lock()
	taken := h.taken
	h.mu.Unlock()
	if taken {
		(&page{Title: "The app was created", Text: "Go back to the terminal."}).send(w, http.StatusOK)
		return
	}
	p, err := h.formPage(h.states.issue(h.now()), h.redirect)
	if err != nil {
		http.Error(w, "the manifest cannot be written", http.StatusInternalServerError)
		return
	}
	p.send(w, http.StatusOK)
}

// callback is where GitHub sends the browser. Whoever else sends it here does not know
// the state.
func (h *handler) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch err := h.states.check(q.Get("state"), h.now()); {
	case errors.Is(err, errExpired):
		h.tell(err, "open the page again and create the app within an hour")
		(&page{
			Title: "This page expired", Text: "It was opened more than an hour ago, and GitHub allows an hour. If GitHub created an app, delete it there, then try again.",
			Link: "Try again", To: h.path,
		}).send(w, http.StatusGone)
		return
	case err != nil:
		h.tell(err, "use the tab that was opened by this session; if it was not you, somebody tried to slip in an app of theirs")
		(&page{
			Title: "Not from this session",
			Text:  "This answer belongs to an earlier session or was made up. It was not used. The session goes on waiting.",
		}).send(w, http.StatusForbidden)
		return
	}
	code := q.Get("code")
	if !validCode(code) {
		(&page{Title: "No code", Text: "GitHub sent no usable code.", Link: "Try again", To: h.path}).send(w, http.StatusBadRequest)
		return
	}
	h.offer(code)
	select {
	case <-h.done:
		h.showOutcome(w)
	case <-r.Context().Done(): // the tab was closed; the code is used all the same
	}
}

// offer passes on the first code. A tab that is loaded again brings the same one, and
// a second app would have nobody to use it.
func (h *handler) offer(code string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.taken {
		h.taken = true
		h.codes <- code
	}
}

// tell tells the user of each kind of trouble once: anybody on this machine can cause
// it, as often as they like.
func (h *handler) tell(what error, hint string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told[what] {
		return
	}
	h.told[what] = true
	h.o.Notify(errs.New("ghapp.Wait", errs.Conflict, hint, "a browser came back from GitHub: %w", what))
}

// finish sets what every tab is shown from now on, once.
func (h *handler) finish(r Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
		return
	default:
	}
	h.failed = err != nil
	h.outcome = page{
		Title: "The app was created", Text: r.Name + " is yours. Go back to the terminal; this tab can be closed.",
		Link: "Install it on your repositories", To: r.InstallURL,
	}
	if err != nil {
		h.outcome = page{Title: "There is no app", Text: "Go back to the terminal, which says what to do. " + err.Error()}
	}
	close(h.done)
}

func (h *handler) showOutcome(w http.ResponseWriter) {
	p, status := h.outcome, http.StatusOK
	if h.failed {
		status = http.StatusBadGateway
	}
	p.send(w, status)
}

// maxCode is longer than any code.
const maxCode = 256

// validCode reports whether a code can be one segment of a path: visible ASCII, and
// not a name for a folder.
func validCode(code string) bool {
	if code == "" || len(code) > maxCode || strings.Trim(code, ".") == "" {
		return false
	}
	return !strings.ContainsFunc(code, func(r rune) bool { return r <= ' ' || r > '~' })
}
