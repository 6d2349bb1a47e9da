package runner

import (
	"context"
	"strings"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/task"
)

// Secrets are the sealed values of runs: the key is outside state.db, the sealed
// values are in it and are erased with the transaction that ends their run.
type Secrets struct {
	Key   *seal.Key
	Store *journal.Store
}

// Get returns one value.
func (s *Secrets) Get(ctx context.Context, run task.ID, name string) (secret.String, error) {
	sealed, err := s.Store.Secrets(ctx, run)
	if err != nil {
		return secret.String{}, err
	}
	b, err := s.Key.Open(string(run), name, sealed[name])
	return secret.New(string(b)), err
}

// All returns every value of the run, by name.
func (s *Secrets) All(ctx context.Context, run task.ID) (map[string]secret.String, error) {
	sealed, err := s.Store.Secrets(ctx, run)
	if err != nil {
		return nil, err
	}
	all := make(map[string]secret.String, len(sealed))
	for name, box := range sealed {
		b, err := s.Key.Open(string(run), name, box)
		if err != nil {
			return nil, err
		}
		all[name] = secret.New(string(b))
	}
	return all, nil
}

// Put seals and stores one value.
func (s *Secrets) Put(ctx context.Context, run task.ID, name string, value secret.String) error {
	box, err := s.Key.Seal(string(run), name, []byte(value.Reveal()))
	if err != nil {
		return err
	}
	return s.Store.PutSecret(ctx, run, name, box)
}

func (s *Secrets) seal(run task.ID, values map[string]secret.String) (map[string][]byte, error) {
	sealed := make(map[string][]byte, len(values))
	for name, v := range values {
		box, err := s.Key.Seal(string(run), name, []byte(v.Reveal()))
		if err != nil {
			return nil, err
		}
		sealed[name] = box
	}
	return sealed, nil
}

func newMasker(values map[string]secret.String) *secret.Masker {
	all := make([]string, 0, len(values))
	for name, v := range values {
		// The keys of the link are never in a sandbox's sight, and long.
		if name != steps.SecretLinkKey && !strings.HasPrefix(name, steps.SecretPlain) {
			all = append(all, v.Reveal())
		}
	}
	return secret.NewMasker(all...)
}
