package signing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
)

// place is a branch of a repository as GitHub has it.
type place struct {
	id   string // of the repository
	repo Repo   // by its name of today
	main string // the default branch
	tip  *tip   // nil where there is no branch
	// bases are those of the open pull requests that the branch heads, if asked for.
	bases    []string
	warnings []string
}

// tip is the last commit of a branch.
type tip struct {
	oid, url, tree, message string
	parents                 []string
	signed                  bool
}

func (p *place) tipOID() string {
	if p.tip == nil {
		return ""
	}
	return p.tip.oid
}

const placeQuery = `query($owner: String!, $name: String!, $ref: String!, $head: String!, $pulls: Boolean!) {
  repository(owner: $owner, name: $name) {
    id nameWithOwner isArchived
    defaultBranchRef { name }
    ref(qualifiedName: $ref) {
      target { oid ... on Commit {
        message url tree { oid } parents(first: 3) { nodes { oid } } signature { isValid }
      } }
    }
    pullRequests(headRefName: $head, states: [OPEN], first: 20) @include(if: $pulls) {
      nodes { baseRefName isCrossRepository }
    }
  }
}`

type placeAnswer struct {
	Repository *struct {
		ID, NameWithOwner string
		IsArchived        bool
		DefaultBranchRef  *struct{ Name string }
		Ref               *struct{ Target commitAnswer }
		PullRequests      struct {
			Nodes []struct {
				BaseRefName       string
				IsCrossRepository bool
			}
		}
	}
}

// commitAnswer is a commit as GraphQL has it.
type commitAnswer struct {
	OID, Message, URL string
	Tree              struct{ OID string }
	Parents           struct{ Nodes []struct{ OID string } }
	Signature         *struct{ IsValid bool }
}

func (a *commitAnswer) tip() *tip {
	t := &tip{oid: a.OID, url: a.URL, tree: a.Tree.OID, message: a.Message, signed: a.Signature != nil && a.Signature.IsValid}
	for _, parent := range a.Parents.Nodes {
		t.parents = append(t.parents, parent.OID)
	}
	return t
}

// look asks for a branch, and for its pull requests where they matter.
func (c *Client) look(ctx context.Context, op string, repo Repo, branch string, pulls bool) (*place, error) {
	var a placeAnswer
	err := c.query(ctx, op, placeQuery, map[string]any{
		"owner": repo.Owner, "name": repo.Name, "ref": "refs/heads/" + branch, "head": branch, "pulls": pulls,
	}, &a)
	if err != nil {
		return nil, err
	}
	r := a.Repository
	if r == nil {
		return nil, unseen(op, repo)
	}
	owner, name, ok := strings.Cut(r.NameWithOwner, "/")
	p := &place{id: r.ID, repo: Repo{owner, name}}
	if !ok || p.repo.check(op) != nil {
		return nil, errs.New(op, errs.Unavailable, "", "GitHub says that %s is called %q", repo, r.NameWithOwner)
	}
	if r.IsArchived {
		return nil, errs.New(op, errs.Conflict, "unarchive it in its settings", "the repository %s is archived: it can only be read", p.repo)
	}
	if !strings.EqualFold(p.repo.String(), repo.String()) {
		p.warnings = append(p.warnings, fmt.Sprintf("%s is called %s now: set the address of origin", repo, p.repo))
	}
	if r.DefaultBranchRef != nil {
		p.main = r.DefaultBranchRef.Name
	}
	for _, pull := range r.PullRequests.Nodes {
		if !pull.IsCrossRepository {
			p.bases = append(p.bases, pull.BaseRefName)
		}
	}
	if r.Ref != nil {
		p.tip = r.Ref.Target.tip()
		if !validOID.MatchString(p.tip.oid) { // it will stand among git's arguments
			return nil, errs.New(op, errs.Unavailable, "", "GitHub says that %s is at %q", branch, short(p.tip.oid))
		}
	}
	return p, nil
}

func unseen(op string, repo Repo) error {
	return errs.New(op, errs.NotFound, "check its name, and that the GitHub App is installed on it", "GitHub shows no repository %s to this token", repo)
}

// queryError is what GraphQL has against a request.
type queryError struct{ kind, message string }

// Error implements error.
func (e *queryError) Error() string { return e.message }

// maxAnswer bounds an answer of GraphQL; all of ours are short.
const maxAnswer = 4 << 20

// query asks GraphQL and reads data into an answer.
func (c *Client) query(ctx context.Context, op, query string, variables map[string]any, into any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	return c.send(ctx, c.http, op, body, into)
}

// send sends a request of GraphQL by one client.
func (c *Client) send(ctx context.Context, by *http.Client, op string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.graphql, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "insightscli")
	resp, err := by.Do(req)
	if err != nil {
		return explain(ctx, op, "ask GitHub", nil, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return explain(ctx, op, "ask GitHub", resp.Header, err)
	}
	var a struct {
		Message string
		Data    json.RawMessage
		Errors  []struct{ Type, Message string }
	}
	err = json.Unmarshal(text, &a)
	switch {
	case resp.StatusCode != http.StatusOK:
		return explain(ctx, op, "ask GitHub", resp.Header, &statusError{resp.StatusCode, a.Message})
	case err != nil:
		return errs.New(op, errs.Unavailable, "try again", "GitHub's answer was cut, or is not what was expected")
	case len(a.Errors) > 0:
		return explainQuery(op, ghclient.SSO(resp.Header), &queryError{a.Errors[0].Type, a.Errors[0].Message})
	}
	return json.Unmarshal(a.Data, into)
}

func explainQuery(op, sso string, e *queryError) error {
	switch {
	case sso != "":
		return errs.New(op, errs.Auth, "authorize the token at "+sso, "the organization asks for single sign-on")
	case e.kind == "RATE_LIMITED":
		return errs.New(op, errs.Unavailable, "wait a while, then try again", "GitHub limits how often it may be asked")
	case e.kind == "NOT_FOUND":
		return errs.New(op, errs.NotFound, "check the name, and that the GitHub App is installed on the repository", "GitHub says: %w", e)
	case e.kind == "FORBIDDEN", e.kind == "INSUFFICIENT_SCOPES":
		return errs.New(op, errs.Auth, permissionHint, "GitHub refuses: %w", e)
	}
	return errs.New(op, errs.Conflict, "", "GitHub refuses: %w", e)
}
