package steps

import (
	"context"
	"errors"

	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/task"
)

// ImageIn asks for the image of a template.
type ImageIn struct {
	Spec task.Spec `json:"spec"`
}

// ImageOut is empty: the image is there.
type ImageOut struct{}

// NeedsImage reports whether a Provision failed only because its image has to be
// built, and this build knows how.
func NeedsImage(err error, ref string) bool {
	_, known := image.ForTag(ref)
	return known && (errors.Is(err, image.ErrMissing) || errors.Is(err, image.ErrStale))
}

// Image builds the image of a template. progress gets a line at a time.
func (s *Steps) Image(ctx context.Context, in ImageIn, progress func(string)) (ImageOut, error) {
	t, ok := image.ForTag(in.Spec.Image)
	if !ok {
		return ImageOut{}, image.ErrMissing
	}
	return ImageOut{}, s.EnsureImage(ctx, in.Spec, t, progress)
}
