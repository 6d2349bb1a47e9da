package image

import (
	"crypto/sha256"
	_ "embed" // the Dockerfiles
	"encoding/hex"
	"errors"
	"regexp"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Template names a kind of sandbox. Its image is built on the user's machine.
type Template string

// The templates of the specification.
const (
	DefaultBase  Template = "DEFAULT_BASE"
	NotebookBase Template = "NOTEBOOK_BASE"
	VMBase       Template = "VM_BASE"
)

// Labels of the images that this package builds.
const (
	LabelTemplate   = "insightscli.template"
	LabelDockerfile = "insightscli.dockerfile" // sha256 of the Dockerfile it was built from
)

// Sentinels that callers branch on: both mean that building the image helps.
var (
	// ErrMissing is wrapped when the engine has no image of that name.
	ErrMissing = errors.New("no such image")
	// ErrStale is wrapped when the image was built from another Dockerfile.
	ErrStale = errors.New("the image is out of date")
)

//go:embed default_base/Dockerfile
var defaultBase string

// Templates returns all templates in the order of the documentation.
func Templates() []Template { return []Template{DefaultBase, NotebookBase, VMBase} }

// Parse finds a template by name; case does not matter and "" is [DefaultBase].
func Parse(name string) (Template, error) {
	if name == "" {
		return DefaultBase, nil
	}
	for _, t := range Templates() {
		if strings.EqualFold(name, string(t)) {
			return t, nil
		}
	}
	return "", errs.New("image.Parse", errs.Usage, "use one of default_base, notebook_base, vm_base",
		"unknown template %q", name)
}

// ForTag finds the template whose image has the given reference.
func ForTag(ref string) (Template, bool) {
	ref = strings.TrimSuffix(ref, ":latest")
	for _, t := range Templates() {
		if t.Tag() == ref {
			return t, true
		}
	}
	return "", false
}

// Tag returns the reference of the template's image on the local engine.
func (t Template) Tag() string {
	switch t {
	case NotebookBase:
		return "insights-sandbox-notebook"
	case VMBase:
		return "insights-sandbox-vm"
	default:
		return "insights-sandbox-base"
	}
}

// Dockerfile returns the embedded Dockerfile, or "" for a template whose image
// this build cannot make.
func (t Template) Dockerfile() string {
	if t == DefaultBase {
		return defaultBase
	}
	return ""
}

// Hash returns the sha256 of the Dockerfile in hex, the value of [LabelDockerfile].
func (t Template) Hash() string {
	sum := sha256.Sum256([]byte(t.Dockerfile()))
	return hex.EncodeToString(sum[:])
}

// Command returns the command that builds the template's image, for hints.
func (t Template) Command() string {
	return "insightscli image build " + strings.ToLower(string(t))
}

// Stale reports whether the image of ref, with the given labels, is one of ours
// that was built from another Dockerfile than this build has. Images of others are
// never stale.
func Stale(ref string, labels map[string]string) bool {
	t, ok := ForTag(ref)
	return ok && t.Dockerfile() != "" && labels[LabelDockerfile] != t.Hash()
}

// packages returns the package list of a Dockerfile: the words of its line
// ARG PACKAGES="...".
func packages(dockerfile string) []string {
	m := regexp.MustCompile(`(?m)^ARG PACKAGES="([^"]*)"`).FindStringSubmatch(dockerfile)
	if m == nil {
		return nil
	}
	return strings.Fields(m[1])
}
