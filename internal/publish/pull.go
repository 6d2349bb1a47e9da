package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/signing"
	"github.com/Insights/insightscli/internal/task"
)

type pullArgs struct {
	Title  string   `json:"title"`
	Body   string   `json:"body"`
	Base   string   `json:"base"`
	Head   string   `json:"head"`
	Draft  *bool    `json:"draft"`
	Labels []string `json:"labels"`
	Cwd    string   `json:"cwd"`
}

// Bounds of labels, which are GitHub's.
const (
	maxLabels = 100
	maxLabel  = 50
)

// pull opens a pull request.
func (p *Publisher) pull(ctx context.Context, a pullArgs) (string, error) {
	const op = "publish.pull"
	if err := checkTexts(op, a.Title, a.Body); err != nil {
		return "", err
	}
	if err := checkLabels(op, a.Labels); err != nil {
		return "", err
	}
	j, done, err := p.begin(ctx, op, a.Cwd)
	if err != nil {
		return "", err
	}
	defer done()
	if !p.o.CreatePR {
		return "", errs.New(op, errs.Conflict, "publish with git_signed_commit and tell the user the branch; a person opens the pull request",
			"this run opens no pull requests (--create-pr=false)")
	}
	if err := j.aim(a.Head); err != nil {
		return "", err
	}
	if err := j.authorize(ctx, true); err != nil {
		return "", err
	}
	base := strings.TrimPrefix(a.Base, "refs/heads/")
	if base == "" && j.repo.Target != j.branch {
		base = j.repo.Target
	}
	r, err := j.client.PullRequest(ctx, signing.PullRequest{
		Repo: j.to, Head: j.branch, Base: base, Title: strings.TrimSpace(a.Title), Body: p.attributed(a.Body),
		Draft: a.Draft == nil || *a.Draft, Labels: a.Labels,
	})
	if err != nil {
		return "", err
	}
	p.o.Tell(task.Published{Org: j.repo.Repo.Org, Name: j.repo.Repo.Name, Branch: j.branch, URL: r.URL, Pull: r.Number})
	return opened(j, r), nil
}

func checkLabels(op string, labels []string) error {
	if len(labels) > maxLabels {
		return errs.New(op, errs.Usage, "give fewer", "more than %d labels", maxLabels)
	}
	for _, l := range labels {
		if strings.TrimSpace(l) == "" || len(l) > 4*maxLabel || len([]rune(l)) > maxLabel {
			return errs.New(op, errs.Usage, fmt.Sprintf("use 1 to %d characters", maxLabel), "%q is no label", l)
		}
	}
	return nil
}

// attributed is the body of a pull request with the run that it comes from.
func (p *Publisher) attributed(body string) string {
	line := fmt.Sprintf("Generated-By: insightscli, run %s of task %s", p.o.Run, p.o.Task)
	body = strings.TrimSpace(body)
	if strings.Contains(body, line) {
		return body
	}
	return strings.TrimLeft(body+"\n\n---\n"+line, "\n")
}

// opened is what the tool says.
func opened(j *job, r signing.Pull) string {
	kind := "pull request"
	if r.Draft {
		kind = "draft pull request"
	}
	text := fmt.Sprintf("Opened %s #%d of %s, from %s into %s:", kind, r.Number, j.to, j.branch, r.Base)
	if r.Existed {
		text = fmt.Sprintf("%s of %s has an open %s already, #%d into %s; its title and body were left as they are:", j.branch, j.to, kind, r.Number, r.Base)
	}
	text += "\n- " + r.URL
	for _, w := range r.Warnings {
		text += "\nnote: " + w
	}
	return text
}
