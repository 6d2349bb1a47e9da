package ghapp

import (
	"context"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// Source hands out tokens that are good for one purpose, and mints a new one before
// the old one ends. It may be used by several goroutines.
type Source struct {
	in   *Installations
	want Want

	mu      sync.Mutex // held while one is minted: the others want that one too
	now     Token
	renewal time.Time
}

// Source returns a source of tokens for w. It mints none yet.
func (in *Installations) Source(w Want) *Source { return &Source{in: in, want: w} }

// renewAfter is the part of a token's life that it is used for, so that whoever gets
// it has the rest.
const renewAfter = 0.8

// Token returns a token with a fifth of its life before it at least. Where a new one
// cannot be had, the old one is used to its end.
func (s *Source) Token(ctx context.Context) (secret.String, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.renewal) {
		return s.now.Value, nil
	}
	t, err := s.in.Mint(ctx, s.want)
	if err != nil {
		if ctx.Err() == nil && now.Before(s.now.Expires) {
			return s.now.Value, nil
		}
		return secret.String{}, err
	}
	s.now, s.renewal = t, now.Add(time.Duration(renewAfter*float64(t.Expires.Sub(now))))
	return t.Value, nil
}

// Forget makes the next Token a new one: GitHub refused the one that was handed out.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.renewal = Token{}, time.Time{}
}
