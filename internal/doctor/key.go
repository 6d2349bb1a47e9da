package doctor

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/Insights/insightscli/internal/secret"
)

// CheckKey reports why a value is not a private RSA key that signs tokens. Literal \n
// and CRLF are fine.
func CheckKey(v secret.String) error {
	block, _ := pem.Decode([]byte(strings.ReplaceAll(v.Reveal(), `\n`, "\n")))
	switch {
	case block == nil:
		return errors.New("it is not a PEM key")
	case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return errors.New("the key is encrypted; a key without a passphrase is needed")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		any, other := x509.ParsePKCS8PrivateKey(block.Bytes)
		rsaKey, isRSA := any.(*rsa.PrivateKey)
		if other != nil || !isRSA {
			return errors.New("it is not a private RSA key")
		}
		key = rsaKey
	}
	if key.N.BitLen() < 2048 {
		return errors.New("the key has less than 2048 bits")
	}
	return nil
}
