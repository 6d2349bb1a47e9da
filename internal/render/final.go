package render

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Final says in a few lines how a run ended: the same on every screen.
func Final(r task.Result) []string {
	lines := []string{fmt.Sprintf("%s in %s, run %s", ending(r), Took(r.Finished.Sub(r.Started)), r.Run.Short())}
	for _, repo := range r.Repos {
		lines = append(lines, changes(repo, r.Run))
	}
	for _, p := range r.Published {
		lines = append(lines, "published: "+Published(p))
	}
	if len(r.Denied) > 0 {
		lines = append(lines, Denied(r.Denied)+": insightscli env denied "+r.Run.Short())
	}
	if r.Usage != nil {
		lines = append(lines, "models: "+Tokens(*r.Usage))
	}
	if r.Cleanup != "" {
		lines = append(lines, "left behind: "+r.Cleanup)
	}
	if r.Sandbox != "" && r.Cleanup == "" {
		lines = append(lines, fmt.Sprintf("sandbox kept: insightscli exec %s -- sh", r.Run.Short()))
	}
	return lines
}

// Place is where a connection that was refused should have gone.
func Place(d task.Denied) string {
	if d.Port == 0 {
		return d.Host
	}
	return net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
}

// Denied says in a line what the network policy refused.
func Denied(all []task.Denied) string {
	sum := 0
	var places []string
	for _, d := range all {
		sum += d.Count
		if p := Place(d); !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	text := strings.Join(places[:min(3, len(places))], ", ")
	if n := len(places) - 3; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s refused by the network policy (%s)", count(int64(sum), "connection"), text)
}

// Published says in a line what was published.
func Published(p task.Published) string {
	if p.Pull > 0 {
		return fmt.Sprintf("%s/%s pull request #%d of %s: %s", p.Org, p.Name, p.Pull, p.Branch, p.URL)
	}
	return fmt.Sprintf("%s/%s %s at %s: %s", p.Org, p.Name, p.Branch, p.SHA[:min(12, len(p.SHA))], p.URL)
}

// Tokens says in a few words what was used of models.
func Tokens(u task.Tokens) string {
	text := fmt.Sprintf("%s, %d tokens in, %d out", count(u.Requests, "request"), u.Input+u.CacheRead+u.CacheWrite, u.Output)
	switch {
	case u.Unpriced == u.Requests:
		text += ", of unknown price"
	case u.Unpriced > 0:
		text += fmt.Sprintf(", $%.4f and %s of unknown price", u.CostUSD, count(u.Unpriced, "request"))
	default:
		text += fmt.Sprintf(", $%.4f", u.CostUSD)
	}
	return text
}

// ending is how the run ended. What went wrong outside the task is not told here:
// the process prints it as its error.
func ending(r task.Result) string {
	switch {
	case r.IdleEnd:
		return "completed for lack of activity"
	case r.State == task.StateCompleted:
		return "completed"
	case r.State == task.StateCancelled:
		return "cancelled"
	case r.WallClockEnd:
		return "ended by its time limit"
	case r.Kind == string(errs.TaskFailed) && r.Error != "":
		return "task failed (" + r.Error + ")"
	}
	return "failed"
}

func changes(r task.RepoResult, run task.ID) string {
	name := r.Org + "/" + r.Name
	switch {
	case r.Error != "":
		return fmt.Sprintf("%s: changes could not be taken out: %s", name, r.Error)
	case r.Files == 0:
		return name + ": no changes"
	case r.Files == 1:
		return fmt.Sprintf("%s: 1 file changed, +%d -%d: insightscli diff %s", name, r.Insertions, r.Deletions, run.Short())
	}
	return fmt.Sprintf("%s: %d files changed, +%d -%d: insightscli diff %s", name, r.Files, r.Insertions, r.Deletions, run.Short())
}

// Took is a length of time as people say it.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// count is a number of things as people say it.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
