package ghapp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// stateLife is how long a state is good: GitHub gives an hour from the moment the
// manifest is posted, which is later than the page that carries the state.
const stateLife = codeLife + 15*time.Minute

// What is wrong with a state. The two are told apart because only one of them is the
// user's to mend.
var (
	errForged  = errors.New("the answer does not belong to this session")
	errExpired = errors.New("the page was opened too long ago")
)

// stateKey makes the states of one session: a time, 256 random bits, and a MAC over
// both. A state of another session is as wrong as one that was made up.
type stateKey [32]byte

const (
	stateTime  = 8
	stateNonce = 32
)

func newStateKey() stateKey {
	var k stateKey
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// issue makes a state.
func (k stateKey) issue(now time.Time) string {
	b := make([]byte, stateTime+stateNonce)
	binary.BigEndian.PutUint64(b, uint64(now.Unix()))
	_, _ = rand.Read(b[stateTime:]) // never fails
	return base64.RawURLEncoding.EncodeToString(append(b, k.mac(b)...))
}

// check returns nil, errForged or errExpired.
func (k stateKey) check(state string, now time.Time) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(b) != stateTime+stateNonce+sha256.Size {
		return errForged
	}
	said, mac := b[:stateTime+stateNonce], b[stateTime+stateNonce:]
	if !hmac.Equal(mac, k.mac(said)) {
		return errForged
	}
	if issued := time.Unix(int64(binary.BigEndian.Uint64(said)), 0); now.Sub(issued) > stateLife {
		return errExpired
	}
	return nil
}

func (k stateKey) mac(said []byte) []byte {
	m := hmac.New(sha256.New, k[:])
	m.Write(said)
	return m.Sum(nil)
}
