package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// CI is what was checked of one commit.
type CI struct {
	Checks   []Check
	Statuses []Status
	Runs     []WorkflowRun
}

// Check is a check run; its Conclusion is "" until it is completed.
type Check struct {
	Name, Conclusion, Summary string
}

// Status is one of the older kind: success, failure, error or pending.
type Status struct {
	Context, State, Description string
}

// WorkflowRun is a run of GitHub Actions; its Conclusion is "" until it is completed.
type WorkflowRun struct {
	Name, Conclusion string
}

// Review is a review of a pull request: APPROVED, CHANGES_REQUESTED, COMMENTED or
// DISMISSED. Association is what the reviewer is to the repository, such as MEMBER.
type Review struct {
	Login, Association, State, Body string
}

// Thread is a conversation on lines of a pull request.
type Thread struct {
	Path     string
	Line     int
	Resolved bool
	Comments []Comment
}

// Comment is a part of a thread.
type Comment struct {
	Login, Association, Body string
}

// SetCI says what was checked of the newest commit of a branch.
func (s *Server) SetCI(r *Repo, branch string, ci CI) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ci == nil {
		r.ci = map[string]*CI{}
	}
	r.ci[s.tip(r, "refs/heads/"+branch)] = &ci
}

// ChangePull changes a pull request.
func (s *Server) ChangePull(r *Repo, number int, change func(*Pull)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(r.pulls[number-1])
}

func (r *Repo) pull(number string) *Pull {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(r.pulls) {
		return nil
	}
	return r.pulls[n-1]
}

// followed serves what is read of a pull request and of its commit.
func (s *Server) followed(r *http.Request, repo *Repo, op string, params map[string]string) answer {
	switch op {
	case OpGetPull, OpReviews:
		p := repo.pull(params["pull_number"])
		if p == nil {
			return refusal(http.StatusNotFound, "Not Found")
		}
		if op == OpGetPull {
			return answer{http.StatusOK, s.describePull(repo, p, "pull-request")}
		}
		return s.reviews(r, p)
	}
	sha := params["ref"]
	if op == OpActions {
		sha = r.URL.Query().Get("head_sha")
	}
	ci := repo.ci[sha]
	if ci == nil {
		ci = &CI{}
	}
	switch op {
	case OpChecks:
		return s.checks(r, sha, ci)
	case OpStatuses:
		return s.statuses(repo, sha, ci)
	}
	all := []any{}
	for i, run := range ci.Runs {
		m := map[string]any{"id": i + 1, "name": run.Name, "head_sha": sha, "status": "in_progress", "html_url": s.webURL(repo) + "/actions/runs/" + strconv.Itoa(i+1)}
		if run.Conclusion != "" {
			m["status"], m["conclusion"] = "completed", run.Conclusion
		}
		all = append(all, s.fill("workflow-run", m))
	}
	return answer{http.StatusOK, map[string]any{"total_count": len(all), "workflow_runs": all}}
}

func (s *Server) reviews(r *http.Request, p *Pull) answer {
	all := []any{}
	for i, one := range p.Reviews {
		all = append(all, s.fill("pull-request-review", map[string]any{
			"id": i + 1, "user": s.user(one.Login), "body": one.Body, "state": one.State, "author_association": one.Association,
			"submitted_at": s.o.Clock().UTC().Format(time.RFC3339),
		}))
	}
	return answer{http.StatusOK, page(r, all)}
}

// page is the part of a list that was asked for.
func page(r *http.Request, all []any) []any {
	size, n := pageOf(r)
	from := min(size*(n-1), len(all))
	return all[from:min(from+size, len(all))]
}

func pageOf(r *http.Request) (size, n int) {
	q := r.URL.Query()
	size, n = 30, 1
	if v, err := strconv.Atoi(q.Get("per_page")); err == nil {
		size = v
	}
	if v, err := strconv.Atoi(q.Get("page")); err == nil {
		n = v
	}
	return size, n
}

// link is the header that leads to the next page of a list, if this one is full.
func (s *Server) link(r *http.Request, a answer) string {
	list, _ := a.body.([]any)
	if m, ok := a.body.(map[string]any); ok {
		list, _ = m["check_runs"].([]any)
	}
	size, n := pageOf(r)
	if r.Method != http.MethodGet || len(list) < size {
		return ""
	}
	return fmt.Sprintf(`<%s/api/v3%s?per_page=%d&page=%d>; rel="next"`, s.URL, r.URL.Path, size, n+1)
}

func (s *Server) checks(r *http.Request, sha string, ci *CI) answer {
	all := []any{}
	for i, c := range ci.Checks {
		m := map[string]any{
			"id": i + 1, "name": c.Name, "head_sha": sha, "status": "in_progress", "details_url": s.URL + "/checks/" + strconv.Itoa(i+1),
			"output": map[string]any{"summary": c.Summary},
		}
		if c.Conclusion != "" {
			m["status"], m["conclusion"] = "completed", c.Conclusion
		}
		all = append(all, s.fill("check-run", m))
	}
	return answer{http.StatusOK, map[string]any{"total_count": len(all), "check_runs": page(r, all)}}
}

func (s *Server) statuses(repo *Repo, sha string, ci *CI) answer {
	all, state := []any{}, "success"
	if len(ci.Statuses) == 0 {
		state = "pending" // GitHub's word for none
	}
	for i, one := range ci.Statuses {
		if one.State != "success" {
			state = one.State
		}
		all = append(all, s.fill("simple-commit-status", map[string]any{
			"id": i + 1, "context": one.Context, "state": one.State, "description": one.Description, "target_url": s.URL + "/status/" + strconv.Itoa(i+1),
		}))
	}
	return answer{http.StatusOK, s.fill("combined-commit-status", map[string]any{
		"state": state, "sha": sha, "total_count": len(all), "statuses": all, "repository": map[string]any{"name": repo.Name},
	})}
}

// queryPull is a pull request with its conversations.
func (s *Server) queryPull(repo *Repo, number any, bearer string) any {
	p := repo.pull(fmt.Sprint(number))
	if _, refused := s.may(bearer, repo, "pull_requests", "read"); refused != nil || p == nil {
		return nil
	}
	threads := []any{}
	for i, t := range p.Threads {
		comments := []any{}
		for j, c := range t.Comments {
			comments = append(comments, map[string]any{
				"id": strconv.Itoa(j), "author": map[string]any{"__typename": "User", "login": c.Login}, "authorAssociation": c.Association,
				"body": c.Body, "url": s.webURL(repo) + "/pull/" + strconv.Itoa(p.Number) + "#" + strconv.Itoa(i),
			})
		}
		threads = append(threads, map[string]any{
			"id": strconv.Itoa(i), "isResolved": t.Resolved, "isOutdated": false, "path": t.Path, "line": t.Line,
			"comments": map[string]any{"nodes": comments, "totalCount": len(comments)},
		})
	}
	return map[string]any{"id": "PR", "number": p.Number, "reviewThreads": map[string]any{"nodes": threads, "totalCount": len(threads)}}
}
