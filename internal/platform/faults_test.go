package platform

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// The list of objects is a file: a blank, a repetition or a scope written out would make
// scopes that nobody can ask for.
func TestListOfObjects(t *testing.T) {
	seen := map[string]bool{}
	for _, object := range strings.Fields(objects) {
		if seen[object] || strings.Trim(object, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("object %q", object)
		}
		seen[object] = true
	}
	if len(seen) < 10 || strings.Count(strings.TrimSpace(objects), "\n")+1 != len(seen) {
		t.Errorf("%d objects", len(seen))
	}
}

// What a Spec holds is resolved again by others: the result must be a list that is known,
// without repetition, and stays the same.
func TestResolvedScopesResolveToThemselves(t *testing.T) {
	for _, asked := range []string{ScopesReadOnly, ScopesFull, "query:read", "task:write,query:read", "internal_run:read"} {
		once, err := Scopes(asked)
		must(t, err)
		must(t, CheckScopes(once))
		again, err := Scopes(strings.Join(once, ","))
		if err != nil || !slices.Equal(again, once) {
			t.Errorf("%s: %v became %v, %v", asked, once, again, err)
		}
		if n := len(once); !slices.Equal(once[n-3:], InternalScopes()) || len(unique(slices.Clone(once))) != n {
			t.Errorf("%s: %v", asked, once)
		}
	}
}

// Distance is one: zero for the same only, the same both ways. A wrong one suggests
// nonsense.
func TestDistance(t *testing.T) {
	ok := func(a, b string) bool {
		d := distance(a, b)
		return d == distance(b, a) && (d == 0) == (a == b) && d <= max(len(a), len(b)) && d >= max(len(a)-len(b), len(b)-len(a))
	}
	if err := quick.Check(ok, nil); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"query:red", "query:read", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %d", tt.a, tt.b, got)
		}
	}
}

// Each run has a token of its own: a new one for one run must not void another's, and a
// stale row must not outlive its time.
func TestTokensOfTwoRuns(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	tokens, one, two := NewTokens(db), addRun(t, db), addRun(t, db)
	mint := func(run task.ID, ttl time.Duration) secret.String {
		tok, err := tokens.Mint(ctx, run, []string{"query:read"}, ttl)
		must(t, err)
		return tok
	}
	a, b := mint(one, time.Hour), mint(two, -time.Hour)
	b2 := mint(two, time.Hour)
	if a.Reveal() == b2.Reveal() || b.Reveal() == b2.Reveal() || !strings.HasPrefix(a.Reveal(), tokenPrefix) {
		t.Error("two tokens are the same, or have no prefix")
	}
	must(t, tokens.Revoke(ctx, two))
	if g, err := tokens.Check(ctx, a); err != nil || g.Run != one {
		t.Errorf("%+v, %v", g, err)
	}
	var n int
	must(t, db.QueryRowContext(ctx, `SELECT COUNT(*) FROM tokens`).Scan(&n))
	if n != 1 {
		t.Errorf("%d rows", n)
	}
}

// A state directory that fails is not a wrong token: told as one, it would send people
// to log in again. Nor do its errors show what was asked with.
func TestFailingStateIsNoRefusal(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	must(t, db.Close())
	_, check := NewTokens(db).Check(ctx, secret.New("insx_canary"))
	_, minted := NewTokens(db).Mint(ctx, "r", []string{"query:read"}, time.Hour)
	_, user := NewAccounts(db).User(ctx, 1)
	_, added := NewAccounts(db).AddTeam(ctx, "t")
	_, flag := NewFlags(db).Get(ctx, 1, "f")
	_, app := NewOAuthApps(db).Ensure(ctx, OAuthApp{Name: "a"}, secret.New("canary"))
	_, envs := NewEnvironments(db).List(ctx, 1, 1)
	put := NewEnvironments(db).Create(ctx, Environment{Team: 1, Name: "e", Network: task.NetworkFull})
	for i, err := range []error{check, minted, NewTokens(db).Revoke(ctx, "r"), user, added, flag, app, envs, put} {
		kind := errs.KindOf(err)
		if err == nil || kind == errs.Auth || kind == errs.NotFound || kind == errs.Conflict || strings.Contains(err.Error(), "canary") {
			t.Errorf("%d: %v (%s)", i, err, kind)
		}
	}
}

func TestDamagedDomainsAreAnError(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	e := NewEnvironments(db)
	must(t, e.Create(ctx, Environment{Team: 1, Name: "e", CreatedBy: 1, Network: task.NetworkCustom, Domains: []string{"a.example"}}))
	_, err := db.ExecContext(ctx, `UPDATE environments SET domains = '{'`)
	must(t, err)
	// Read as an empty list it would be another network level.
	if got, err := e.Get(ctx, 1, 1, "e"); err == nil {
		t.Errorf("%+v", got)
	}
}

// A token in transit is one for this audience, by this key and this algorithm, for its
// time; the server's library must refuse the rest.
func TestConnectionTokenIsRefusedElsewhere(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	token, err := ConnectionToken(key, "id", task.Spec{Run: "r"}, time.Now())
	must(t, err)
	old, err := ConnectionToken(key, "id", task.Spec{Run: "r"}, time.Now().Add(-ConnectionTTL-time.Minute))
	must(t, err)
	check := func(tok string, k *rsa.PrivateKey, audience string) error {
		_, err := jwt.Parse(tok, func(*jwt.Token) (any, error) { return k.Public(), nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired())
		return err
	}
	parts := strings.Split(token.Reveal(), ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	must(t, check(token.Reveal(), key, connectionAudience))
	for name, err := range map[string]error{
		"another key": check(token.Reveal(), other, connectionAudience), "another audience": check(token.Reveal(), key, "x"),
		"expired": check(old.Reveal(), key, connectionAudience), "unsigned": check(none, key, connectionAudience),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if strings.Contains(fmt.Sprintf("%v %+v %d", token, token, token), parts[2]) {
		t.Error("the token is printed")
	}
}
