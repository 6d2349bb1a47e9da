package setup

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// memory is a store of both kinds.
type memory struct {
	apps  map[string]App
	teams []int64
	on    map[int64]bool
	err   error
}

func (m *memory) App(_ context.Context, name string) (App, error) {
	if app, ok := m.apps[name]; ok || m.err != nil {
		return app, m.err
	}
	return App{}, errs.New("memory", errs.NotFound, "", "there is no %s", name)
}

func (m *memory) PutApp(_ context.Context, app App) error {
	m.apps[app.Name] = app
	return m.err
}

func (m *memory) Teams(context.Context) ([]int64, error) { return m.teams, m.err }

func (m *memory) Enabled(_ context.Context, team int64, key string) (bool, error) {
	return key == TasksFlag && m.on[team], m.err
}

func (m *memory) Enable(_ context.Context, team int64, _ string) error {
	m.on[team] = true
	return m.err
}

func TestOAuthAppsAreMadeAndMended(t *testing.T) {
	store := &memory{apps: map[string]App{}}
	s := OAuthApps{Store: store, Apps: []App{ArrayApp(true), InsightsAIApp()}}
	if r := outcome(t, s); r.Outcome != Done || r.Text != "created Array Dev App, created Insights AI Dev App" {
		t.Fatalf("%+v", r)
	}
	if r := outcome(t, s); r.Outcome != There {
		t.Errorf("again: %+v", r)
	}
	// Addresses that drifted come back, one that somebody added stays, and so does the
	// client id that others have stored.
	store.apps["Array Dev App"] = App{Name: "Array Dev App", ClientID: "older", RedirectURIs: []string{"http://mine"}}
	if r := outcome(t, s); r.Outcome != Done || r.Text != "mended Array Dev App" {
		t.Errorf("%+v", r)
	}
	got := store.apps["Array Dev App"]
	want := []string{"http://mine", "http://localhost:8237/callback", "http://localhost:8239/callback"}
	if got.ClientID != "older" || !got.Public || !slices.Equal(got.RedirectURIs, want) {
		t.Errorf("%+v", got)
	}
	r := outcome(t, s)
	if r.Outcome != There || r.Text != "Array Dev App, Insights AI Dev App; Array Dev App has the client id older, expected array-dev-app" {
		t.Errorf("%+v", r)
	}
}

func TestOAuthAppsOfTheCloudAreLeftAlone(t *testing.T) {
	for _, region := range []string{"US", "eu"} {
		if r := outcome(t, OAuthApps{Region: region, Apps: []App{ArrayApp(false)}}); r.Outcome != Skipped || r.Undone {
			t.Errorf("%s: %+v", region, r)
		}
	}
}

func TestFindApp(t *testing.T) {
	store := &memory{apps: map[string]App{}}
	for region, want := range map[string]string{
		"US":  "Insights AI app not configured for region US",
		"":    "Insights AI app not found for region dev (client_id=insights-ai-dev-app)",
		"E2E": "Insights AI app not found for region E2E (client_id=insights-ai-dev-app)",
	} {
		if _, err := FindApp(t.Context(), store, InsightsAIApp(), region); err == nil || err.Error() != want {
			t.Errorf("%q: %v", region, err)
		}
	}
	store.apps["Insights AI Dev App"] = InsightsAIApp()
	if got, err := FindApp(t.Context(), store, InsightsAIApp(), ""); err != nil || got.ClientID != "insights-ai-dev-app" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheTasksFlagIsTurnedOnForEveryTeam(t *testing.T) {
	store := &memory{teams: []int64{1, 2, 3}, on: map[int64]bool{2: true}}
	if r := outcome(t, Flag{store}); r.Outcome != Done || r.Text != "turned on for team 1, 3" {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, Flag{store}); r.Outcome != There || r.Text != "active for 3 teams" {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, Flag{&memory{}}); r.Outcome != Skipped || !r.Undone {
		t.Errorf("no teams: %+v", r)
	}
	broken := errors.New("broken")
	if r := outcome(t, Flag{&memory{err: broken}}); r.Outcome != Failed || !errors.Is(r.Err, broken) {
		t.Errorf("%+v", r)
	}
}

func TestStepsOfTheMachine(t *testing.T) {
	away := errs.New("x", errs.Unavailable, "start it", "no engine")
	state := func(s ImageState) func(context.Context) (ImageState, error) {
		return func(context.Context) (ImageState, error) { return s, nil }
	}
	for name, tt := range map[string]struct {
		step    Step
		outcome Outcome
		undone  bool
	}{
		"engine":           {Engine{Answer: func(context.Context) (string, error) { return "here", nil }}, There, false},
		"no engine":        {Engine{Answer: func(context.Context) (string, error) { return "", away }}, Failed, true},
		"image":            {Image{State: state(ImageFresh)}, There, false},
		"no image":         {Image{State: state(ImageMissing)}, Skipped, true},
		"image not needed": {Image{Needless: "local"}, Skipped, false},
		"model key":        {ModelKey{Present: []string{"OPENAI_API_KEY"}}, There, false},
		"no model key":     {ModelKey{}, Skipped, true},
		"no skills":        {Skills{}, Skipped, false},
		"App":              {GitHubApp{}, There, false},
		"half an App":      {GitHubApp{Missing: []string{"A"}}, Skipped, true},
		"no App":           {GitHubApp{Missing: []string{"A", "B", "C", "D"}}, Skipped, true},
	} {
		if r := outcome(t, tt.step); r.Outcome != tt.outcome || r.Undone != tt.undone {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestSkillsAreBundledOnce(t *testing.T) {
	built := ""
	s := Skills{
		Sources: []string{"skills"},
		Current: func(context.Context) (string, error) {
			if built == "" {
				return "", errs.New("x", errs.NotFound, "", "none")
			}
			return built, nil
		},
		Build: func(context.Context) (string, int, error) { built = "0123456789abcdef"; return built, 1, nil },
	}
	if r := outcome(t, s); r.Outcome != Done || r.Text != "bundled 1 skill, 0123456789ab" {
		t.Errorf("%+v", r)
	}
	if r := outcome(t, s); r.Outcome != There {
		t.Errorf("%+v", r)
	}
}
