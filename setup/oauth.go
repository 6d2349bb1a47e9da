package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// App is one of the OAuth applications of a development machine.
type App struct {
	Label        string // in messages: "Array"
	Name         string // in the store
	ClientID     string // what the gateway knows it by
	Public       bool   // has no client secret
	RedirectURIs []string
}

// ArrayApp is the public client with which a local stack and the desktop sign in.
// tasksOnly is the variant of setup-tasks-oauth: the desktop's addresses alone.
func ArrayApp(tasksOnly bool) App {
	app := App{
		Label: "Array", Name: "Array Dev App", ClientID: "array-dev-app", Public: true,
		RedirectURIs: []string{"http://localhost:8237/callback", "http://localhost:8239/callback"},
	}
	if !tasksOnly {
		app.RedirectURIs = append([]string{"http://localhost:3000/callback", "https://example.com/callback"}, app.RedirectURIs...)
	}
	return app
}

// InsightsAIApp is the application whose tokens agents get.
func InsightsAIApp() App {
	return App{
		Label: "Insights AI", Name: "Insights AI Dev App", ClientID: "insights-ai-dev-app",
		RedirectURIs: []string{"http://localhost:8000/authorize"},
	}
}

// AppStore keeps OAuth applications.
type AppStore interface {
	// App returns the application of that name; the error is of kind
	// [errs.NotFound] if there is none.
	App(ctx context.Context, name string) (App, error)
	// PutApp makes the application or changes its redirect URIs. The client id of one
	// that is there stays.
	PutApp(ctx context.Context, app App) error
}

// Managed reports whether a region's applications are made by its deployment, so
// that nothing is to be set up there.
func Managed(region string) bool {
	return strings.EqualFold(region, "US") || strings.EqualFold(region, "EU")
}

// Region is the name of a CLOUD_DEPLOYMENT in messages: "dev" where there is none.
func Region(cloud string) string {
	if cloud == "" {
		return "dev"
	}
	return cloud
}

// FindApp returns a development application, or the error that tells why its
// tokens cannot be made.
func FindApp(ctx context.Context, store AppStore, app App, region string) (App, error) {
	const op, hint = "setup.FindApp", "insightscli setup-tasks-oauth"
	if Managed(region) {
		return App{}, errs.New(op, errs.Config, "unset CLOUD_DEPLOYMENT on a development machine",
			"%s app not configured for region %s", app.Label, region)
	}
	found, err := store.App(ctx, app.Name)
	if errs.KindOf(err) == errs.NotFound {
		return App{}, errs.New(op, errs.NotFound, hint, "%s app not found for region %s (client_id=%s)", app.Label, Region(region), app.ClientID)
	}
	return found, err
}

// OAuthApps is the step that makes the OAuth applications and mends their redirect
// URIs. It deletes nothing: an address that somebody added stays.
type OAuthApps struct {
	Store  AppStore
	Apps   []App
	Region string // CLOUD_DEPLOYMENT; in US and EU there is nothing to do
}

// Name implements [Step].
func (OAuthApps) Name() string { return "oauth-apps" }

// Check implements [Step].
func (s OAuthApps) Check(ctx context.Context) (Finding, error) {
	if Managed(s.Region) {
		return Finding{State: Needless, Text: fmt.Sprintf("nothing to do in region %s: its deployment makes the applications", s.Region)}, nil
	}
	var todo, odd []string
	for _, want := range s.Apps {
		got, changed, err := s.wanted(ctx, want)
		switch {
		case err != nil:
			return Finding{}, err
		case changed && got.ClientID == "":
			todo = append(todo, want.Name+" is missing")
		case changed:
			todo = append(todo, want.Name+" lacks redirect URIs or is of another kind")
		}
		if got.ClientID != "" && got.ClientID != want.ClientID {
			odd = append(odd, fmt.Sprintf("%s has the client id %s, expected %s", want.Name, got.ClientID, want.ClientID))
		}
	}
	if len(todo) > 0 {
		return Finding{State: Missing, Text: strings.Join(append(todo, odd...), "; ")}, nil
	}
	return Finding{State: Ready, Text: strings.Join(append([]string{s.names()}, odd...), "; ")}, nil
}

// wanted returns the application that is there, and whether it has to be written.
func (s OAuthApps) wanted(ctx context.Context, want App) (App, bool, error) {
	got, err := s.Store.App(ctx, want.Name)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return App{}, true, nil
	}
	if err != nil {
		return App{}, false, err
	}
	lacks := slices.ContainsFunc(want.RedirectURIs, func(uri string) bool { return !slices.Contains(got.RedirectURIs, uri) })
	return got, lacks || got.Public != want.Public, nil
}

// Apply implements [Step].
func (s OAuthApps) Apply(ctx context.Context) (string, error) {
	var done []string
	var all []error
	for _, want := range s.Apps {
		got, changed, err := s.wanted(ctx, want)
		if err != nil || !changed {
			all = append(all, err)
			continue
		}
		app, verb := want, "created"
		if got.ClientID != "" {
			app.ClientID, verb = got.ClientID, "mended"
			app.RedirectURIs = union(got.RedirectURIs, want.RedirectURIs)
		}
		if err := s.Store.PutApp(ctx, app); err != nil {
			all = append(all, err)
			continue
		}
		done = append(done, verb+" "+want.Name)
	}
	return strings.Join(done, ", "), errors.Join(all...)
}

func (s OAuthApps) names() string {
	var names []string
	for _, a := range s.Apps {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// union is a with what of b is not in it, in order.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}
