package ghapp

import (
	"bytes"
	"crypto/rand"
	"html/template"
	"net/http"
)

// A page is what a browser shows: a form that posts the manifest, or words.
type page struct {
	Title, Text string
	Action      string // of the form; "" has none
	Manifest    string
	Link, To    string // words and address of a link
	Origin      string // of the GitHub
	Nonce       string
	Policy      string // for a file, which has no headers
}

// layout is every page. The button is for browsers without scripts, and for a second
// try: GitHub forgets the manifest when it asks for a login, or on a reload.
const layout = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{{- if .Policy}}
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
{{- end}}
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style nonce="{{.Nonce}}">body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}button{font:inherit;padding:.5rem 1rem}</style>
</head>
<body>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{- if .Action}}
<form id="manifest" action="{{.Action}}" method="post">
<input type="hidden" name="manifest" value="{{.Manifest}}">
<button type="submit">Continue to GitHub</button>
</form>
<script nonce="{{.Nonce}}">document.getElementById("manifest").submit()</script>
{{- end}}
{{- if .Link}}
<p><a href="{{.To}}" rel="noreferrer">{{.Link}}</a></p>
{{- end}}
</body>
</html>
`

// formPage is the page that posts a manifest.
func (t *trade) formPage(state, redirect string) (page, error) {
	text, err := t.o.encodeManifest(redirect)
	return page{
		Title:  "Create a GitHub App",
		Text:   "This page sends the settings of the app to GitHub, where you create it with one click. Sign in there first, then come back and continue, if GitHub shows an empty form.",
		Action: t.site.newAppURL(t.o.Org, state), Manifest: text, Origin: t.site.web,
	}, err
}

// policy lets a page do what it must and nothing else: one script, one style, and a
// form that can only go to GitHub.
func (p *page) policy() string {
	form := "'none'"
	if p.Action != "" {
		form = p.Origin
	}
	return "default-src 'none'; script-src 'nonce-" + p.Nonce + "'; style-src 'nonce-" + p.Nonce +
		"'; form-action " + form + "; base-uri 'none'"
}

func (p *page) render() ([]byte, error) {
	var b bytes.Buffer
	t, err := template.New("page").Parse(layout)
	if err == nil {
		err = t.Execute(&b, p)
	}
	return b.Bytes(), err
}

// send answers with the page. What the address holds goes to no other site; GitHub may
// know the origin that posts to it.
func (p *page) send(w http.ResponseWriter, status int) {
	p.Nonce = rand.Text()
	body, err := p.render()
	if err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy()+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "strict-origin")
	if p.Action == "" {
		h.Set("Referrer-Policy", "no-referrer")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser went away
}
