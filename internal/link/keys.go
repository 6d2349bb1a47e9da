package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Insights/insightscli/internal/secret"
)

// publicSize is the length of wire.Boot.HostKey: an uncompressed point.
const publicSize = 65

// HostKey is what the host of one run proves itself with, and checks PID 1 by. It
// is secret.
//
// Decision, 2026-11: ECDSA with P-256 rather than Ed25519. Both are safe; the first
// Ed25519 key of a process costs a millisecond, and its first check a third of one, for
// tables that Go has ready-made for P-256, and both are on the way to the agent's first
// output.
type HostKey struct {
	Private *ecdsa.PrivateKey // its public half is wire.Boot.HostKey
	Secret  []byte            // wire.Boot.Secret
	Run     string
}

// NewKeys makes the keys of a run.
func NewKeys(run string) (HostKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return HostKey{}, fmt.Errorf("make the key of run %s: %w", run, err)
	}
	k := HostKey{Private: private, Secret: make([]byte, secretSize), Run: run}
	_, _ = rand.Read(k.Secret) // never fails: crypto/rand aborts the program instead
	return k, nil
}

// ParseKeys makes the keys of a run of what [HostKey.Bytes] gave, and its secret.
func ParseKeys(run string, private, secret []byte) (HostKey, error) {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), private)
	if err != nil || len(secret) != secretSize || run == "" {
		return HostKey{}, errors.New("the keys are damaged")
	}
	return HostKey{Private: key, Secret: secret, Run: run}, nil
}

// Bytes returns the private half, for sealed storage.
func (k HostKey) Bytes() ([]byte, error) { return k.Private.Bytes() }

// Public returns the half that PID 1 is given; nil of a damaged key.
func (k HostKey) Public() []byte {
	b, err := k.Private.PublicKey.Bytes()
	if err != nil {
		return nil
	}
	return b
}

// valid reports whether the key can be used, so that a damaged one is an error and
// not a panic.
func (k HostKey) valid() bool {
	return k.Private != nil && len(k.Secret) == secretSize && k.Run != ""
}

// sign proves what was said.
func (k HostKey) sign(said []byte) ([]byte, error) {
	return ecdsa.SignASN1(rand.Reader, k.Private, digest(said))
}

// signed reports whether the host whose public half is key has signed what was said.
func signed(key, said, sig []byte) bool {
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
	return err == nil && ecdsa.VerifyASN1(public, digest(said), sig)
}

func digest(said []byte) []byte {
	sum := sha256.Sum256(append([]byte(hostLabel), said...))
	return sum[:]
}

// String implements fmt.Stringer: a key never prints.
func (HostKey) String() string { return secret.Hidden }

// GoString implements fmt.GoStringer, for %#v.
func (HostKey) GoString() string { return secret.Hidden }

// MarshalJSON implements json.Marshaler: a key is stored by [HostKey.Bytes] only.
func (HostKey) MarshalJSON() ([]byte, error) { return json.Marshal(secret.Hidden) }
