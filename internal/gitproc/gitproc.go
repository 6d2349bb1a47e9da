// Package gitproc has what every git that runs on the host for a run has in common: it
// never prompts, and whatever a repository's configuration could have it run or write on
// its own is turned off. Who runs one adds what it needs beyond that, and points it at a
// repository of ours or with a configuration that it trusts.
package gitproc

import (
	"os"
	"path/filepath"
	"strings"
)

// inherited names the variables of the caller's environment that git may see: where it
// finds its programs, and the way out of the network.
const inherited = " PATH TMPDIR HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy" +
	" SSL_CERT_FILE SSL_CERT_DIR GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_PROXY_SSL_CAINFO CURL_CA_BUNDLE SYSTEMROOT SystemRoot TEMP TMP PATHEXT ComSpec "

// Environ is git's environment: what it may see of the caller's, with more names if
// there are any, and what keeps it quiet.
func Environ(environ []string, more ...string) []string {
	names := inherited
	for _, name := range more {
		names += name + " "
	}
	var env []string
	has := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if strings.Contains(names, " "+name+" ") {
			env = append(env, kv)
			has[name] = value
		}
	}
	if _, path := has["PATH"]; !path {
		env = append(env, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	return append(append(env, authorities(has)...),
		"LC_ALL=C", "LANG=C",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never",
		"GCM_INTERACTIVE=never",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat",
	)
}

// authorities tells git which authorities this program itself believes: git does not read
// SSL_CERT_FILE and SSL_CERT_DIR, of which the latter may be a list. What is said to git
// alone counts more.
func authorities(has map[string]string) []string {
	var env []string
	for _, name := range []string{"GIT_SSL_CAINFO", "GIT_PROXY_SSL_CAINFO"} {
		if file := has["SSL_CERT_FILE"]; file != "" && has[name] == "" {
			env = append(env, name+"="+file)
		}
	}
	if dirs := filepath.SplitList(has["SSL_CERT_DIR"]); len(dirs) > 0 && has["GIT_SSL_CAPATH"] == "" {
		env = append(env, "GIT_SSL_CAPATH="+dirs[0])
	}
	return env
}

// Settings are arguments that stand before every command and win over a repository's own
// configuration, with more of them if there are any, as key=value.
func Settings(more ...string) []string {
	set := []string{
		"core.fsmonitor=false", "core.hooksPath=" + os.DevNull, "core.pager=cat",
		"core.attributesFile=" + os.DevNull, "core.alternateRefsCommand=", "core.gitProxy=",
		"core.askPass=false", "credential.helper=",
		"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
		"protocol.ext.allow=never", "color.ui=false",
		"commit.gpgSign=false", "tag.gpgSign=false", "log.showSignature=false",
		"http.lowSpeedLimit=1000", "http.lowSpeedTime=30",
	}
	var args []string
	for _, kv := range append(set, more...) {
		args = append(args, "-c", kv)
	}
	return args
}

// Tail keeps the last bytes that were written to it.
type Tail struct {
	Limit int
	Touch func() // told of every write; nil is nobody
	text  []byte
}

// Write implements io.Writer and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	if t.Touch != nil {
		t.Touch()
	}
	t.text = append(t.text, p...)
	if over := len(t.text) - t.Limit; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *Tail) String() string { return string(t.text) }
