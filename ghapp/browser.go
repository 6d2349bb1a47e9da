package ghapp

import (
	"io"

	"github.com/pkg/browser"

	"github.com/Insights/insightscli/internal/errs"
)

// OpenBrowser opens a page in the user's browser. It returns when the command that
// does so ends, which for some browsers is when they are closed. What it prints is
// dropped: it would stand in the middle of our own output.
func OpenBrowser(address string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	if err := browser.OpenURL(address); err != nil {
		return errs.New("ghapp.OpenBrowser", errs.Unavailable, "open "+address+" yourself", "open a browser: %w", err)
	}
	return nil
}
