package ghapp_test

import (
	"context"
	"fmt"

	"github.com/Insights/insightscli/ghapp"
)

// A session: open the page, wait for the click, store what came, and only then let go
// of the copy that was kept.
func ExampleStart() {
	create := func(ctx context.Context, store func(ghapp.Result) error) error {
		s, err := ghapp.Start(ctx, ghapp.Options{Org: "acme", Who: "ada", Keep: "github-app.json"})
		if err != nil {
			return err
		}
		defer s.Close()
		r, err := s.Wait(ctx)
		if err != nil {
			return err
		}
		if err := store(r); err != nil {
			return err
		}
		return s.Confirm()
	}
	_ = create
}

func ExampleParseRedirect() {
	code, state, err := ghapp.ParseRedirect("http://localhost:47013/callback?code=a180b1a3d263&state=xyz")
	fmt.Println(code, state, err)
	// Output: a180b1a3d263 xyz <nil>
}
