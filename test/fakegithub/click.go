package fakegithub

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Page is where a browser is.
type Page struct {
	URL    string
	Status int
	Header http.Header
	Body   string
}

// Form is a form of a page.
type Form struct {
	Action string // absolute
	Fields url.Values
}

// Click does what a person does in a browser: it opens a page that carries a manifest,
// lets it post that to GitHub, and clicks "Create GitHub App" there. It returns the
// page that this ends on.
func Click(ctx context.Context, address string) (Page, error) {
	page, err := Get(ctx, address)
	for range 2 {
		if err != nil {
			return page, err
		}
		form, ferr := page.Form()
		if ferr != nil {
			return page, ferr
		}
		page, err = form.Post(ctx)
	}
	return page, err
}

// Get opens a page.
func Get(ctx context.Context, address string) (Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Page{}, err
	}
	return visit(req)
}

// Post submits a form and follows where that leads.
func (f Form) Post(ctx context.Context) (Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.Action, strings.NewReader(f.Fields.Encode()))
	if err != nil {
		return Page{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return visit(req)
}

func visit(req *http.Request) (Page, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(resp.Body)
	return Page{URL: resp.Request.URL.String(), Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, err
}

// Form returns the one form of a page, if its own policy lets it be sent. The pages
// are ours and the fake's: what is not written the way they are is not understood.
func (p Page) Form() (Form, error) {
	open := regexp.MustCompile(`<form[^>]* action="([^"]*)"[^>]* method="post"`).FindAllStringSubmatch(p.Body, -1)
	if len(open) != 1 {
		return Form{}, fmt.Errorf("%s (%d) has %d forms:\n%s", p.URL, p.Status, len(open), p.Body)
	}
	base, err := url.Parse(p.URL)
	if err != nil {
		return Form{}, err
	}
	action, err := base.Parse(html.UnescapeString(open[0][1]))
	if err != nil {
		return Form{}, err
	}
	if !p.allows(action) {
		return Form{}, errors.New("the page's policy forbids to post to " + action.String())
	}
	f := Form{Action: action.String(), Fields: url.Values{}}
	for _, in := range regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]* value="([^"]*)"`).FindAllStringSubmatch(p.Body, -1) {
		f.Fields.Add(in[1], html.UnescapeString(in[2]))
	}
	return f, nil
}

// allows reports whether the page's policy lets a form go to an address.
func (p Page) allows(action *url.URL) bool {
	for directive := range strings.SplitSeq(p.Header.Get("Content-Security-Policy"), ";") {
		words := strings.Fields(directive)
		if len(words) > 0 && words[0] == "form-action" {
			return slices.Contains(words[1:], action.Scheme+"://"+action.Host)
		}
	}
	return true
}
