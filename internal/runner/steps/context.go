package steps

import (
	"context"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// TokenTTL is how long a run's access token lives: six hours, as the specification
// has it.
const TokenTTL = 6 * time.Hour

// RenewEvery is how often the token of a run that is being carried out is renewed: a run
// that nobody carries out any more has a token for six hours at the most.
const RenewEvery = TokenTTL / 6

// ContextIn asks for the context of a run.
type ContextIn struct {
	Spec task.Spec `json:"spec"`
}

// ContextOut is what later steps need beside the Spec.
type ContextOut struct {
	Name string `json:"name"` // of the sandbox, for people
}

// Context checks that the Spec can be carried out by this build, which matters when
// it was frozen by another one, and that its provider is there.
func (s *Steps) Context(ctx context.Context, in ContextIn) (ContextOut, error) {
	if in.Spec.V != task.SpecVersion {
		return ContextOut{}, errs.New("steps.Context", errs.Conflict,
			"use the insightscli that started this run",
			"run %s was made with version %d of the task form, this is version %d", in.Spec.Run.Short(), in.Spec.V, task.SpecVersion)
	}
	if _, err := s.Provider(ctx, in.Spec); err != nil {
		return ContextOut{}, err
	}
	return ContextOut{Name: "insights-" + in.Spec.Run.Short()}, nil
}

// TokenIn asks for the scoped access token of a run.
type TokenIn struct {
	Run    task.ID  `json:"run"`
	Scopes []string `json:"scopes"`
}

// TokenOut tells that there is one. The token itself is sealed beside the run's
// secrets.
type TokenOut struct {
	Expires time.Time `json:"expires"`
}

// Token mints the access token and seals it. Repeated, it replaces the earlier one.
func (s *Steps) Token(ctx context.Context, in TokenIn) (TokenOut, error) {
	tok, err := s.Tokens.Mint(ctx, in.Run, in.Scopes, TokenTTL)
	if err != nil {
		return TokenOut{}, err
	}
	if err := s.Secrets.Put(ctx, in.Run, SecretToken, tok); err != nil {
		return TokenOut{}, err
	}
	return TokenOut{Expires: time.Now().Add(TokenTTL)}, nil
}

// RenewToken keeps the run's access token good for another [TokenTTL].
func (s *Steps) RenewToken(ctx context.Context, run task.ID) error {
	return s.Tokens.Renew(ctx, run, TokenTTL)
}
