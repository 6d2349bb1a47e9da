package ghapp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestWhatAnEnvMakesOfAKey(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for name, plain := range map[string]string{
		"PKCS#1": encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"PKCS#8": pkcs8(t, key),
	} {
		for form, text := range map[string]string{
			"as it is":     plain,
			"CRLF":         strings.ReplaceAll(plain, "\n", "\r\n"),
			"CR":           strings.ReplaceAll(plain, "\n", "\r"),
			"trimmed":      strings.TrimSpace(plain),
			"blanks":       "\n  " + plain + " \n\n",
			"BOM":          "\ufeff" + plain,
			"literal \\n":  strings.ReplaceAll(plain, "\n", `\n`),
			"literal CRLF": strings.ReplaceAll(plain, "\n", `\r\n`),
			"quotes":       `"` + strings.ReplaceAll(plain, "\n", `\n`) + `"`,
			"apostrophes":  "'" + plain + "'",
		} {
			got, err := NormalKey(secret.New(text))
			if err != nil || got.Reveal() != strings.TrimSpace(plain) {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
}

func TestWhatIsNoKey(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	plain := encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	locked := pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: []byte("x"),
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"},
	}
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":             {"", "is not PEM"},
		"a client secret":     {"0123456789abcdef0123456789abcdef01234567", "is not PEM"},
		"base64 of PEM":       {base64.StdEncoding.EncodeToString([]byte(plain)), "is not PEM"},
		"cut":                 {plain[:len(plain)/2], "is not PEM"},
		"without newlines":    {strings.ReplaceAll(plain, "\n", ""), "is not PEM"},
		"damaged":             {encode("RSA PRIVATE KEY", []byte("damaged")), "is damaged"},
		"encrypted":           {string(pem.EncodeToMemory(&locked)), "is encrypted"},
		"encrypted PKCS#8":    {encode("ENCRYPTED PRIVATE KEY", []byte("x")), "is encrypted"},
		"elliptic":            {pkcs8(t, other), "is not an RSA key"},
		"a public key":        {encode("PUBLIC KEY", []byte("x")), `is a PEM block of type "PUBLIC KEY"`},
		"a certificate":       {encode("CERTIFICATE", []byte("x")), `is a PEM block of type "CERTIFICATE"`},
		"a hundred megabytes": {strings.Repeat("x", 100<<20), "longer"},
		"binary":              {"\x00\xff\x1b[31m", "is not PEM"},
	} {
		_, err := NormalKey(secret.New(tt.text))
		if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), tt.says) || errs.HintOf(err) == "" {
			t.Errorf("%s: %v (hint %q)", name, err, errs.HintOf(err))
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 200) {
			t.Errorf("%s: %q", name, err)
		}
	}
}

func FuzzNormalKey(f *testing.F) {
	f.Add(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(f))))
	f.Add(`"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----"`)
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA==\n-----END RSA PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := NormalKey(secret.New(text))
		if err != nil {
			return
		}
		if again, err := NormalKey(once); err != nil || again != once {
			t.Errorf("not stable: %v", err)
		}
	})
}
