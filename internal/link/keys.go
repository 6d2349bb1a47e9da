package link

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/Insights/insightscli/internal/secret"
)

// HostKey is what the host of one run proves itself with, and checks PID 1 by. It
// is secret; its JSON form is for sealed storage only.
type HostKey struct {
	Private ed25519.PrivateKey // its public half is wire.Boot.HostKey
	Secret  []byte             // wire.Boot.Secret
	Run     string
}

// NewKeys makes the keys of a run.
func NewKeys(run string) (HostKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return HostKey{}, fmt.Errorf("make the key of run %s: %w", run, err)
	}
	k := HostKey{Private: private, Secret: make([]byte, secretSize), Run: run}
	_, _ = rand.Read(k.Secret) // never fails: crypto/rand aborts the program instead
	return k, nil
}

// Public returns the half that PID 1 is given.
func (k HostKey) Public() []byte {
	return append([]byte(nil), k.Private[ed25519.PrivateKeySize-ed25519.PublicKeySize:]...)
}

// valid reports whether the key can be used, so that a damaged one is an error and
// not a panic.
func (k HostKey) valid() bool {
	return len(k.Private) == ed25519.PrivateKeySize && len(k.Secret) == secretSize && k.Run != ""
}

// String implements fmt.Stringer: a key never prints.
func (HostKey) String() string { return secret.Hidden }

// GoString implements fmt.GoStringer, for %#v.
func (HostKey) GoString() string { return secret.Hidden }
