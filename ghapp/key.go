package ghapp

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// maxKey bounds the text of a key: one of 16384 bits has 13 KB.
const maxKey = 64 << 10

// NormalKey returns a private key in one form: PEM, as PKCS#1 or PKCS#8 as it was,
// lines that end in LF, no end of line after the last. It takes what a .env or a
// clipboard makes of a key: CRLF, \n in two characters, quotes and blanks around it.
func NormalKey(text secret.String) (secret.String, error) {
	block, _, err := readKey(text)
	if err != nil {
		return secret.String{}, err
	}
	return secret.New(strings.TrimRight(string(pem.EncodeToMemory(block)), "\n")), nil
}

// readKey reads a private key in any of the forms that NormalKey takes.
func readKey(text secret.String) (*pem.Block, *rsa.PrivateKey, error) {
	bad := func(hint, format string, args ...any) (*pem.Block, *rsa.PrivateKey, error) {
		return nil, nil, errs.New("ghapp.NormalKey", errs.Config, hint, "the private key "+format, args...)
	}
	const again = "generate a private key on the app's settings page and use the .pem file as it is"
	if len(text.Reveal()) > maxKey {
		return bad(again, "is longer than any key")
	}
	block, _ := pem.Decode([]byte(unfold(text.Reveal())))
	switch {
	case block == nil:
		return bad(again, "is not PEM: it has no BEGIN and END lines that belong together")
	case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return bad("decrypt it: openssl rsa -in KEY.pem -out PLAIN.pem", "is encrypted")
	case block.Type != "RSA PRIVATE KEY" && block.Type != "PRIVATE KEY":
		return bad(again, "is a PEM block of type %q", block.Type)
	}
	// The first line says which of the two it is, and is not always right.
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return &pem.Block{Type: "RSA PRIVATE KEY", Bytes: block.Bytes}, key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		// The cause could quote the key.
		return bad(again, "is damaged")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return bad(again, "is not an RSA key, and GitHub's are")
	}
	return &pem.Block{Type: "PRIVATE KEY", Bytes: block.Bytes}, key, nil
}

// unfold undoes what a .env does to lines.
func unfold(text string) string {
	text = strings.Trim(strings.TrimPrefix(text, "\ufeff"), " \t\r\n\"'`")
	return strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", "\r\n", "\n", "\r", "\n").Replace(text)
}
