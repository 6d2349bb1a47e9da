package egress

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/task"
)

// teller keeps what was told.
type teller struct {
	mu  sync.Mutex
	all []task.Denied
}

func (l *teller) tell(d task.Denied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *teller) take() []task.Denied {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.all
	l.all = nil
	return out
}

// The first denial of a place is told at once, and those that follow once a second, with
// their number.
func TestDenialsAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l teller
		d := newDenials(l.tell)
		evil := task.Denied{Host: "evil.test", Port: 443, Reason: "no", Rule: "evil.test"}
		count := func(want ...int) {
			t.Helper()
			synctest.Wait()
			got := l.take()
			if len(got) != len(want) {
				t.Fatalf("told %+v, want %v", got, want)
			}
			for i, n := range want {
				if w := evil; got[i].Count != n || got[i].Host != w.Host || got[i].Rule != w.Rule {
					t.Errorf("told %+v, want %d", got[i], n)
				}
			}
		}
		d.add(evil)
		count(1)
		for range 500 {
			d.add(evil)
		}
		count()
		time.Sleep(quiet) // of a bubble: it takes no time
		count(500)
		time.Sleep(10 * quiet)
		count()
		d.add(evil)
		count(1)
		d.add(evil)
		other := evil
		other.Port = 80
		d.add(other)
		count(1)
		d.close()
		count(1)
		d.add(evil)
	})
}

// There is a bound on the places that are told apart.
func TestDenialsOfManyPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l teller
		d := newDenials(l.tell)
		for i := range maxPlaces + 5000 {
			d.add(task.Denied{Host: fmt.Sprintf("h%d.test", i), Reason: "no"})
		}
		d.close()
		all := l.take()
		n := 0
		for _, told := range all {
			n += told.Count
		}
		if len(all) > maxPlaces+3 || n != maxPlaces+5000 {
			t.Errorf("%d events for %d denials", len(all), n)
		}
	})
}

// A line that was cut off, as by the end of a process, does not take the next with it.
func TestAuditFileGoesOnBehindATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, torn := range []string{`{"time":"2026-`, "", `{"a":1}` + "\n"} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		a, err := OpenAudit(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(Record{Run: "run", Name: "h.test", Verdict: "deny"})
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole int
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, line := range lines {
		var r Record
		if json.Unmarshal([]byte(line), &r) == nil && r.Name == "h.test" {
			whole++
		}
	}
	if whole != 3 || len(lines) != 5 {
		t.Errorf("%d of 3 records in\n%s", whole, b)
	}
}

func TestAuditFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 { // it goes on where it ended
		a, err := OpenAudit(path, 4<<10)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { a.Add(Record{Run: "run", Name: fmt.Sprintf("h%d.test", i), Port: 443, Verdict: "deny"}) })
		}
		all.Wait()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i, line := range lines {
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if full := r.Verdict == "full"; full != (i == len(lines)-1) {
			t.Errorf("line %d of %d: %s", i+1, len(lines), line)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm()&0o077 != 0 || info.Size() > 5<<10 {
		t.Errorf("%v, %d bytes", info.Mode(), info.Size())
	}
	if _, err := OpenAudit(filepath.Join(t.TempDir(), "none", "x"), 0); err == nil {
		t.Error("a file in no directory opens")
	}
}

func TestCheck(t *testing.T) {
	set, err := rule.Compile([]string{"good.test", "*.wild.test", "port.test:8443", "GET http://req.test/pub/*"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]Decision{
		"https://good.test/x":              {Host: "good.test", Port: 443, Allowed: true, Rule: "good.test"},
		"good.test":                        {Host: "good.test", Port: 443, Allowed: true, Rule: "good.test"},
		"http://GOOD.test":                 {Host: "good.test", Port: 80, Allowed: true, Rule: "good.test"},
		"git@good.test:org/repo.git":       {Host: "good.test", Port: 22, Allowed: true, Rule: "good.test"},
		"ssh://git@a.wild.test/x":          {Host: "a.wild.test", Port: 22, Allowed: true, Rule: "*.wild.test"},
		"port.test:8443":                   {Host: "port.test", Port: 8443, Allowed: true, Rule: "port.test:8443"},
		"http://req.test/pub/a":            {Host: "req.test", Port: 80, Allowed: true, Rule: "GET http://req.test/pub/*"},
		"POST http://req.test/pub/a":       {Host: "req.test", Port: 80, Reason: "no rule", Suggest: "req.test"},
		"http://req.test/private":          {Host: "req.test", Port: 80, Reason: "no rule", Suggest: "req.test"},
		"https://evil.test":                {Host: "evil.test", Port: 443, Reason: "no rule", Suggest: "evil.test"},
		"https://bücher.test":              {Host: "xn--bcher-kva.test", Port: 443, Reason: "no rule", Suggest: "xn--bcher-kva.test"},
		"https://good.test:8443":           {Host: "good.test", Port: 8443, Reason: "no rule", Suggest: "good.test:8443"},
		"https://93.184.216.1":             {Host: "93.184.216.1", Port: 443, Reason: "an address is none"},
		"https://[::1]":                    {Host: "::1", Port: 443, Reason: "an address is none"},
		"http://169.254.169.254/":          {Host: "169.254.169.254", Port: 80, Reason: "an address is none"},
		"http://2130706433/":               {Host: "2130706433", Port: 80, Reason: "an address"},
		"https://good.test.":               {Host: "good.test.", Port: 443, Reason: "a dot at its end"},
		"http://localhost:8000":            {Host: "localhost", Port: 8000, Reason: "machine itself"},
		"http://host.docker.internal:8888": {Host: "host.docker.internal", Port: 8888, Reason: "machine itself"},
		"":                                 {Reason: "not a URL"},
		"https://%zz":                      {Reason: "not a URL"},
		"gopher://good.test":               {Host: "good.test", Reason: "no port"},
		"https://good.test:99999":          {Host: "good.test", Reason: "port"},
	} {
		got := Check(set, address)
		if !strings.Contains(got.Reason, want.Reason) || want.Reason == "" && got.Reason != "" {
			t.Errorf("%q: the reason %q", address, got.Reason)
		}
		want.Reason = got.Reason
		if got != want {
			t.Errorf("%q: %+v, want %+v", address, got, want)
		}
	}
	public, _ := rule.Compile([]string{rule.All})
	if d := Check(public, "https://93.184.216.1"); !d.Allowed {
		t.Errorf("%+v", d)
	}
	if d := Check(public, "http://169.254.169.254/"); d.Allowed {
		t.Errorf("%+v", d)
	}
}
