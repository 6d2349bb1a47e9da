package jail

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// entries are the lines of a passwd or group file, in fields.
func entries(t *testing.T, file string, fields int) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(file) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != fields || !strings.HasSuffix(line, "\n") {
			t.Errorf("line %q", line)
		}
		all = append(all, f)
	}
	return all
}

// idOf returns the name that a program finds for an id: that of the first entry.
func idOf(all [][]string, id int) string {
	for _, f := range all {
		if f[2] == strconv.Itoa(id) {
			return f[0]
		}
	}
	return ""
}

// Whatever ids the user has, the files of names are in order and the agent's uid has a
// name and a home: git and ssh refuse to work for a uid without one.
func TestNamesOfAnyUser(t *testing.T) {
	for _, uid := range []int{0, 1, 5, 1000, 65533, 65534, 1<<31 - 1, 1<<32 - 2} {
		for _, gid := range []int{0, 5, 1000, 65534, 1<<32 - 2} {
			own := ownFiles("box", "/home/agent", uid, gid)
			users, groups := entries(t, own["passwd"], 7), entries(t, own["group"], 4)
			if who := idOf(users, uid); who != "agent" && uid != 0 || idOf(users, 0) != "root" {
				t.Errorf("uid %d is %q", uid, who)
			}
			if who := idOf(groups, gid); who != "agent" && gid != 0 || idOf(groups, 0) != "root" {
				t.Errorf("gid %d is %q", gid, who)
			}
			if !hasID([]byte(own["passwd"]), uid) || !hasID([]byte(own["group"]), gid) {
				t.Errorf("%d:%d: what was written is not found", uid, gid)
			}
		}
	}
}

// The files of our own must win over the host's: none of them may be on the list of what
// is copied, or writing them would fail or show the host's users.
func TestOwnFilesAreNotTheHosts(t *testing.T) {
	own := ownFiles("box", "/home/agent", 1000, 1000)
	var found []string
	for name, text := range own {
		found = append(found, name)
		if text == "" || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s holds %q", name, text)
		}
	}
	for _, name := range etcSelect(append(found, "mtab")) {
		if _, ours := own[name]; ours || name == "mtab" {
			t.Errorf("%s is taken from the host", name)
		}
	}
	if !strings.Contains(own["hosts"], "\tbox\n") {
		t.Errorf("the host does not know its own name: %q", own["hosts"])
	}
}

// Of any /etc, only what was found there or lies deeper is selected, once, and nothing that
// holds keys or passwords.
func TestEtcSelectProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{
		"shadow", "gshadow", "ssh", "ssl", "private", "sudoers", "passwd", "python3", "java", "ld.so.", "release", "key",
		"profile", "d", "dpkg", "krb5", "keytab", "kubernetes", "ca-certificates", "-", ".", "fstab", "cron", "environment",
	}
	forbidden := []string{"shadow", "gshadow", "ssh", "ssl", "private", "sudoers", "passwd", "krb5", "keytab", "kubernetes", "environment", "fstab"}
	for range 2000 {
		var found []string
		for range r.IntN(20) {
			name := words[r.IntN(len(words))]
			if r.IntN(2) == 0 {
				name += words[r.IntN(len(words))]
			}
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		checkSelected(t, found, forbidden)
	}
}

func checkSelected(t *testing.T, found, forbidden []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range etcSelect(found) {
		if seen[name] || !strings.Contains(name, "/") && !slices.Contains(found, name) || slices.Contains(forbidden, name) {
			t.Errorf("%q of %q", name, found)
		}
		seen[name] = true
	}
}

// The list itself: relative, clean, without a way to keys, and each guarded name is on it.
func TestEtcNamesAreSafe(t *testing.T) {
	for _, name := range etcNames() {
		if strings.HasPrefix(name, "/") || strings.Contains(name, "..") || strings.Contains(name, "private") || strings.Contains(name, "ssh") {
			t.Errorf("%q", name)
		}
	}
	for _, name := range []string{"npmrc", "pip.conf", "gitconfig", "maven", "gradle", "profile", "profile.d", "bash.bashrc", "bashrc"} {
		if etcGuard(name) == nil || !slices.Contains(etcNames(), name) {
			t.Errorf("%s is not guarded, or guarded in vain", name)
		}
	}
	if etcGuard("localtime") != nil {
		t.Error("what cannot hold a credential costs a look")
	}
}

// Wherever in a file a credential stands, and however it is spelt, it is found: the
// lines around it must not hide it.
func TestCredentialsAreFoundAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	harmless := []string{
		"# a comment about passwords", "", "export EDITOR=vi", "if [ -x /bin/x ]; then", "fi", "a=b; c=d", "PS1='\\u@\\h'",
		"export http_proxy=http://proxy:3128", "TOKEN=$(cat x)", "setenv EDITOR vi", "setenv TOKEN $OTHER", "setenv TOKEN", "\xff\x00",
	}
	secrets := []string{
		"export API_TOKEN=abc", "db_password='x'", "A=1; MY_SECRET=\"x\"", "\tAWS_ACCESS_KEY_ID=AKIA", "setenv GH_TOKEN abc",
		"if ($?x) setenv API_KEY 'abc'", "export P=https://u:p@h/", "declare -x CREDENTIALS=x", "A=$B PRIVATE_KEY=x",
	}
	for range 500 {
		var lines []string
		for range r.IntN(8) {
			lines = append(lines, harmless[r.IntN(len(harmless))])
		}
		if text := strings.Join(lines, "\n"); setsCredential([]byte(text)) {
			t.Fatalf("%q is taken for a credential", text)
		}
		found := secrets[r.IntN(len(secrets))]
		if r.IntN(2) == 0 {
			found = strings.ReplaceAll(strings.ToLower(found), "/bin", "/BIN")
		}
		lines = slices.Insert(lines, r.IntN(len(lines)+1), found)
		end := []string{"", "\n", "\r\n"}[r.IntN(3)]
		if text := strings.Join(lines, "\n") + end; !setsCredential([]byte(text)) {
			t.Fatalf("%q is shown", text)
		}
	}
}

// FuzzCredentials: no content is too odd, and more of it never makes a credential
// vanish.
func FuzzCredentials(f *testing.F) {
	for _, seed := range []string{"", "=", "a=", "://", "://@", "<!--", "<!---->", "-->", "setenv", "token=\"'", "x=y=z", "\x00=\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		_, _ = carriesCredential(data), hasID(data, 1000)
		if setsCredential(data) && !setsCredential(append([]byte("A=b\n"), data...)) {
			t.Errorf("%q is hidden by a line before it", data)
		}
		if !setsCredential(append(append([]byte(nil), data...), "\nAPI_TOKEN=abc\n"...)) {
			t.Errorf("%q hides what comes after it", data)
		}
		if !bytes.Equal(before, data) {
			t.Error("the content was changed")
		}
	})
}
