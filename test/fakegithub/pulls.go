package fakegithub

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) describePull(repo *Repo, p *Pull, schema string) any {
	labels := []any{}
	for _, name := range p.Labels {
		labels = append(labels, s.label(name))
	}
	state := "open"
	if p.Closed {
		state = "closed"
	}
	m := map[string]any{
		"number": p.Number, "title": p.Title, "body": p.Body, "draft": p.Draft, "state": state, "labels": labels,
		"html_url": s.webURL(repo) + "/pull/" + strconv.Itoa(p.Number),
		"head":     map[string]any{"ref": p.Head, "label": repo.Owner + ":" + p.Head, "sha": s.tip(repo, "refs/heads/"+p.Head)},
		"base":     map[string]any{"ref": p.Base, "label": repo.Owner + ":" + p.Base, "sha": s.tip(repo, "refs/heads/"+p.Base)},
	}
	if schema == "pull-request" {
		m["merged"] = p.Merged
	}
	return s.fill(schema, m)
}

func (s *Server) label(name string) any {
	return s.fill("label", map[string]any{"name": name, "color": "ededed", "description": "", "url": s.URL + "/labels/x"})
}

// listPulls finds open pull requests by their head.
func (s *Server) listPulls(r *http.Request, repo *Repo) answer {
	head, base := r.URL.Query().Get("head"), r.URL.Query().Get("base")
	all := []any{}
	for _, p := range repo.pulls {
		if p.Closed || p.CrossForks || head != "" && head != repo.Owner+":"+p.Head || base != "" && base != p.Base {
			continue
		}
		all = append(all, s.describePull(repo, p, "pull-request-simple"))
	}
	return answer{http.StatusOK, all}
}

func (s *Server) createPull(r *http.Request, repo *Repo) answer {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	head := strings.TrimPrefix(in.Head, repo.Owner+":")
	tip, base := s.tip(repo, "refs/heads/"+head), s.tip(repo, "refs/heads/"+in.Base)
	said := ""
	switch {
	case tip == "":
		said = "head is invalid"
	case base == "":
		said = "base is invalid"
	case tip == base:
		said = "No commits between " + in.Base + " and " + head
	}
	for _, p := range repo.pulls {
		if p.Head == head && p.Base == in.Base && !p.Closed && !p.CrossForks {
			said = "A pull request already exists for " + repo.Owner + ":" + head + "."
		}
	}
	if said != "" {
		a := unprocessable("Validation Failed")
		a.body.(map[string]any)["errors"] = []any{map[string]any{"resource": "PullRequest", "code": "custom", "message": said}}
		return a
	}
	p := &Pull{Number: len(repo.pulls) + 1, Head: head, Base: in.Base, Title: in.Title, Body: in.Body, Draft: in.Draft}
	repo.pulls = append(repo.pulls, p)
	return answer{http.StatusCreated, s.describePull(repo, p, "pull-request")}
}

func (s *Server) addLabels(r *http.Request, repo *Repo, number string) answer {
	var in struct{ Labels []string }
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(repo.pulls) {
		return refusal(http.StatusNotFound, "Not Found")
	}
	p := repo.pulls[n-1]
	all := []any{}
	for _, name := range in.Labels {
		if !slices.Contains(p.Labels, name) {
			p.Labels = append(p.Labels, name)
		}
	}
	for _, name := range p.Labels {
		all = append(all, s.label(name))
	}
	return answer{http.StatusOK, all}
}
