package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// secretMinted is followed by a mark of each token that GitHub has made for a run: whoever
// ends the run, maybe after a crash, ends them.
const secretMinted = "insightscli.github.minted."

// mintedName is the name under which a token is sealed with its run.
func mintedName(token secret.String) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return secretMinted + hex.EncodeToString(sum[:8])
}

// sealing keeps the values of runs.
type sealing interface {
	All(ctx context.Context, run task.ID) (map[string]secret.String, error)
	Put(ctx context.Context, run task.ID, name string, value secret.String) error
}

// keepMinted seals a token of GitHub with the run that it was made for, so that it is masked
// in what the run tells and revoked at its end. Where that cannot be, it ends at once.
func (k githubKeys) keepMinted(ctx context.Context, m config.Machine, secrets sealing, run task.ID, token secret.String) error {
	ctx = context.WithoutCancel(ctx)
	err := secrets.Put(ctx, run, mintedName(token), token)
	if err != nil {
		k.revoke(ctx, m, token)
	}
	return err
}

// revokeBound bounds the end of a token.
const revokeBound = 5 * time.Second

// revoke ends a token of the App. What goes wrong is nobody's trouble: it ends by itself.
func (k githubKeys) revoke(ctx context.Context, m config.Machine, token secret.String) {
	ctx, cancel := context.WithTimeout(ctx, revokeBound)
	defer cancel()
	_ = ghapp.Revoke(ctx, apiURL(k.url), token, githubClient(m))
}

// reads are the permissions that a sandbox may have, as far as the App has them.
func reads() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"contents", "metadata", "pull_requests", "issues", "checks", "actions", "statuses"} {
		all[name] = "read"
	}
	return all
}

// githubToken makes the credential with which the sandbox of a run reads; see
// steps.Steps.GitHubToken. It is never one of the user's own, which could write.
func (v *services) githubToken(ctx context.Context, spec task.Spec) (t steps.GitHubToken, managed bool, err error) {
	values, err := v.secrets.All(ctx, spec.Run)
	if err != nil {
		return t, true, err
	}
	k := unsealGitHubKeys(values)
	t.Host = k.host()
	had := false
	for name := range values {
		had = had || strings.HasPrefix(name, secretMinted)
	}
	if k.key.Empty() || v.removed(k) {
		return t, had, nil
	}
	want, ok := wantedReads(v.repos.With(k.access(v.config.Machine, nil)), spec.Repos)
	if !ok {
		return t, false, nil
	}
	in, err := k.installations(v.config.Machine, func(text string) { v.notify(spec.Run, "info", text) })
	if err != nil {
		return t, true, err
	}
	made, err := in.Mint(ctx, want)
	if err != nil && len(want.Repos) > 1 && denied(err) { // it may be installed on some of them
		want.Repos = want.Repos[:1]
		made, err = in.Mint(ctx, want)
	}
	if err != nil {
		return t, true, err
	}
	if err := k.keepMinted(ctx, v.config.Machine, v.secrets, spec.Run, made.Value); err != nil {
		return t, true, err
	}
	t.Value, t.Expires = made.Value, made.Expires
	return t, true, nil
}

// removed reports whether the App has gone from the settings of this process since it
// began. A process whose settings never had it cannot tell.
func (v *services) removed(k githubKeys) bool {
	if v.reload == nil || githubKeysOf(v.config).clientID != k.clientID {
		return false
	}
	now, err := v.reload()
	return err == nil && githubKeysOf(now).key.Empty()
}

// wantedReads is what a token is to be good for: the repositories of one owner, who has one
// installation.
func wantedReads(cache *repo.Cache, repos []task.Repo) (ghapp.Want, bool) {
	w := ghapp.Want{IfGranted: reads()}
	for _, r := range repos {
		owner, name, ok := cache.OnGitHub(r)
		if !ok || w.Owner != "" && !strings.EqualFold(w.Owner, owner) {
			continue
		}
		w.Owner = owner
		w.Repos = append(w.Repos, name)
	}
	return w, len(w.Repos) > 0
}

// maxRevokes bounds the tokens that are revoked at the same time.
const maxRevokes = 4

// revokeGitHub ends the tokens that GitHub has made for a run; see
// steps.Steps.RevokeGitHub.
func (v *services) revokeGitHub(ctx context.Context, run task.ID) {
	values, err := v.secrets.All(ctx, run)
	if err != nil {
		return
	}
	k := unsealGitHubKeys(values)
	slots := make(chan struct{}, maxRevokes)
	var all sync.WaitGroup
	for name, token := range values {
		if !strings.HasPrefix(name, secretMinted) {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			k.revoke(ctx, v.config.Machine, token)
		})
	}
	all.Wait()
}

// host is that of the GitHub, as gh names it.
func (k githubKeys) host() string {
	if u, err := url.Parse(k.url); err == nil && u.Host != "" {
		return strings.ToLower(u.Host)
	}
	return "github.com"
}
