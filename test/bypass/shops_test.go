//go:build linux

package bypass

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // npm's name for a package
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// shops are real servers, one of each kind that developers' programs talk to, at the
// addresses of the world: a page, registries of npm and Go, an index of pip, an archive of
// apt, and git over https and SSH.
type shops struct {
	ca    []byte // in PEM
	names *names
	repo  string

	wg   sync.WaitGroup
	stop []io.Closer
}

// hello is what each of them has to give.
const hello = "hello from the world"

func newShops(t *testing.T) *shops {
	t.Helper()
	s := &shops{repo: bareRepo(t)}
	cert := s.certificate(t)
	w := &world{}
	s.names = newNames(w)
	mux := s.handler(t)
	secure := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	plain := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	s.serve(t, 443, func(ln net.Listener) { _ = secure.ServeTLS(ln, "", "") })
	s.serve(t, 80, func(ln net.Listener) { _ = plain.Serve(ln) })
	s.serve(t, 22, s.acceptSSH(t))
	w.listenUDP(t, 53, func(b []byte, reply func([]byte)) { reply(s.names.answer(b)) })
	s.stop = append(s.stop, secure, plain)
	t.Cleanup(func() {
		for _, c := range s.stop {
			_ = c.Close()
		}
		s.wg.Wait()
		w.stop()
	})
	return s
}

func (s *shops) serve(t *testing.T, port int, f func(net.Listener)) {
	t.Helper()
	ln, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	s.stop = append(s.stop, ln)
	s.wg.Go(func() { f(ln) })
}

// certificate makes an authority and, by it, the certificate of every name of the shops.
func (s *shops) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bypass test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "world"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: shopNames(),
	}
	top := must(x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key))
	below := must(x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key))
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: top})
	return tls.Certificate{Certificate: [][]byte{below, top}, PrivateKey: key}
}

func shopNames() []string {
	return []string{"page.example", "registry.example", "index.example", "proxy.example", "deb.example", "git.example"}
}

// handler serves all shops, told apart by their names.
func (s *shops) handler(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	give := func(pattern string, body []byte) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, r.URL.Path, time.Unix(1e9, 0), bytes.NewReader(body))
		})
	}
	mux.HandleFunc("page.example/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body><p id=p>"+hello+"</p></body></html>\n")
	})

	tgz := tarball("package/package.json", `{"name":"hello-bypass","version":"1.0.0"}`, "package/index.js", `module.exports = "`+hello+`"`)
	sum := sha1.Sum(tgz) //nolint:gosec // as above
	give("registry.example/hello-bypass", fmt.Appendf(nil, `{"name":"hello-bypass","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"hello-bypass","version":"1.0.0",`+
		`"dist":{"tarball":"https://registry.example/hello-bypass.tgz","shasum":"%x"}}}}`, sum))
	give("registry.example/hello-bypass.tgz", tgz)

	const wheel = "hello_bypass-1.0-py3-none-any.whl"
	give("index.example/simple/hello-bypass/", []byte(`<!DOCTYPE html><a href="/`+wheel+`">`+wheel+`</a>`))
	give("index.example/"+wheel, zipped(
		"hello_bypass.py", `text = "`+hello+`"`,
		"hello_bypass-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello-bypass\nVersion: 1.0\n",
		"hello_bypass-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"hello_bypass-1.0.dist-info/RECORD", "hello_bypass.py,,\n",
	))

	const module = "proxy.example/mod.example/hello/@v/"
	give(module+"list", []byte("v1.0.0\n"))
	give(module+"v1.0.0.info", []byte(`{"Version":"v1.0.0"}`))
	give(module+"v1.0.0.mod", []byte("module mod.example/hello\n"))
	give(module+"v1.0.0.zip", zipped("mod.example/hello@v1.0.0/go.mod", "module mod.example/hello\n", "mod.example/hello@v1.0.0/hello.go", "package hello\n\n// Text is it.\nconst Text = \""+hello+"\"\n"))

	deb := []byte("not a package, but apt does not look into it: " + hello + "\n")
	debSum := sha256.Sum256(deb)
	packages := fmt.Appendf(nil, "Package: hello-bypass\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: x\nFilename: ./hello.deb\nSize: %d\nSHA256: %x\n\n", len(deb), debSum)
	give("deb.example/Packages", packages)
	give("deb.example/hello.deb", deb)
	give("deb.example/Release", fmt.Appendf(nil, "Date: Sat, 01 Jan 2022 00:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256(packages), len(packages)))

	backend := strings.TrimSpace(string(must(exec.Command("git", "--exec-path").Output()))) + "/git-http-backend"
	mux.Handle("git.example/", &cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(s.repo), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}})
	return mux
}

// acceptSSH serves git to everybody.
func (s *shops) acceptSSH(t *testing.T) func(net.Listener) {
	t.Helper()
	signer := must(ssh.NewSignerFromKey(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))))
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	return func(ln net.Listener) {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(hang))
				s.serveSSH(c, config)
			})
		}
	}
}

func (s *shops) serveSSH(c net.Conn, config *ssh.ServerConfig) {
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	defer conn.Close()
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	for nc := range channels {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		for r := range reqs {
			ok := r.Type == "exec" && strings.Contains(string(r.Payload), "git-upload-pack")
			if r.WantReply {
				_ = r.Reply(ok || r.Type == "env", nil)
			}
			if !ok {
				continue
			}
			cmd := exec.Command("git", "-c", "safe.directory=*", "upload-pack", s.repo)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
			code := byte(0)
			if cmd.Run() != nil {
				code = 1
			}
			_, _ = ch.SendRequest("exit-status", false, []byte{0, 0, 0, code})
			_ = ch.Close()
			break
		}
	}
}

// bareRepo makes the repository that is cloned.
func bareRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := `set -e; cd "$1"; git init -q -b main w; cd w; echo "` + hello + `" > hello; git add .
git -c user.name=x -c user.email=x@example.com commit -qm x; git clone -q --bare . ../hello.git`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the repository: %v\n%s", err, out)
	}
	return filepath.Join(dir, "hello.git")
}

func tarball(files ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	var err error
	for i := 0; i < len(files); i += 2 {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}))
		_, werr := io.WriteString(w, files[i+1])
		err = errors.Join(err, werr)
	}
	must(b, errors.Join(err, w.Close(), z.Close()))
	return b.Bytes()
}

func zipped(files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f := must(z.Create(files[i]))
		must(io.WriteString(f, files[i+1]))
	}
	must(b, z.Close())
	return b.Bytes()
}

// save puts the authority where sandboxes see it.
func (s *shops) save(dir string) error {
	return os.WriteFile(filepath.Join(dir, "ca.pem"), s.ca, 0o644)
}
