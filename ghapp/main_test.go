package ghapp

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/test/fakegithub"
)

// TestMain fails when a goroutine of a session is left at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftovers(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leftovers waits for the goroutines that a session started, and returns those that
// stay.
func leftovers() string {
	var left []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
		buf := make([]byte, 1<<20)
		left = nil
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "/ghapp.") && !strings.Contains(g, "ghapp.TestMain") {
				left = append(left, g)
			}
		}
		if left == nil {
			return ""
		}
	}
	return strings.Join(left, "\n\n")
}

// outcome is what a session gave: to its caller, and in the browser.
type outcome struct {
	result Result
	err    error
	page   fakegithub.Page
}

// create lets a person create an app at a fake.
func create(t *testing.T, gh *fakegithub.Server, o Options) outcome {
	t.Helper()
	pages := make(chan fakegithub.Page, 1)
	o.BaseURL = gh.URL
	o.Open = func(address string) error {
		page, err := fakegithub.Click(t.Context(), address)
		pages <- page
		return err
	}
	if o.Notify == nil {
		o.Notify = func(err error) { t.Errorf("notice: %v", err) }
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Wait(t.Context())
	return outcome{r, err, <-pages}
}
