package cifollow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const threadsQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100) {
        nodes {
          isResolved path line
          comments(first: 30) { nodes { author { login } authorAssociation body } }
        }
      }
    }
  }
}`

type threadsAnswer struct {
	Data struct {
		Repository *struct {
			PullRequest *struct {
				ReviewThreads struct{ Nodes []threadAnswer }
			}
		}
	}
	Errors []struct{ Type, Message string }
}

type threadAnswer struct {
	IsResolved bool
	Path       string
	Line       int
	Comments   struct {
		Nodes []struct {
			Author            *struct{ Login string }
			AuthorAssociation string
			Body              string
		}
	}
}

// queryError is what GraphQL has against a request.
type queryError struct{ kind, message string }

// Error implements error.
func (e *queryError) Error() string { return "GitHub refuses: " + e.message }

// maxAnswer bounds an answer of GraphQL.
const maxAnswer = 16 << 20

// threads reads the conversations that are not resolved. REST does not tell which are.
func (l *look) threads(ctx context.Context) error {
	var a threadsAnswer
	if err := l.query(ctx, &a); err != nil {
		return err
	}
	switch {
	case len(a.Errors) > 0:
		return &queryError{a.Errors[0].Type, a.Errors[0].Message}
	case a.Data.Repository == nil || a.Data.Repository.PullRequest == nil:
		return &queryError{"FORBIDDEN", "the pull request is not shown"}
	}
	for _, n := range a.Data.Repository.PullRequest.ReviewThreads.Nodes {
		t := Thread{Path: n.Path, Line: n.Line}
		for _, c := range n.Comments.Nodes {
			if c.Author != nil && trusted(c.AuthorAssociation) {
				t.Comments = append(t.Comments, Comment{c.Author.Login, c.Body})
			}
		}
		if !n.IsResolved && len(t.Comments) > 0 {
			l.pull.Threads = append(l.pull.Threads, t)
		}
	}
	return nil
}

func (l *look) query(ctx context.Context, into any) error {
	body, err := json.Marshal(map[string]any{"query": threadsQuery, "variables": map[string]any{
		"owner": l.pull.Org, "name": l.pull.Name, "number": l.pull.Number,
	}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.graphql, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "insightscli")
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("GitHub answers %d", resp.StatusCode)
	case json.Unmarshal(text, into) != nil:
		return errors.New("GitHub's answer was cut, or is not what was expected")
	}
	return nil
}
