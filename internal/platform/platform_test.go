package platform

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

func openDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := statedb.Open(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db.DB
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// addRun records a run as package journal does.
func addRun(t *testing.T, db *sql.DB) task.ID {
	t.Helper()
	run := task.NewID()
	_, err := db.ExecContext(t.Context(), `INSERT INTO runs (id, task, state, version, spec, created) VALUES (?, 't', 'queued', 'v', ?, 1)`,
		run, []byte(`{"team":3,"user":4}`))
	must(t, err)
	return run
}

func TestPresetsOfScopes(t *testing.T) {
	full, err := Scopes(ScopesFull)
	must(t, err)
	readOnly, err := Scopes(ScopesReadOnly)
	must(t, err)
	// 105 objects to read and to write, of which two scopes are internal ones, and the
	// third internal one.
	if len(full) != 211 || len(readOnly) != 107 {
		t.Errorf("full has %d scopes, read_only %d", len(full), len(readOnly))
	}
	for name, scopes := range map[string][]string{"full": full, "read_only": readOnly} {
		if got := scopes[len(scopes)-3:]; !slices.Equal(got, InternalScopes()) {
			t.Errorf("%s ends in %v", name, got)
		}
		if got := unique(slices.Clone(scopes)); len(got) != len(scopes) {
			t.Errorf("%s repeats itself", name)
		}
		must(t, CheckScopes(scopes))
	}
	if !HasWrite(full) || HasWrite(readOnly) {
		t.Errorf("HasWrite: full %t, read_only %t", HasWrite(full), HasWrite(readOnly))
	}
}

func TestListsOfScopes(t *testing.T) {
	tests := map[string]string{
		"query:read":                          "query:read task:write llm_gateway:read internal_run:read",
		"query:read,insight:write,query:read": "query:read insight:write task:write llm_gateway:read internal_run:read",
		" query:read  task:write ":            "query:read task:write llm_gateway:read internal_run:read",
	}
	for asked, want := range tests {
		got, err := Scopes(asked)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("Scopes(%q) = %v, %v", asked, got, err)
		}
	}
}

func TestUnknownScopesAreNamed(t *testing.T) {
	for asked, hint := range map[string]string{
		"query:red": "query:read", "insigt:write": "insight:write", "feature_flags:read": "feature_flag:read",
		"query": "query:read", "query:delete": "query:read", "*": "use read_only", "completely_different:thing": "use read_only",
		"": "use read_only", "readonly": "use read_only",
	} {
		_, err := Scopes(asked)
		if errs.KindOf(err) != errs.Usage || !strings.Contains(err.Error(), asked) || !strings.Contains(errs.HintOf(err), hint) {
			t.Errorf("Scopes(%q): %v; hint %q", asked, err, errs.HintOf(err))
		}
	}
}

func TestTokenGrantsItsScopesUntilTheRunIsOver(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	tokens, run := NewTokens(db), addRun(t, db)
	tok, err := tokens.Mint(ctx, run, []string{"query:read", "task:write", "query:read"}, time.Hour)
	must(t, err)
	g, err := tokens.Check(ctx, tok)
	must(t, err)
	if g.Run != run || g.Team != 3 || g.User != 4 || !slices.Equal(g.Scopes, []string{"query:read", "task:write"}) ||
		!g.Allows("query:read") || g.Allows("query:write") || time.Until(g.Expires) > time.Hour || time.Until(g.Expires) < 50*time.Minute {
		t.Errorf("%+v", g)
	}
	var n int
	must(t, db.QueryRowContext(ctx, `SELECT COUNT(*) FROM tokens WHERE CAST(hash AS TEXT) LIKE ?`, "%"+tok.Reveal()+"%").Scan(&n))
	if n != 0 || len(tok.Reveal()) < 40 {
		t.Error("the token is stored in clear, or short")
	}
	_, err = db.ExecContext(ctx, `UPDATE runs SET finished = 5`)
	must(t, err)
	wantVoid(t, tokens, tok)
	if _, err := tokens.Mint(ctx, run, []string{"query:read"}, time.Hour); errs.KindOf(err) != errs.Conflict {
		t.Errorf("token for a run that is over: %v", err)
	}
}

func wantVoid(t *testing.T, tokens *Tokens, tok secret.String) {
	t.Helper()
	if g, err := tokens.Check(t.Context(), tok); errs.KindOf(err) != errs.Auth || !reflect.DeepEqual(g, Grant{}) {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestVoidTokens(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	tokens, run := NewTokens(db), addRun(t, db)
	mint := func(ttl time.Duration) secret.String {
		tok, err := tokens.Mint(ctx, run, []string{"query:read"}, ttl)
		must(t, err)
		return tok
	}
	first := mint(time.Hour)
	second := mint(time.Hour)
	wantVoid(t, tokens, first) // replaced
	if _, err := tokens.Check(ctx, second); err != nil {
		t.Error(err)
	}
	must(t, tokens.Revoke(ctx, run))
	must(t, tokens.Revoke(ctx, run))
	wantVoid(t, tokens, second)
	wantVoid(t, tokens, mint(-time.Second)) // expired
	wantVoid(t, tokens, secret.New(""))
	wantVoid(t, tokens, secret.New("insx_made-up"))
	if _, err := tokens.Mint(ctx, run, []string{"no:scope"}, time.Hour); errs.KindOf(err) != errs.Usage {
		t.Error(err)
	}
	if _, err := tokens.Mint(ctx, task.NewID(), []string{"query:read"}, time.Hour); errs.KindOf(err) != errs.Conflict {
		t.Error(err)
	}
}

func TestAccounts(t *testing.T) {
	a, ctx := NewAccounts(openDB(t)), t.Context()
	if team, err := a.Team(ctx, 1); err != nil || team.Name == "" {
		t.Errorf("%+v, %v", team, err)
	}
	added, err := a.AddUser(ctx, "Ada", "ada@example.org")
	must(t, err)
	if got, err := a.User(ctx, added.ID); err != nil || got != added || got.ID == 1 {
		t.Errorf("%+v, %v", got, err)
	}
	team, err := a.AddTeam(ctx, "Second")
	must(t, err)
	if got, err := a.Team(ctx, team.ID); err != nil || got != team {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := a.User(ctx, 99); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	f, ctx := NewFlags(openDB(t)), t.Context()
	if flag, err := f.Get(ctx, 1, "tasks"); err != nil || flag.Enabled {
		t.Errorf("%+v, %v", flag, err)
	}
	must(t, f.Set(ctx, 1, "tasks", Flag{Enabled: true}))
	must(t, f.Set(ctx, 1, "tasks", Flag{Enabled: true, Payload: []byte(`{"a":1}`)}))
	if flag, err := f.Get(ctx, 1, "tasks"); err != nil || !flag.Enabled || string(flag.Payload) != `{"a":1}` {
		t.Errorf("%+v, %v", flag, err)
	}
	if flag, err := f.Get(ctx, 2, "tasks"); err != nil || flag.Enabled {
		t.Errorf("another team: %+v, %v", flag, err)
	}
	if err := f.Set(ctx, 1, "tasks", Flag{Payload: []byte(`{`)}); errs.KindOf(err) != errs.Usage {
		t.Error(err)
	}
}

func TestOAuthAppKeepsItsID(t *testing.T) {
	o, ctx := NewOAuthApps(openDB(t)), t.Context()
	app := OAuthApp{Name: "Array Dev App", ClientID: "id-1", Public: true, RedirectURIs: []string{"http://localhost:3000/callback"}}
	got, err := o.Ensure(ctx, app, secret.String{})
	if err != nil || !reflect.DeepEqual(got, app) {
		t.Errorf("%+v, %v", got, err)
	}
	changed := app
	changed.ClientID, changed.RedirectURIs = "id-2", []string{"http://localhost:8237/callback", "http://localhost:8239/callback"}
	got, err = o.Ensure(ctx, changed, secret.New("client secret"))
	changed.ClientID = "id-1"
	if err != nil || !reflect.DeepEqual(got, changed) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := o.Get(ctx, "none"); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}

func TestEnvironments(t *testing.T) {
	e, ctx := NewEnvironments(openDB(t)), t.Context()
	open := Environment{Team: 1, Name: "open", CreatedBy: 1, Network: task.NetworkFull}
	own := Environment{
		Team: 1, Name: "own", CreatedBy: 1, Private: true, Network: task.NetworkCustom, Domains: []string{"api.example.org"}, IncludeDefault: true,
		Image: "image:1", Repos: []string{"org/repo"}, Env: map[string]string{"K": "v"}, Sealed: map[string][]byte{"S": {0, 255}},
	}
	must(t, errors.Join(e.Create(ctx, own), e.Create(ctx, open)))
	if got, err := e.Get(ctx, 1, 1, "own"); err != nil || !reflect.DeepEqual(got, own) {
		t.Errorf("%+v, %v", got, err)
	}
	all, err := e.List(ctx, 1, 2)
	if err != nil || len(all) != 1 || all[0].Name != "open" {
		t.Errorf("another user sees %+v, %v", all, err)
	}
	if _, err := e.Get(ctx, 1, 2, "own"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("another user's own: %v", err)
	}
	stolen := own
	stolen.CreatedBy = 2
	if err := e.Create(ctx, stolen); errs.KindOf(err) != errs.Conflict {
		t.Errorf("another user's name: %v", err)
	}
	change := func(env *Environment) error {
		*env = Environment{Team: 7, Name: "x", CreatedBy: 7, Network: task.NetworkCustom, Domains: []string{"a.example.org", "b.example.org"}}
		return nil
	}
	if err := e.Edit(ctx, 1, 2, "own", change); errs.KindOf(err) != errs.NotFound {
		t.Errorf("change of another user's own: %v", err)
	}
	must(t, e.Edit(ctx, 1, 1, "own", change))
	own = Environment{Team: 1, Name: "own", CreatedBy: 1, Network: task.NetworkCustom, Domains: []string{"a.example.org", "b.example.org"}}
	if got, err := e.Get(ctx, 1, 1, "own"); err != nil || !reflect.DeepEqual(got, own) {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, e.Edit(ctx, 1, 1, "own", func(env *Environment) error { env.Private = true; return nil }))
	if err := e.Delete(ctx, 1, 2, "own"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("removal of another user's own: %v", err)
	}
	must(t, e.Delete(ctx, 1, 1, "own"))
}

func TestEnvironmentsAreChecked(t *testing.T) {
	e, ctx := NewEnvironments(openDB(t)), t.Context()
	for _, bad := range []Environment{
		{Network: task.NetworkFull},
		{Name: "x y", Network: task.NetworkFull},
		{Name: "x", Network: "half"},
		{Name: "x", Network: task.NetworkLink},
		{Name: "x", Network: task.NetworkFull, Domains: []string{"a"}},
		{Name: "x", Network: task.NetworkFull, IncludeDefault: true},
		{Name: "x", Network: task.NetworkFull, Repos: []string{"Org/repo"}},
		{Name: "x", Network: task.NetworkFull, Repos: []string{"org/a/b"}},
		{Name: "x", Network: task.NetworkFull, Env: map[string]string{"K": "v"}, Sealed: map[string][]byte{"K": nil}},
	} {
		bad.Team, bad.CreatedBy = 1, 1
		if err := e.Create(ctx, bad); errs.KindOf(err) != errs.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Two editors of one environment wait for each other, and neither's change is lost.
func TestEditorsOfOneEnvironment(t *testing.T) {
	e, ctx := NewEnvironments(openDB(t)), t.Context()
	must(t, e.Create(ctx, Environment{Team: 1, Name: "e", CreatedBy: 1, Network: task.NetworkCustom}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			err := e.Edit(ctx, 1, 1, "e", func(env *Environment) error {
				env.Domains = append(env.Domains, fmt.Sprintf("%d.example.org", i))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := e.Get(ctx, 1, 1, "e"); err != nil || len(got.Domains) != 8 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A run that takes longer than a token lives keeps it, also over a pause in which nobody
// renewed it; one that is over does not get it back.
func TestRenewedTokens(t *testing.T) {
	db, ctx := openDB(t), t.Context()
	tokens, run := NewTokens(db), addRun(t, db)
	tok, err := tokens.Mint(ctx, run, []string{"query:read"}, -time.Minute)
	must(t, err)
	wantVoid(t, tokens, tok)
	must(t, tokens.Renew(ctx, run, time.Hour))
	g, err := tokens.Check(ctx, tok)
	if err != nil || g.Run != run || time.Until(g.Expires) < 50*time.Minute {
		t.Errorf("%+v, %v", g, err)
	}
	must(t, tokens.Renew(ctx, run, time.Minute)) // never shorter
	if g, err = tokens.Check(ctx, tok); err != nil || time.Until(g.Expires) < 50*time.Minute {
		t.Errorf("%+v, %v", g, err)
	}
	must(t, tokens.Revoke(ctx, run))
	must(t, tokens.Renew(ctx, run, time.Hour))
	wantVoid(t, tokens, tok)
	tok, err = tokens.Mint(ctx, run, []string{"query:read"}, time.Minute)
	must(t, err)
	_, err = db.ExecContext(ctx, `UPDATE runs SET finished = 5`)
	must(t, err)
	must(t, tokens.Renew(ctx, run, time.Hour))
	wantVoid(t, tokens, tok)
}
