package setup

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/setup/dotenv"
)

// LocalMCP is where sandboxes find the MCP server of the machine that they run on.
const LocalMCP = "http://host.docker.internal:8787/mcp"

// CloudMCP reports whether an address is that of a production MCP server. It does not
// know a development machine, so a .env that names one is mended.
func CloudMCP(address string) bool {
	return slices.Contains([]string{
		"https://mcp.hanzo.ai/mcp", "https://mcp.us.hanzo.ai/mcp", "https://mcp.eu.hanzo.ai/mcp", "https://mcp.hanzo.ai/sse",
	}, strings.TrimSuffix(strings.TrimSpace(address), "/"))
}

// The variables that background agents need.
const (
	keyOIDC     = "OIDC_RSA_PRIVATE_KEY"
	keyJWT      = "SANDBOX_JWT_PRIVATE_KEY"
	keyDebug    = "DEBUG"
	keyProvider = "SANDBOX_PROVIDER"
	keyMCP      = "SANDBOX_MCP_URL"
)

// Env is the step that writes what is missing into a .env file: the value of
// .env.example, else one that is made for this machine. A value that is there stays,
// unless it is the address of a production MCP server; an empty one counts as missing,
// as everywhere in insightscli.
type Env struct {
	Path    string
	Example string // .env.example; it need not be there
	// Given reports whether the environment has a variable, so that the file need not.
	Given    func(name string) bool
	Provider string // of the sandboxes, where .env.example names none
	Today    time.Time
}

// Name implements [Step].
func (Env) Name() string { return "env" }

// value is one variable to be written.
type value struct {
	key, text string
	make      bool // a private key is to be made for it
	mend      bool // it is there, and does not know this machine
}

// Check implements [Step].
func (s Env) Check(context.Context) (Finding, error) {
	f, err := dotenv.Read(s.Path)
	if err != nil {
		return Finding{}, err
	}
	todo, err := s.missing(f)
	switch {
	case err != nil:
		return Finding{}, err
	case len(todo) == 0 && openToOthers(s.Path) && dotenv.MayEdit(s.Path) == nil:
		return Finding{State: Missing, Text: s.Path + " can be read by others"}, nil
	case len(todo) == 0:
		return Finding{State: Ready, Text: s.Path}, nil
	}
	if err := dotenv.MayEdit(s.Path); err != nil {
		return Finding{}, err
	}
	text := s.Path + " is to be made with " + keysOf(todo)
	if _, err := os.Stat(s.Path); err == nil {
		text = lacks(s.Path, todo)
	}
	if err := s.write(f, todo); err != nil {
		return Finding{}, err
	}
	return Finding{State: Missing, Text: text, Diff: f.Diff(s.Path, nil)}, nil
}

// lacks says what is wrong with a file that is there.
func lacks(path string, todo []value) string {
	var absent []value
	mended := ""
	for _, v := range todo {
		if v.mend {
			mended = path + " has the address of the cloud in " + v.key
		} else {
			absent = append(absent, v)
		}
	}
	if len(absent) == 0 {
		return mended
	}
	if mended != "" {
		mended = "; " + mended
	}
	return path + " lacks " + keysOf(absent) + mended
}

// openToOthers reports whether somebody else may read the file, secrets and all.
func openToOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// Apply implements [Step].
func (s Env) Apply(ctx context.Context) (string, error) {
	var todo []value
	_, err := dotenv.Edit(ctx, s.Path, func(f *dotenv.File) (err error) {
		// Another process may have been here since Check.
		if todo, err = s.missing(f); err != nil {
			return err
		}
		if err := makeKeys(todo); err != nil {
			return err
		}
		return s.write(f, todo)
	})
	if len(todo) == 0 {
		return s.Path + " has all that it needs, and is its owner's alone", err // an edit sees to that
	}
	return "wrote " + keysOf(todo) + " to " + s.Path, err
}

// missing returns what the file lacks, in the order in which it is written.
func (s Env) missing(f *dotenv.File) ([]value, error) {
	example, err := dotenv.Read(s.Example)
	if err != nil {
		return nil, err
	}
	var todo []value
	for _, v := range []value{
		{key: keyOIDC, make: true},
		{key: keyJWT, make: true},
		{key: keyDebug, text: "1"},
		{key: keyProvider, text: s.Provider},
		{key: keyMCP, text: LocalMCP},
	} {
		got, _ := f.Get(v.key)
		v.mend = v.key == keyMCP && CloudMCP(got)
		if got != "" && !v.mend || got == "" && s.Given(v.key) {
			continue
		}
		if text, _ := example.Get(v.key); text != "" && !CloudMCP(text) {
			v.text, v.make = text, false
		}
		todo = append(todo, v)
	}
	return todo, nil
}

// makeKeys makes the private keys that neither file has.
func makeKeys(todo []value) error {
	for i, v := range todo {
		if !v.make {
			continue
		}
		text, err := newKey()
		if err != nil {
			return fmt.Errorf("make %s: %w", v.key, err)
		}
		todo[i].text = text
	}
	return nil
}

// write sets the values; new ones go into one block.
func (s Env) write(f *dotenv.File, todo []value) error {
	f.Heading("added by insightscli setup-background-agents on " + s.Today.Format(time.DateOnly))
	for _, v := range todo {
		text := v.text
		if v.make && text == "" {
			text = "a private key, made for this machine"
		}
		if err := f.Set(v.key, text); err != nil {
			return err
		}
		f.Heading("")
	}
	return nil
}

func keysOf(values []value) string {
	var keys []string
	for _, v := range values {
		keys = append(keys, v.key)
	}
	return strings.Join(keys, ", ")
}

// keyBits is the size of the keys that are made.
const keyBits = 2048

func newKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return "", err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return strings.TrimSuffix(string(pem.EncodeToMemory(block)), "\n"), nil
}
