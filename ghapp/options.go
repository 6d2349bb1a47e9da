package ghapp

import (
	"cmp"
	"net/http"
	"time"
)

// Options say which app is made, and where. The zero value makes one for a person on
// github.com.
type Options struct {
	// Org is the organization that owns the app, by name or address; "" is the person
	// who clicks.
	Org string
	// BaseURL is the GitHub: "" is github.com; a GitHub Enterprise Server or a tenant
	// of ghe.com otherwise.
	BaseURL string
	// APIURL is its API; "" finds it by BaseURL.
	APIURL string
	// Name of the app, at most 34 characters; "" makes one that nobody has, from Who.
	Name string
	// Who is the user or the machine that a made name is to show.
	Who string

	// Issues and Workflows ask for write access to these, Checks for read access to
	// checks, actions and statuses.
	Issues, Workflows, Checks bool

	// SetupURL and CallbackURL replace those of the product.
	SetupURL, CallbackURL string

	// Keep is the file that holds what GitHub answered until Confirm; its folder exists.
	// It must not exist: it would be the only copy of another app's key. See [Kept].
	Keep string

	// Port to listen on; 0 is any. Where it is taken, another is used and Notify told.
	Port int
	// Headless opens no browser.
	Headless bool
	// Open opens a page in a browser; nil is [OpenBrowser].
	Open func(address string) error
	// Timeout is how long Wait waits for the click; 0 is the hour that GitHub allows.
	Timeout time.Duration
	// Notify is told what the user should know while Wait goes on; nil is nobody. It is
	// called from one goroutine at a time.
	Notify func(error)

	// Client asks the API; nil is one with a time limit.
	Client *http.Client
}

// codeLife is how long GitHub gives for all steps.
const codeLife = time.Hour

// complete fills in what is left out and checks the rest.
func (o *Options) complete() (site, error) {
	s, err := newSite(o.BaseURL, o.APIURL)
	if err != nil {
		return s, err
	}
	if o.Org, err = s.parseOrg(o.Org); err != nil {
		return s, err
	}
	if o.Name == "" {
		o.Name = newName(o.Who)
	}
	o.SetupURL = cmp.Or(o.SetupURL, DefaultSetupURL)
	o.CallbackURL = cmp.Or(o.CallbackURL, DefaultCallbackURL)
	o.Timeout = cmp.Or(o.Timeout, codeLife)
	if o.Open == nil {
		o.Open = OpenBrowser
	}
	if o.Notify == nil {
		o.Notify = func(error) {}
	}
	return s, checkName(o.Name)
}
