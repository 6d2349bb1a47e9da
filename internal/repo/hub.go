package repo

import (
	"net/url"
	"strings"

	"github.com/Insights/insightscli/internal/task"
)

// OnGitHub returns owner and name of a repository, as they are spelled in its address,
// if that is on the GitHub that the cache has access to. Of a repository on this machine
// it is the address of its origin that counts, as Resolve found it.
func (c *Cache) OnGitHub(r task.Repo) (owner, name string, ok bool) { return c.access.onHub(r.URL) }

// OnGitHub is the same for a GitHub by its address; "" is github.com.
func OnGitHub(github string, r task.Repo) (owner, name string, ok bool) {
	return (&access{Access: Access{GitHub: github}}).onHub(r.URL)
}

// onHub reads the address of a repository on the GitHub of this access, in any form
// that git takes.
func (a *access) onHub(address string) (owner, name string, ok bool) {
	base, err := url.Parse(a.base())
	if err != nil || address == "" {
		return "", "", false
	}
	clean := withoutCredentials(address)
	r, err := Parse(clean)
	if err != nil || r.Source != task.RepoRemote || r.URL == "" {
		return "", "", false
	}
	host, path := hostAndPath(r.URL)
	switch scheme, _, _ := strings.Cut(r.URL, "://"); scheme {
	case "http", "https":
		ok = sameOrigin(r.URL, base.String())
	case "file":
	default:
		ok = strings.EqualFold(host, base.Hostname()) || isGitHub(base.Hostname()) && isGitHub(host)
	}
	owner, name, two := strings.Cut(strings.Trim(path, "/"), "/")
	name = trimGit(name)
	return owner, name, ok && two && isOwner(owner) && validName(name)
}

// hostAndPath are those of a remote address, as a URL or in the form host:path.
func hostAndPath(address string) (host, path string) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Hostname(), u.Path
	}
	host, path, _ = strings.Cut(address, ":")
	return host[strings.LastIndexByte(host, '@')+1:], path
}

// address is where git fetches a repository of GitHub from.
func (a *access) address(owner, name string) string {
	return a.base() + "/" + owner + "/" + name + ".git"
}
