package runner

import (
	"context"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/runner/steps"
)

const (
	// DefaultRefresh is when the credential of a sandbox is first renewed.
	DefaultRefresh = 20 * time.Minute
	// refreshAfter is the part of a token's life after which it is renewed.
	refreshAfter = 0.8
	// leastRefresh is the least time between two tokens.
	leastRefresh = 500 * time.Millisecond
	// retryRefresh is the wait after GitHub could not be asked, at the most.
	retryRefresh = time.Minute
	// relinkWait is the wait before a sandbox whose link was lost is given it again.
	relinkWait = time.Second
	// lookAgain is the wait after there was none to be had: somebody may install the App.
	lookAgain = 5 * time.Minute
	// revokeBound bounds the end of all of them.
	revokeBound = 5 * time.Second
)

// reading keeps the credential with which programs of a sandbox read the run's
// repositories. What goes wrong with it is told, and ends nothing; nor does anything wait
// for it but who asks for it in the sandbox.
type reading struct {
	x      *execution
	linked chan struct{} // closed when there is a sandbox to give it to
	link   sync.Once     // for linked
	keeps  bool          // somebody makes them

	renewed int
	had     bool   // the sandbox has one
	said    string // the last complaint
}

func newReading(x *execution) *reading { return &reading{x: x, linked: make(chan struct{})} }

// keep mints one token after the other for as long as the run works, and returns what
// ends that.
func (r *reading) keep(ctx context.Context) (stop func()) {
	if r.x.s().GitHubToken == nil || len(r.x.spec.Repos) == 0 {
		return func() {}
	}
	r.keeps = true
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			again, ok := r.renew(ctx)
			if !ok {
				return
			}
			if !pauseFor(ctx, again) {
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// pauseFor waits, and reports false if ctx ended before.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// connected is called with every link to the sandbox, before there is an agent on the
// first. What asks for a credential waits from then on.
func (r *reading) connected(ctx context.Context, c *agent.Client) {
	r.link.Do(func() {
		if r.keeps {
			_ = c.GitHub(ctx, wire.GitHub{Pending: true}) // it would be told by the next call, too
		}
		close(r.linked)
	})
}

// renew gives the sandbox a new token, or takes the old one away where there is none any
// more. It returns when to do so again; ok is false where there is nothing to renew.
func (r *reading) renew(ctx context.Context) (again time.Duration, ok bool) {
	token, managed, err := r.x.s().GitHubToken(ctx, r.x.spec)
	if ctx.Err() != nil {
		return 0, false
	}
	if err != nil {
		r.complain(err)
		switch errs.KindOf(err) {
		case errs.Auth, errs.NotFound, errs.Config, errs.Conflict: // it was taken back
			token, managed = steps.GitHubToken{Host: token.Host}, true
		default:
			return retryRefresh, true // the old one is good to its end
		}
	}
	select {
	case <-r.linked:
	case <-ctx.Done():
		return 0, false
	}
	for r.give(ctx, token, managed) != nil { // the link is lost, and may come back
		if !pauseFor(ctx, relinkWait) {
			return 0, false
		}
	}
	if token.Value.Empty() {
		return lookAgain, managed
	}
	return r.pause(time.Until(token.Expires)), true
}

// give hands a token to the sandbox, after the masks know it.
func (r *reading) give(ctx context.Context, token steps.GitHubToken, managed bool) error {
	x := r.x
	c, err := x.runner.Client(x.spec.Run)
	if err != nil {
		return err
	}
	if !managed {
		return c.GitHub(ctx, wire.GitHub{None: true})
	}
	values, err := x.runner.c.Secrets.All(context.WithoutCancel(ctx), x.spec.Run)
	if err != nil {
		return err
	}
	x.story.setMask(newMasker(values))
	if err := c.GitHub(ctx, wire.GitHub{Token: token.Value.Reveal(), Host: token.Host}); err != nil {
		return err
	}
	if !token.Value.Empty() {
		r.had, r.said = true, ""
		return nil
	}
	if r.had {
		x.story.notice("warn", "gh in the sandbox has been logged out")
	}
	r.had = false
	return nil
}

// pause is how long a token with so much life left is used.
func (r *reading) pause(left time.Duration) time.Duration {
	pause := time.Duration(refreshAfter * float64(left))
	if r.renewed == 0 {
		first := r.x.s().FirstRefresh
		if first <= 0 {
			first = DefaultRefresh
		}
		pause = min(pause, first)
	}
	r.renewed++
	return max(pause, leastRefresh)
}

// complain tells why gh has no credential, once for each reason.
func (r *reading) complain(err error) {
	if text := err.Error(); text != r.said {
		r.said = text
		r.x.story.notice("info", "gh in the sandbox gets no new credential: "+text)
	}
}

// revoke ends every credential of GitHub that was made for the run. It is a courtesy, as
// they end by themselves within the hour: what goes wrong is nobody's trouble.
func (x *execution) revoke(ctx context.Context) {
	if x.s().RevokeGitHub == nil || x.forced() {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeBound)
	defer cancel()
	stop := x.whenForced(cancel)
	defer stop()
	x.s().RevokeGitHub(bounded, x.spec.Run)
}
