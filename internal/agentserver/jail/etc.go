package jail

import (
	"bytes"
	"fmt"
	"strings"
)

// etcNames lists what of the host's /etc a sandbox sees, by path below /etc.
// Everything else is absent: shadow, ssh and private keys, host keys, service
// configurations with passwords, apt's sources (apt does not work here).
func etcNames() []string {
	return []string{
		"alternatives", "ca-certificates", "ca-certificates.conf",
		"ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem",
		"pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "crypto-policies",
		"localtime", "timezone", "mime.types", "protocols", "services", "gai.conf",
		"profile", "profile.d", "bash.bashrc", "bashrc", "inputrc", "terminfo",
		"perl", "magic", "magic.mime", "debian_version", "login.defs", "shells", "host.conf",
		"networks", "rpc", "fonts", "npmrc", "pip.conf", "maven", "gradle", "gitconfig", "vim",
		"dpkg", "locale.alias", "locale.conf", "chromium.d",
	}
}

// etcPrefixed and etcSuffixed name the families of which every member is shown.
func etcPrefixed() []string { return []string{"ld.so.", "python3", "java"} }

const etcSuffixed = "-release"

// etcGuard returns the check of the files that carry credentials on some machines, by
// the allowed name that brings them in: all files of a directory are checked, and one
// that must not be shown keeps the name out. nil: there is nothing to check.
func etcGuard(name string) func(data []byte) bool {
	switch name {
	case "npmrc", "pip.conf", "gitconfig", "maven", "gradle":
		return carriesCredential
	case "profile", "profile.d", "bash.bashrc", "bashrc":
		return setsCredential
	}
	return nil
}

// setsCredential reports whether a shell's start-up file seems to set a variable to a
// credential. Such a file may well speak of passwords.
func setsCredential(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.ToLower(bytes.TrimSpace(line))
		if bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		if hasUserinfo(line) || setenvCredential(line) {
			return true
		}
		for {
			before, after, found := bytes.Cut(line, []byte("="))
			if !found {
				break
			}
			name := before[bytes.LastIndexAny(before, " \t;")+1:]
			if namesCredential(name) && isLiteral(after) {
				return true
			}
			line = after
		}
	}
	return false
}

// setenvCredential is setsCredential for a line of csh, whose files lie in profile.d too:
// setenv NAME VALUE.
func setenvCredential(line []byte) bool {
	words := bytes.Fields(line)
	for i := range words {
		if string(words[i]) == "setenv" && i+2 < len(words) && namesCredential(words[i+1]) && isLiteral(words[i+2]) {
			return true
		}
	}
	return false
}

// isLiteral reports whether text begins with a value that stands there itself.
func isLiteral(text []byte) bool {
	value := bytes.TrimLeft(text, "\"'")
	return len(value) > 0 && !bytes.ContainsAny(value[:1], "$` \t;)\"'")
}

func namesCredential(name []byte) bool {
	for _, word := range []string{"token", "passw", "secret", "api_key", "apikey", "access_key", "private_key", "credential"} {
		if bytes.Contains(name, []byte(word)) {
			return true
		}
	}
	return false
}

// carriesCredential reports whether the content of a guarded file looks as if it
// must not be shown to an agent. It errs on the side of leaving the file out.
func carriesCredential(data []byte) bool {
	data = bytes.ToLower(withoutComments(data))
	for _, word := range []string{"_auth", "token", "passw", "secret", "extraheader"} {
		if bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return hasUserinfo(data)
}

// withoutComments returns data less what lies in comments of XML: the settings that
// Maven comes with explain passwords there.
func withoutComments(data []byte) []byte {
	var kept []byte
	for {
		before, rest, found := bytes.Cut(data, []byte("<!--"))
		kept = append(kept, before...)
		if !found {
			return kept
		}
		_, data, found = bytes.Cut(rest, []byte("-->"))
		if !found {
			return append(kept, rest...) // no comment after all
		}
	}
}

// hasUserinfo reports whether there is a URL with a user in it.
func hasUserinfo(data []byte) bool {
	for rest := data; ; {
		_, after, found := bytes.Cut(rest, []byte("://"))
		if !found {
			return false
		}
		authority := after[:indexAny(after, "/ \t\r\n\"'")]
		if bytes.Contains(authority, []byte("@")) {
			return true
		}
		rest = after
	}
}

// indexAny is bytes.IndexAny with the length of data for not found.
func indexAny(data []byte, chars string) int {
	if i := bytes.IndexAny(data, chars); i >= 0 {
		return i
	}
	return len(data)
}

// etcSelect returns which of the names found in the host's /etc are shown, and the
// allowed paths that lie deeper.
func etcSelect(found []string) []string {
	allowed := map[string]bool{}
	var selected []string
	for _, name := range etcNames() {
		if strings.Contains(name, "/") {
			selected = append(selected, name)
			continue
		}
		allowed[name] = true
	}
	for _, name := range found {
		if allowed[name] || etcFamily(name) {
			selected = append(selected, name)
		}
	}
	return selected
}

func etcFamily(name string) bool {
	for _, p := range etcPrefixed() {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasSuffix(name, etcSuffixed)
}

// ownFiles are the files of /etc that are ours. Names are asked for at 127.0.0.1, which
// answers at once, or refuses at once where nobody answers for names.
func ownFiles(hostname, home string, uid, gid int) map[string]string {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	fmt.Fprintf(&hosts, "127.0.1.1\t%s\n", hostname)
	return map[string]string{
		"hostname":      hostname + "\n",
		"hosts":         hosts.String(),
		"resolv.conf":   "nameserver 127.0.0.1\noptions timeout:1 attempts:3\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\nrpc: files\n",
		"passwd":        passwd(home, uid, gid),
		"group":         group(gid),
	}
}

func passwd(home string, uid, gid int) string {
	return "root:x:0:0:root:/root:/bin/sh\n" +
		passwdLine(home, uid, gid) +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
}

func passwdLine(home string, uid, gid int) string {
	return fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh\n", uid, gid, home)
}

func group(gid int) string {
	text := "root:x:0:\n"
	if gid != 0 {
		text += groupLine(gid)
	}
	return text + "tty:x:5:\nnogroup:x:65534:\n"
}

func groupLine(gid int) string { return fmt.Sprintf("agent:x:%d:\n", gid) }

// hasID reports whether a passwd or group file has an entry with the numeric id.
func hasID(file []byte, id int) bool {
	want := fmt.Sprint(id)
	for line := range bytes.Lines(file) {
		f := strings.Split(strings.TrimSpace(string(line)), ":")
		if len(f) > 2 && f[2] == want {
			return true
		}
	}
	return false
}
