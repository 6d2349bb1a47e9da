package setup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/setup"
)

// A step looks first; carried out a second time it finds nothing to do.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "setup")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	steps := []setup.Step{setup.Env{
		Path: filepath.Join(dir, ".env"), Example: filepath.Join(dir, ".env.example"), Provider: "docker",
		Given: func(string) bool { return false }, Today: time.Now(),
	}}
	for range 2 {
		results, err := setup.Run(context.Background(), steps, setup.Options{})
		if err != nil {
			panic(err)
		}
		for _, r := range results {
			fmt.Println(r.Step, "is", r.Outcome)
		}
	}
	// Output:
	// env is done
	// env is already there
}
