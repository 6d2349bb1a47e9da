package signing

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strconv"
	"testing"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// asApp makes a world's client one of an installed app, which mints its own tokens.
func (w *world) asApp() *ghapp.Source {
	w.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.gh.AddApp("agent", "acme", key, everything())
	w.gh.Install("agent", "acme", "app")
	in, err := ghapp.NewInstallations(ghapp.Credentials{
		ClientID: a.ClientID, APIURL: w.gh.URL + "/api/v3",
		PrivateKey: secret.New(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	source := in.Source(ghapp.Want{Owner: "acme", Repos: []string{"app"}, Permissions: everything()})
	o := w.client.o
	o.Token, o.Refused = source.Token, source.Forget
	if w.client, err = New(o); err != nil {
		w.t.Fatal(err)
	}
	return source
}

// Tokens that live for two seconds are enough for a work that takes longer.
func TestTokensThatLiveForTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{TokenLife: 2 * time.Second}, start())
	w.asApp()
	at, tree := w.base, ""
	for end, n := time.Now().Add(3*time.Second), 0; time.Now().Before(end); n++ {
		tree = w.tree(files{"n": {"100644", time.Duration(n).String()}})
		r := w.request(tree)
		r.Parents, r.Expected = []string{at}, at
		got, err := w.client.Publish(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		at = got.SHA
		w.git(w.bare, "fetch", "-q", w.repo.Dir, "work")
	}
	if n := w.gh.Count(fakegithub.OpAccessToken); n < 2 || w.git(w.repo.Dir, "rev-parse", "work^{tree}") != tree {
		t.Errorf("%d tokens", n)
	}
}

// A token that is revoked before any request is replaced, in git's pushes too.
func TestTokensThatAreRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	w.asApp()
	all := files{}
	for i := range manyBlobs + 5 {
		all[strconv.Itoa(i)] = file{"100644", strconv.Itoa(i)}
	}
	tree := w.tree(all)
	total := 1
	for n := 0; n <= total; n++ {
		w.reset()
		w.gh.Before(func(op string, i int) *fakegithub.Fault {
			if i == n && op != fakegithub.OpAccessToken && op != fakegithub.OpRepoInstallation {
				w.gh.Revoke()
			}
			return nil
		})
		got, err := w.client.Publish(t.Context(), w.request(tree))
		if err != nil || got.SHA != w.tip("work") {
			t.Errorf("request %d: %+v, %v", n, got, err)
		}
		total = max(total, w.gh.Requests())
		w.gh.Before(nil)
		w.clean()
	}
}
