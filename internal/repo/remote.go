package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Bounds of what a server may take.
const (
	askBound   = 30 * time.Second
	fetchStall = time.Minute
)

// resolveRemote asks the server which branch a run begins with.
func (c *Cache) resolveRemote(ctx context.Context, r task.Repo) (Resolved, error) {
	out := Resolved{Repo: r}
	if r.Mount || r.Uncommitted {
		return out, errs.New("repo.Resolve", errs.Usage, "give the path of a working tree", "--mount and --uncommitted need a repository on this machine")
	}
	if err := c.git.ready(ctx); err != nil {
		return out, err
	}
	h, err := c.ask(ctx, r.URL, r.Branch)
	if err != nil {
		return out, err
	}
	if h.from.url != r.URL {
		out.Repo = moved(r, h.from.url)
		out.Notices = append(out.Notices, fmt.Sprintf("repository %s/%s is called %s/%s now", r.Org, r.Name, out.Repo.Org, out.Repo.Name))
	}
	out.GitHub = c.access.onGitHub(out.Repo.URL)
	if _, _, named := fromOrigin(out.Repo.URL); named {
		out.GitHub = true
	}
	switch {
	case r.Branch == "":
		out.Repo.Branch = h.def
	case !h.found():
		out.Notices = append(out.Notices, fmt.Sprintf("branch %q does not exist: it begins at %s", r.Branch, h.def))
	}
	return out, nil
}

// heads is what a server told about its branches.
type heads struct {
	from   server
	def    string // the default branch
	tip    string // its commit
	branch string // the branch that was asked for, if any
	commit string // its commit; empty: it does not exist
	format string // of object ids
}

func (h heads) found() bool { return h.commit != "" }

// ask asks a server about its branches, with whatever opens it.
func (c *Cache) ask(ctx context.Context, address, branch string) (heads, error) {
	args := []string{"ls-remote", "--symref", "--", address, "HEAD"}
	if branch != "" {
		args = append(args, "refs/heads/"+branch)
	}
	var out string
	from, err := c.access.reach(ctx, address, func(s server) error {
		args[3] = s.url
		ask := s.call(args...)
		ask.bound = askBound
		var err error
		out, err = c.git.text(ctx, ask)
		return err
	})
	if err != nil {
		return heads{}, err
	}
	h := readHeads(out, branch)
	h.from = from
	switch {
	case h.format == "":
		return h, c.noHead(ctx, from.url)
	case h.def == "" && !h.found():
		return h, errs.New("repo.Resolve", errs.Usage, "name one with --branch", "repository %s has no default branch", from.url)
	case h.def != "" && !validBranch(h.def):
		return h, errs.New("repo.Resolve", errs.Unavailable, "name a branch with --branch", "the default branch of %s has no usable name", from.url)
	}
	return h, nil
}

// noHead tells a repository without a commit from one whose HEAD names a branch that
// nobody has pushed.
func (c *Cache) noHead(ctx context.Context, address string) error {
	var out string
	_, err := c.access.reach(ctx, address, func(s server) error {
		list := s.call("ls-remote", "--heads", "--", s.url)
		list.bound = askBound
		var err error
		out, err = c.git.text(ctx, list)
		return err
	})
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(out, "\n")
	_, branch, ok := strings.Cut(line, "\trefs/heads/")
	if !ok || !validBranch(branch) {
		return errs.New("repo.Resolve", errs.Conflict, "push a first commit to it", "repository %s has no commit yet", address)
	}
	return errs.New("repo.Resolve", errs.Usage, "name a branch that exists, such as --branch "+branch,
		"the default branch of %s does not exist", address)
}

// readHeads reads the output of `git ls-remote --symref`.
func readHeads(out, branch string) heads {
	h := heads{branch: branch}
	for _, line := range strings.Split(out, "\n") {
		value, name, _ := strings.Cut(line, "\t")
		if ref, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" {
			h.def = ref
		}
		if !isObjectID(value) {
			continue
		}
		h.format = map[int]string{40: "sha1", 64: "sha256"}[len(value)]
		switch {
		case name == "HEAD":
			h.tip = value
		case branch != "" && name == "refs/heads/"+branch:
			h.commit = value
		}
	}
	return h
}

// openHint is how a repository that wants a key may be opened.
func openHint(address string) string {
	if org, name, ok := fromOrigin(address); ok && !confidential(address) {
		return fmt.Sprintf("check the name and the SSH key, or give it as %s/%s, which a GitHub App or a token opens", org, name)
	}
	return "check the name; for a private repository have git keep a credential for it (git help credentials), or clone it yourself and give its path"
}

// remoteError says what kind of trouble a server is in, from what git said. Trouble of
// our own repository stays as it is.
func remoteError(address string, err error) error {
	var exit *gitError
	var ours *ourTrouble
	if err == nil || errors.As(err, &ours) {
		return err
	}
	if sso := singleSignOn(address, err); sso != nil {
		return sso
	}
	if rateLimited(err) {
		return errs.New("repo.Resolve", errs.Unavailable, "wait a while, then try again", "the server of %s limits how often it may be asked", address)
	}
	if !errors.As(err, &exit) {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return errs.New("repo.Resolve", errs.Unavailable, "check the address and the network", "repository %s did not answer: %w", address, err)
	}
	low := strings.ToLower(exit.stderr)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(low, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("host key verification failed"):
		return errs.New("repo.Resolve", errs.Auth, "connect to the host once with ssh to record its key", "the key of the host of %s is not known", address)
	case has("could not read username", "could not read password", "authentication failed", "permission denied",
		"terminal prompts disabled", "returned error: 401", "returned error: 403", "access denied"):
		return errs.New("repo.Resolve", errs.Auth, openHint(address), "repository %s does not exist or needs credentials%w", address, serverSays(exit.stderr))
	case has("dubious ownership", "unsafe repository"):
		return errs.New("repo.Resolve", errs.Auth, "run insightscli as the owner of the repository", "repository %s belongs to another user", address)
	case has("not found", "does not exist", "does not appear to be a git repository", "no such file", "couldn't find remote ref"):
		return errs.New("repo.Resolve", errs.NotFound, "check the address", "there is no repository at %s", address)
	}
	return errs.New("repo.Resolve", errs.Unavailable, "check the address and the network", "repository %s is not reachable: %w", address, err)
}

// damaged recognises what git says about its own repository when that is broken.
func damaged(err error) bool {
	if exitCode(err) <= 0 {
		return false
	}
	low := strings.ToLower(stderrOf(err))
	for _, p := range []string{
		"not a git repository: '", "bad object", "corrupt", "unable to read", "missing blob", "missing tree",
		"missing commit", "invalid sha1 pointer", "did not send all necessary objects", "index file", "packfile", "bad config",
		"unable to resolve reference", "cannot lock ref",
	} {
		if strings.Contains(low, p) {
			return true
		}
	}
	return false
}
