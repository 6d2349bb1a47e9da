package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Engine is the step that sees whether sandboxes can be made. It starts nothing.
type Engine struct {
	// Answer asks the provider and says in one line what answered.
	Answer func(ctx context.Context) (string, error)
}

// Name implements [Step].
func (Engine) Name() string { return "engine" }

// Check implements [Step].
func (s Engine) Check(ctx context.Context) (Finding, error) {
	text, err := s.Answer(ctx)
	if err != nil {
		return Finding{}, err
	}
	return Finding{State: Ready, Text: text}, nil
}

// Apply implements [Step]; there is never anything to do.
func (Engine) Apply(context.Context) (string, error) { return "", nil }

// ImageState is what became of the image that sandboxes start from.
type ImageState string

// The states of an image.
const (
	ImageFresh   ImageState = "fresh"
	ImageStale   ImageState = "stale"   // of another Dockerfile than this program has
	ImageMissing ImageState = "missing" // not on the engine
)

// Image is the step that builds the base image, after a question: it takes minutes.
type Image struct {
	Tag     string
	Command string // builds it by hand
	// Needless says why no image is used here; "" is that one is.
	Needless string
	State    func(ctx context.Context) (ImageState, error)
	Build    func(ctx context.Context) error
}

// Name implements [Step].
func (Image) Name() string { return "image" }

// Check implements [Step].
func (s Image) Check(ctx context.Context) (Finding, error) {
	if s.Needless != "" {
		return Finding{State: Needless, Text: s.Needless}, nil
	}
	state, err := s.State(ctx)
	if err != nil {
		return Finding{}, err
	}
	f := Finding{State: Missing, Text: s.Tag + " is " + string(state), Hint: s.Command, Ask: "build the image " + s.Tag + " now? It takes some minutes"}
	if state == ImageFresh {
		f.State = Ready
	}
	return f, nil
}

// Apply implements [Step].
func (s Image) Apply(ctx context.Context) (string, error) {
	return "built " + s.Tag, s.Build(ctx)
}

// Skills is the step that bundles what agents are taught.
type Skills struct {
	// Sources are the folders that the settings name; none is nothing to do.
	Sources []string
	// Current returns the hash of the last bundle; the error is of kind
	// [errs.NotFound] if there is none.
	Current func(ctx context.Context) (string, error)
	// Build makes the bundle, unless it is the last one already, and returns its hash
	// and the number of skills in it.
	Build func(ctx context.Context) (hash string, n int, err error)
}

// Name implements [Step].
func (Skills) Name() string { return "skills" }

// Check implements [Step]. Whether a bundle is up to date only a build tells, and
// that is cheap.
func (s Skills) Check(ctx context.Context) (Finding, error) {
	if len(s.Sources) == 0 {
		return Finding{State: Needless, Text: "no skills are configured (INSIGHTSCLI_SKILLS)"}, nil
	}
	_, err := s.Current(ctx)
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return Finding{State: Missing, Text: "not built yet", Hint: "insightscli skills build"}, nil
	case err != nil:
		return Finding{}, err
	}
	return Finding{State: Ready, Text: "there is a bundle; every run brings it up to date"}, nil
}

// Apply implements [Step].
func (s Skills) Apply(ctx context.Context) (string, error) {
	hash, n, err := s.Build(ctx)
	if err != nil {
		return "", err
	}
	if n == 1 {
		return "bundled 1 skill, " + short(hash), nil
	}
	return fmt.Sprintf("bundled %d skills, %s", n, short(hash)), nil
}

// ModelKey is the step that sees whether agents can reach a model. No program can
// make a key.
type ModelKey struct {
	Present []string // the names of the keys that are set
	EnvFile string   // where one belongs
}

// Name implements [Step].
func (ModelKey) Name() string { return "model-key" }

// Check implements [Step].
func (s ModelKey) Check(context.Context) (Finding, error) {
	if len(s.Present) > 0 {
		return Finding{State: Ready, Text: strings.Join(s.Present, ", ")}, nil
	}
	return Finding{
		State: Manual, Text: "neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set",
		Hint: "add ANTHROPIC_API_KEY=... to " + s.EnvFile,
	}, nil
}

// Apply implements [Step]; there is never anything to do.
func (ModelKey) Apply(context.Context) (string, error) { return "", nil }

// GitHubApp is the step that sees whether there is a GitHub App, and makes one after
// a question.
type GitHubApp struct {
	Missing []string // the names of the values that are not set
	// Create makes an application and says what it did; nil cannot.
	Create func(ctx context.Context) (string, error)
}

// Name implements [Step].
func (GitHubApp) Name() string { return "github-app" }

// Check implements [Step].
func (s GitHubApp) Check(context.Context) (Finding, error) {
	const hint = "insightscli create-github-app"
	switch {
	case len(s.Missing) == 0:
		return Finding{State: Ready, Text: "its four values are set"}, nil
	case len(s.Missing) < 4:
		// Another App would leave the first one orphaned.
		return Finding{
			State: Manual, Text: "missing: " + strings.Join(s.Missing, ", "),
			Hint: "copy them from the settings of the App, or make another with " + hint + " --force",
		}, nil
	}
	f := Finding{
		State: Missing, Text: "there is no GitHub App", Hint: hint, Person: true,
		Ask: "create a GitHub App now? It opens GitHub in your browser",
	}
	if s.Create == nil {
		f.State = Manual
	}
	return f, nil
}

// Apply implements [Step].
func (s GitHubApp) Apply(ctx context.Context) (string, error) { return s.Create(ctx) }
