package repo

import (
	"net/url"
	"path"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const addressHint = "name a repository as org/repo, as a git URL, or as a path that begins with ./, ../, / or ~"

// maxAddress bounds an address; no file system or server takes a longer one.
const maxAddress = 4096

// localOrg is the organisation of every repository that no server is known for.
const localOrg = "local"

// Parse reads the address of a repository: org/repo (on github.com), any URL that
// git understands (https, http, ssh, git, file, and the user@host:path form), or a
// path, which begins with /, ./, ../ or ~, or is . or .. itself. It is pure: a path
// is returned as it was typed, without Org and Name, and [Cache.Resolve] does the
// rest. The result holds no credential and nothing in it can be taken for an
// option; an address that would need either is refused.
func Parse(address string) (task.Repo, error) {
	if err := checkText(address); err != nil {
		return task.Repo{}, err
	}
	if isPath(address) {
		return task.Repo{Source: task.RepoLocal, Path: address}, nil
	}
	if strings.HasPrefix(address, "-") {
		return task.Repo{}, usage("repository %q looks like an option", address)
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		return parseURL(strings.ToLower(scheme), rest)
	}
	if strings.Contains(address, "::") {
		return task.Repo{}, usage("repository %q names a transport helper, which is not allowed", address)
	}
	if host, rest, ok := strings.Cut(address, ":"); ok && !strings.Contains(host, "/") {
		return parseSCP(host, rest)
	}
	return parseShort(address)
}

// ParseOn is Parse where org/repo is a repository on the GitHub at an address such as
// https://github.example.com; empty is github.com.
func ParseOn(github, address string) (task.Repo, error) {
	base, err := url.Parse(strings.TrimRight(github, "/"))
	if err != nil || base.Host == "" || isGitHub(base.Host) {
		return Parse(address)
	}
	short := strings.TrimPrefix(address, base.Host+"/")
	r, err := Parse(short)
	if err != nil || !isShort(short) {
		return Parse(address)
	}
	r.URL = base.String() + strings.TrimPrefix(r.URL, defaultGitHub)
	return r, nil
}

// isShort reports whether an address that can be parsed is org/repo.
func isShort(address string) bool {
	return !isPath(address) && !strings.Contains(address, ":") && !strings.HasPrefix(address, "github.com/")
}

func usage(format string, args ...any) error {
	return errs.New("repo.Parse", errs.Usage, addressHint, format, args...)
}

func checkText(address string) error {
	switch {
	case address == "":
		return usage("repository address is empty")
	case len(address) > maxAddress:
		return usage("repository address is longer than %d bytes", maxAddress)
	}
	for _, r := range address {
		if r < 0x20 || r == 0x7f || r == 0xfffd {
			return usage("repository %q holds a control or invalid character", address)
		}
	}
	return nil
}

func isPath(s string) bool {
	switch {
	case s == "." || s == ".." || s == "~", hasDrive(s):
		return true
	}
	for _, p := range []string{"/", "./", "../", "~/", `.\`, `..\`, `\\`} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// parseShort reads org/repo and github.com/org/repo.
func parseShort(s string) (task.Repo, error) {
	rest, onHost := strings.CutPrefix(s, "github.com/")
	org, name, ok := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	if !ok {
		return task.Repo{}, usage("repository %q has no organisation; a path begins with ./", s)
	}
	if strings.Contains(name, "/") {
		if onHost || !strings.Contains(org, ".") {
			return task.Repo{}, usage("repository %q has more than an organisation and a name", s)
		}
		return task.Repo{}, usage("repository %q has no scheme: write https://%s", s, s)
	}
	name = trimGit(name)
	if !isOwner(org) || !validName(name) {
		return task.Repo{}, usage("repository %q is not of the form org/repo", s)
	}
	return task.Repo{
		Source: task.RepoRemote, Org: strings.ToLower(org), Name: strings.ToLower(name),
		URL: "https://github.com/" + org + "/" + name + ".git",
	}, nil
}

func validName(name string) bool {
	return len(name) <= 100 && only(name, alnum+"._-") && !strings.HasPrefix(name, "-") && name != "." && name != ".." && name != ".git"
}

// trimGit takes the suffix .git off, unless it is the whole name.
func trimGit(name string) string {
	if t := strings.TrimSuffix(name, ".git"); t != "" {
		return t
	}
	return name
}

// parseURL reads the part of a URL after "scheme://". Its errors never show the
// address when that may hold a credential.
func parseURL(scheme, rest string) (task.Repo, error) {
	if scheme == "file" {
		return parseFileURL(rest)
	}
	switch scheme {
	case "https", "http", "ssh", "git":
	case "git+ssh", "ssh+git":
		scheme = "ssh"
	default:
		return task.Repo{}, usage("repository address has the scheme %q; https, http, ssh, git and file are known", scheme)
	}
	authority, p, _ := strings.Cut(rest, "/")
	user, host, port, err := splitAuthority(scheme, authority)
	if err != nil {
		return task.Repo{}, err
	}
	clean, org, name, err := splitPath(host, p)
	if err != nil {
		return task.Repo{}, err
	}
	if isGitHub(host) && port == "" && scheme != "ssh" {
		// GitHub answers at no other address, and nothing of ours is sent in the clear.
		scheme, host = "https", "github.com"
	}
	address := scheme + "://"
	if user != "" {
		address += user + "@"
	}
	address += host
	if port != "" {
		address += ":" + port
	}
	return task.Repo{Source: task.RepoRemote, Org: org, Name: name, URL: address + "/" + clean}, nil
}

func splitAuthority(scheme, authority string) (user, host, port string, err error) {
	host = authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, host = authority[:i], authority[i+1:]
		if scheme != "ssh" || strings.Contains(user, ":") {
			return "", "", "", errs.New("repo.Parse", errs.Usage,
				"take the user name and password out of the address",
				"repository address on %q holds a credential", host)
		}
		if !isUser(user) {
			return "", "", "", usage("user %q of the repository address is not a user name", user)
		}
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
		if !isPort(port) {
			return "", "", "", usage("port %q of the repository address is not a number", port)
		}
	}
	if !isHost(host) && !isIPv6(host) {
		return "", "", "", usage("host %q of the repository address is not a host name", host)
	}
	return user, host, port, nil
}

// splitPath checks the path of a URL and finds org and name in it.
func splitPath(host, p string) (clean, org, name string, err error) {
	if strings.ContainsAny(p, "?#") {
		return "", "", "", usage("repository address on %q has a query or a fragment", host)
	}
	clean = strings.TrimRight(p, "/")
	plain, err := url.PathUnescape(clean)
	if err != nil || checkText(plain) != nil {
		return "", "", "", usage("repository address on %q has no usable path", host)
	}
	parts := strings.Split(plain, "/")
	for _, e := range parts {
		if e == "" || e == "." || e == ".." || strings.HasPrefix(e, "-") {
			return "", "", "", usage("path %q of the repository address is not one of a repository", plain)
		}
	}
	if isGitHub(host) {
		if len(parts) != 2 || !isOwner(parts[0]) || !validName(trimGit(parts[1])) {
			return "", "", "", usage("path %q of the repository address is not of the form org/repo", plain)
		}
	}
	name = slug(trimGit(parts[len(parts)-1]))
	org = localOrg
	if len(parts) > 1 {
		org = slug(parts[len(parts)-2])
	}
	return clean, org, name, nil
}

func isGitHub(host string) bool {
	h := strings.ToLower(host)
	return h == "github.com" || h == "www.github.com" || h == "ssh.github.com"
}

func parseFileURL(rest string) (task.Repo, error) {
	host, p, ok := strings.Cut(rest, "/")
	if !ok || (host != "" && host != "localhost") {
		return task.Repo{}, usage("a file URL has the form file:///path")
	}
	clean := path.Clean("/" + p)
	if clean == "/" {
		return task.Repo{}, usage("a file URL has the form file:///path")
	}
	plain, err := url.PathUnescape(clean)
	if err != nil {
		return task.Repo{}, usage("file URL %q is not well escaped", "file://"+clean)
	}
	return task.Repo{
		Source: task.RepoRemote, Org: localOrg, Name: nameOfPath(plain), URL: "file://" + clean,
	}, nil
}

// parseSCP reads user@host:path and host:path.
func parseSCP(host, p string) (task.Repo, error) {
	user, h, ok := strings.Cut(host, "@")
	if !ok {
		user, h = "", host
	}
	switch strings.ToLower(host) {
	case "file", "http", "https", "ssh", "git":
		return task.Repo{}, usage("repository %q lacks the // after %s:", host+":"+p, host)
	}
	if (ok && !isUser(user)) || !isHost(h) {
		return task.Repo{}, usage("repository %q is not of the form user@host:path", host+":"+p)
	}
	rooted := strings.HasPrefix(p, "/")
	clean, org, name, err := splitPath(h, strings.TrimPrefix(p, "/"))
	if err != nil {
		return task.Repo{}, err
	}
	if rooted {
		clean = "/" + clean
	}
	return task.Repo{Source: task.RepoRemote, Org: org, Name: name, URL: host + ":" + clean}, nil
}

// nameOfPath is the name of a repository that is known by its path only.
func nameOfPath(p string) string {
	base := path.Base(strings.TrimSuffix(path.Clean(strings.ReplaceAll(p, `\`, "/")), "/.git"))
	return slug(trimGit(base))
}

// slug makes any text a path element that is safe in a sandbox: lower case, of
// letters, digits, dot, dash and underscore. Text that is such an element already
// stays as it is.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
		if b.Len() >= 100 {
			break
		}
	}
	out := b.String()
	if len(out) > 100 {
		out = out[:100]
	}
	out = strings.TrimLeft(out, "-")
	if out == "" || out == "." || out == ".." || out == ".git" {
		return "repository"
	}
	return out
}

// fromOrigin finds org and name in the URL of a remote; ok is false unless it is a
// repository on GitHub.
func fromOrigin(remote string) (org, name string, ok bool) {
	clean := withoutCredentials(remote)
	r, err := Parse(clean)
	if err != nil || r.Source != task.RepoRemote {
		return "", "", false
	}
	host := clean
	if _, rest, found := strings.Cut(clean, "://"); found {
		host, _, _ = strings.Cut(rest, "/")
	} else {
		host, _, _ = strings.Cut(clean, ":")
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	host, _, _ = strings.Cut(host, ":")
	if !isGitHub(host) {
		return "", "", false
	}
	return r.Org, r.Name, true
}

// withoutCredentials takes user and password out of an http(s) URL, and the
// password out of any other.
func withoutCredentials(remote string) string {
	scheme, rest, ok := strings.Cut(remote, "://")
	if !ok {
		return remote
	}
	authority, p, slash := strings.Cut(rest, "/")
	i := strings.LastIndexByte(authority, '@')
	if i < 0 {
		return remote
	}
	user, host := authority[:i], authority[i+1:]
	user, _, _ = strings.Cut(user, ":")
	switch strings.ToLower(scheme) {
	case "ssh", "git+ssh", "ssh+git":
		host = user + "@" + host
	}
	if slash {
		host += "/" + p
	}
	return scheme + "://" + host
}
