//go:build linux

package bypass

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/testenv"
)

// program is one that people use, doing what it is used for at a server that is allowed.
type program struct {
	name string
	need string // a program of the machine, where it is not of the image
	sh   string // prints hello
	once bool   // heeds no variable of a proxy, or takes long
}

// python runs a program of Python's.
func python(text string) string { return "/usr/bin/python3 -c '" + text + "'" }

// common are the programs that every sandbox has; each fetches over https too where it can.
func common() []program {
	return []program{
		{name: "curl", sh: `curl -sS http://page.example/ && curl -sS https://page.example/`},
		{name: "git over https", sh: `git clone -q https://git.example/hello.git g && cat g/hello`},
		{name: "git over ssh", once: true, sh: `GIT_SSH_COMMAND="ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR" git clone -q ssh://git@git.example/hello.git g && cat g/hello`},
		{name: "python urllib", sh: python(`import urllib.request as u; print(u.urlopen("http://page.example/").read(), u.urlopen("https://page.example/").read())`)},
		{name: "python http.client", sh: python(`import http.client as h
c = h.HTTPSConnection("page.example"); c.request("GET", "/"); print(c.getresponse().read())`)},
		{name: "static Go", once: true, sh: `attempt tcp page.example:80 "GET / HTTP/1.1\r\nHost: page.example\r\nConnection: close\r\n\r\n"`},
		{name: "static musl", once: true, need: "musl-gcc", sh: `musl page.example`},
		{name: "apt", sh: `mkdir -p s/lists/partial c/archives/partial && : > status && echo "deb [trusted=yes] http://deb.example/ ./" > list && set -- -qq -o Dir::State=$PWD/s -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/c -o Dir::Etc::sourcelist=$PWD/list -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o Acquire::Languages=none && apt-get "$@" update && apt-get "$@" download hello-bypass && cat *.deb`},
	}
}

func ofImage() []program {
	return []program{
		{name: "node fetch", sh: node, once: true},
		{name: "npm", sh: npm},
	}
}

const (
	node = `node -e 'fetch("https://page.example/").then(r => r.text()).then(t => process.stdout.write(t))'`
	npm  = `npm install --no-audit --no-fund --no-update-notifier --registry https://registry.example/ --cafile $TOOLS/ca.pem hello-bypass >/dev/null && node -p 'require("hello-bypass")'`
)

func chromium(flags string) string {
	return `chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir=$PWD/u --ignore-certificate-errors ` +
		flags + ` --dump-dom https://page.example/ 2>err || tail -n 20 err`
}

func ofMachine() []program {
	return []program{
		{name: "pip", need: "/usr/bin/pip3", sh: `/usr/bin/python3 -m pip install -q --disable-pip-version-check --target t --index-url https://index.example/simple/ hello-bypass && PYTHONPATH=t ` + python(`import hello_bypass; print(hello_bypass.text)`)},
		{name: "python requests", need: "/usr/lib/python3/dist-packages/requests", sh: python(`import requests; print(requests.get("https://page.example/").text)`)},
		{name: "go", need: "go", sh: `export GOPROXY=https://proxy.example GOSUMDB=off GOFLAGS=-modcacherw GOPATH=$PWD/p GOCACHE=$PWD/c GOTOOLCHAIN=local && PATH=$PATH:$GOBIN && go mod init -C . x.example 2>/dev/null; go mod download -x mod.example/hello@v1.0.0 2>/dev/null && cat p/pkg/mod/mod.example/hello@v1.0.0/hello.go`},
		{name: "java", need: "javac", once: true, sh: `java -XX:TieredStopAtLevel=1 $TOOLS/Fetch.java $TOOLS/ca.pem http://page.example/ https://page.example/`},
		{name: "chromium", need: "chromium", once: true, sh: chromium(`--no-proxy-server`)},
		{name: "chromium by proxy", need: "chromium", once: true, sh: chromium(`--proxy-server=$https_proxy`)},
	}
}

// TestProgramsWork: what is allowed is reached by the programs that people use, whether they
// heed the variables of a proxy or not, and by no change of theirs.
func TestProgramsWork(t *testing.T) {
	s := needWorld(t)
	if s.User {
		t.Skip("the programs are those of the other user's machine")
	}
	shops := newShops(t)
	if err := errors.Join(shops.save(s.tools()), s.sources(t)); err != nil {
		t.Fatal(err)
	}
	t.Run("sandboxes", func(t *testing.T) {
		t.Run("docker", func(t *testing.T) {
			t.Parallel()
			run(t, s, dockerPlace(t, s, 1000), append(common(), ofImage()...))
		})
		t.Run("local", func(t *testing.T) {
			t.Parallel()
			list := append(common(), ofMachine()...)
			if _, err := exec.LookPath("node"); err == nil {
				list = append(list, ofImage()...)
			}
			run(t, s, localPlace(t, s), list)
		})
	})
}

// sources makes the programs that this machine makes, and puts those beside them that are
// carried out as they are.
func (s stage) sources(t *testing.T) error {
	t.Helper()
	if _, err := exec.LookPath("musl-gcc"); err == nil {
		out, err := exec.CommandContext(t.Context(), "musl-gcc", "-static", "-O1", "-o", filepath.Join(s.tools(), "musl"), "testdata/musl.c").CombinedOutput()
		if err != nil {
			return fmt.Errorf("musl-gcc: %w\n%s", err, out)
		}
	}
	text, err := os.ReadFile("testdata/Fetch.java")
	return errors.Join(err, os.WriteFile(filepath.Join(s.tools(), "Fetch.java"), text, 0o644))
}

func run(t *testing.T, s stage, p place, list []program) {
	ca := toolsDir + "/ca.pem"
	goBin, _ := exec.LookPath("go")
	b := p.open(t, s, map[string]string{
		"CURL_CA_BUNDLE": ca, "GIT_SSL_CAINFO": ca, "SSL_CERT_FILE": ca, "NODE_EXTRA_CA_CERTS": ca, "PIP_CERT": ca,
		"REQUESTS_CA_BUNDLE": ca, "GIT_TERMINAL_PROMPT": "0", "GOBIN": filepath.Dir(goBin), "TOOLS": toolsDir,
	}, shopNames()...)
	var jobs []job
	for _, pr := range list {
		if pr.need != "" {
			_, err := exec.LookPath(pr.need)
			if _, statErr := os.Stat(pr.need); statErr == nil {
				err = nil
			}
			testenv.Need(t, pr.need, err == nil)
		}
		const tools = "PATH=$PATH:$TOOLS; export PATH; "
		jobs = append(jobs, job{Name: pr.name, Script: tools + pr.sh})
		if !pr.once {
			const without = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY; "
			jobs = append(jobs, job{Name: pr.name + " without a proxy", Script: tools + without + pr.sh})
		}
	}
	for name, said := range b.try(jobs) {
		if !strings.Contains(said, hello) || strings.HasSuffix(said, ")") && strings.Contains(said, "exit status") {
			t.Errorf("%s: %s", name, said)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.denied {
		t.Logf("refused meanwhile: %s:%d, %s", d.Host, d.Port, d.Reason)
	}
}
