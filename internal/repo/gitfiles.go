package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// refList is what a sandbox knows of the source's branches and tags.
type refList struct {
	oids map[string]string // full name -> object
	syms map[string]string // full name -> full name
}

// gitFiles are the files of the sandbox's .git beside the index, by name below the
// top of the tree. They are written anew for every run, so that a cached checkout
// shows the refs of today.
func (c *Cache) gitFiles(ctx context.Context, s *source, p Prepared) (map[string]string, error) {
	refs, err := c.refs(ctx, s)
	if err != nil {
		return nil, err
	}
	head := p.Repo.Commit + "\n"
	if b := p.Repo.Branch; b != "" {
		head = "ref: refs/heads/" + b + "\n"
		refs.oids["refs/heads/"+b] = p.Repo.Commit
	}
	files := map[string]string{
		".git/HEAD":                    head,
		".git/config":                  s.sandboxConfig(p, refs),
		".git/packed-refs":             refs.packed(),
		".git/objects/info/alternates": alternatesText(p.Objects),
		".git/info/exclude":            s.excludes(),
		".git/description":             "",
		".git/objects/pack/":           "",
		".git/refs/heads/":             "",
		".git/refs/tags/":              "",
		".git/hooks/":                  "",
	}
	for name, to := range refs.syms {
		files[".git/"+name] = "ref: " + to + "\n"
	}
	if raw := s.shallowFile(); raw != nil {
		files[".git/shallow"] = string(raw)
	}
	return files, nil
}

// refs lists the source's heads, tags and remotes. The heads of a mirror are those
// of a remote, as after a clone.
func (c *Cache) refs(ctx context.Context, s *source) (refList, error) {
	out, err := c.git.text(ctx, s.call("for-each-ref", "--format=%(objectname) %(refname) %(symref)",
		"refs/heads", "refs/tags", "refs/remotes"))
	if err != nil {
		return refList{}, fmt.Errorf("list refs: %w", err)
	}
	l := refList{oids: map[string]string{}, syms: map[string]string{}}
	for _, line := range strings.Split(out, "\n") {
		f := strings.Split(line, " ")
		if len(f) != 3 || !isObjectID(f[0]) {
			continue
		}
		name, sym := f[1], f[2]
		if branch, _ := strings.CutPrefix(name, "refs/heads/"); s.branches != nil && s.branches[branch] == "" {
			continue // of another run, and maybe no longer so
		}
		if s.mirror {
			name = asRemote(name)
		}
		if sym != "" {
			l.syms[name] = sym
			continue
		}
		l.oids[name] = f[0]
	}
	if def := s.config["insights.default"]; s.mirror && def != "" {
		l.syms["refs/remotes/origin/HEAD"] = "refs/remotes/origin/" + def
	}
	return l, nil
}

func asRemote(ref string) string {
	if b, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return "refs/remotes/origin/" + b
	}
	return ref
}

func (l refList) packed() string {
	names := make([]string, 0, len(l.oids))
	for n := range l.oids {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted \n")
	for _, n := range names {
		b.WriteString(l.oids[n] + " " + n + "\n")
	}
	return b.String()
}

// sandboxConfig is the configuration of the repository in the sandbox: nothing of
// the user's but who they are, how line ends are kept, and where the remotes are,
// without credentials.
func (s *source) sandboxConfig(p Prepared, refs refList) string {
	v := s.lineEnds()
	v["core.bare"] = "false"
	v["core.filemode"] = "true"
	v["core.logallrefupdates"] = "true"
	// The checkout is copied or shown through an overlay: inode, device and change
	// time differ from those of the index, size and modification time do not.
	v["core.checkstat"] = "minimal"
	v["core.trustctime"] = "false"
	v["user.name"], v["user.email"] = s.identity()
	for key, value := range s.config {
		name, ok := strings.CutPrefix(key, "remote.")
		if name, isURL := strings.CutSuffix(name, ".url"); ok && isURL {
			v[key] = withoutCredentials(value)
			v["remote."+name+".fetch"] = "+refs/heads/*:refs/remotes/" + name + "/*"
		}
	}
	if s.mirror && s.partial() {
		// Git asks the server for what is missing, where the sandbox can reach it.
		v["extensions.partialclone"] = "origin"
		v["remote.origin.promisor"], v["remote.origin.partialclonefilter"] = "true", smallBlob
	}
	if b := p.Repo.Branch; b != "" && refs.oids["refs/remotes/origin/"+b] != "" {
		v["branch."+b+".remote"] = "origin"
		v["branch."+b+".merge"] = "refs/heads/" + b
	}
	return configText(s.format, v)
}

func (s *source) identity() (name, email string) {
	name, email = s.setting("user.name"), s.setting("user.email")
	if name == "" {
		name = agentName
	}
	if email == "" {
		email = AgentEmail
	}
	return name, email
}

// AgentEmail is the address of who commits what nobody signed for.
const AgentEmail = "agent@insights.invalid"

const agentName = "Insights agent"

// excludes is the repository's own list of ignored files, which is part of no
// commit.
func (s *source) excludes() string {
	raw, err := os.ReadFile(filepath.Join(s.commonDir, "info", "exclude"))
	if err != nil {
		return ""
	}
	return string(raw)
}
