package runner

import (
	"context"
	"sync"
	"time"

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
	// lookAgain is the wait after there was none to be had: somebody may install the App.
	lookAgain = 5 * time.Minute
	// firstGitHub bounds the agent's wait for the first one.
	firstGitHub = 10 * time.Second
	// revokeBound bounds the end of all of them.
	revokeBound = 5 * time.Second
)

// reading keeps the credential with which programs of a sandbox read the run's
// repositories. What goes wrong with it is told, and ends nothing.
type reading struct {
	x       *execution
	linked  chan struct{} // closed when there is a sandbox to give it to
	settled chan struct{} // closed when the first was given, or there is none
	once    sync.Once     // for settled
	link    sync.Once     // for linked

	renewed int
	had     bool   // the sandbox has one
	said    string // the last complaint
}

func newReading(x *execution) *reading {
	return &reading{x: x, linked: make(chan struct{}), settled: make(chan struct{})}
}

// keep mints one token after the other for as long as the run works, and returns what
// ends that.
func (r *reading) keep(ctx context.Context) (stop func()) {
	if r.x.s().GitHubToken == nil || len(r.x.spec.Repos) == 0 {
		r.settle()
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer r.settle()
		for {
			again, ok := r.renew(ctx)
			if !ok {
				return
			}
			t := time.NewTimer(again)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (r *reading) settle()    { r.once.Do(func() { close(r.settled) }) }
func (r *reading) connected() { r.link.Do(func() { close(r.linked) }) }

// await waits until the sandbox has its first token, for a while.
func (r *reading) await(ctx context.Context) {
	t := time.NewTimer(firstGitHub)
	defer t.Stop()
	select {
	case <-r.settled:
	case <-t.C:
	case <-ctx.Done():
	}
}

// renew gives the sandbox a new token, or takes the old one away where there is none any
// more. It returns when to do so again; ok is false where there is nothing to renew.
func (r *reading) renew(ctx context.Context) (again time.Duration, ok bool) {
	token, managed, err := r.x.s().GitHubToken(ctx, r.x.spec)
	if ctx.Err() != nil || err == nil && !managed {
		return 0, false
	}
	if err != nil {
		r.complain(err)
		switch errs.KindOf(err) {
		case errs.Auth, errs.NotFound, errs.Config, errs.Conflict: // it was taken back
			token = steps.GitHubToken{Host: token.Host}
		default:
			return retryRefresh, true // the old one is good to its end
		}
	}
	select {
	case <-r.linked:
	case <-ctx.Done():
		return 0, false
	}
	if err := r.give(ctx, token); err != nil {
		if ctx.Err() == nil {
			r.complain(err)
		}
		return leastRefresh, ctx.Err() == nil
	}
	r.settle()
	if token.Value.Empty() {
		return lookAgain, true
	}
	return r.pause(time.Until(token.Expires)), true
}

// give hands a token to the sandbox, after the masks know it.
func (r *reading) give(ctx context.Context, token steps.GitHubToken) error {
	x := r.x
	values, err := x.runner.c.Secrets.All(context.WithoutCancel(ctx), x.spec.Run)
	if err != nil {
		return err
	}
	x.story.setMask(newMasker(values))
	c, err := x.runner.Client(x.spec.Run)
	if err != nil {
		return err
	}
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
