package cli

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/Insights/insightscli/internal/agentserver/embedded"
	"github.com/Insights/insightscli/internal/errs"
)

// agentServer returns the agent server for sandboxes of this machine: the embedded
// one, unpacked once, or this program itself where it is static.
func (s *state) agentServer(context.Context) (string, error) {
	path, err := embedded.Unpack(filepath.Join(s.dir, "cache", "bin"), runtime.GOARCH)
	if !errors.Is(err, embedded.ErrNone) {
		return path, err
	}
	self, selfErr := embedded.Self(runtime.GOARCH)
	if selfErr != nil {
		return "", errs.New("cli.agentServer", errs.Config, "make build", "%w", selfErr)
	}
	return self, nil
}

// jwtFile is the key of published agent servers, where the settings name none.
const jwtFile = "jwt.pem"

// jwtKey returns the public half of the key that signs the tokens of outside
// clients of an agent server, and its id.
func (s *state) jwtKey(context.Context) (public []byte, kid string, err error) {
	key, err := s.jwtPrivateKey()
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(der)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), hex.EncodeToString(sum[:8]), nil
}

// jwtPrivateKey is SANDBOX_JWT_PRIVATE_KEY, or one that is made for this state
// directory when it is first needed.
func (s *state) jwtPrivateKey() (*rsa.PrivateKey, error) {
	if v := s.config.Account.JWTPrivateKey; !v.Empty() {
		key, err := parseRSA([]byte(strings.ReplaceAll(v.Reveal(), `\n`, "\n")))
		if err != nil {
			return nil, errs.New("cli.jwtKey", errs.Config, "insightscli config", "SANDBOX_JWT_PRIVATE_KEY: %w", err)
		}
		return key, nil
	}
	path := filepath.Join(s.dir, jwtFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeRSA(path); err != nil {
			return nil, fmt.Errorf("make a key for published agent servers: %w", err)
		}
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	return parseRSA(b)
}

// parseRSA reads a private key in PKCS#1 or PKCS#8 form.
func parseRSA(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not a PEM key")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an RSA key")
	}
	return key, nil
}

// makeRSA writes a fresh key to path, whole or not at all. When two processes make
// one at the same time the first stands.
func makeRSA(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".jwt-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := errors.Join(pem.Encode(f, block), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
