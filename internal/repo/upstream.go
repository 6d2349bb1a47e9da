package repo

import (
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/task"
)

// Upstream is a repository of a run at its server, from where the host can bring what is
// new.
type Upstream struct {
	// Repo is the one to fetch; Org and Name are those of the run's repository.
	Repo task.Repo
	// Web is where it is for a program that has a network of its own, without .git at its
	// end; empty where that is no web address.
	Web string
	// Addresses are what it may be called by, without .git at their ends.
	Addresses []string
}

// Upstreams are those of the repositories of a run that have one.
func Upstreams(repos []task.Repo) []Upstream {
	var out []Upstream
	for _, r := range repos {
		if r.URL == "" {
			continue
		}
		u := Upstream{Repo: task.Repo{Source: task.RepoRemote, Org: r.Org, Name: r.Name, URL: r.URL, FullHistory: r.FullHistory}}
		if r.Source != task.RepoRemote {
			u.Repo.FullHistory = true // as the user's own clone has it
		}
		u.Addresses = addressesOf(r.URL)
		if base := strings.TrimSuffix(r.URL, ".git"); strings.HasPrefix(base, "https://") || strings.HasPrefix(base, "http://") {
			u.Web = base
		}
		out = append(out, u)
	}
	return out
}

// addressesOf are the forms in which an address is written, in its own spelling and in
// lower case, the shortest first.
func addressesOf(address string) []string {
	base := strings.TrimSuffix(address, ".git")
	all := []string{base}
	if host, port, p, ok := placeOf(base); ok {
		name := strings.ToLower(host)
		all = append(all,
			"https://"+name+port+"/"+p, "git@"+name+":"+p, "ssh://git@"+name+"/"+p,
		)
		if isGitHub(host) {
			all = append(all, "ssh://git@ssh.github.com:443/"+p)
		}
	}
	for _, one := range all {
		if low := strings.ToLower(one); low != one {
			all = append(all, low)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// placeOf takes an address of a server apart; the port, with its colon, is that of a
// web address only.
func placeOf(address string) (host, port, p string, ok bool) {
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		host, p, ok = strings.Cut(address, ":")
		host = withoutUser(host)
		return host, "", strings.TrimPrefix(p, "/"), ok && host != "" && p != ""
	}
	authority, p, ok := strings.Cut(rest, "/")
	host = withoutUser(authority)
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i:]
	}
	if scheme != "https" && scheme != "http" {
		port = ""
	}
	return host, port, p, ok && host != "" && p != ""
}

func withoutUser(authority string) string {
	return authority[strings.LastIndexByte(authority, '@')+1:]
}
