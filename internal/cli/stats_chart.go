package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/Insights/insightscli/internal/stats"
)

const (
	// minBar is the least room that is worth a bar, maxBar the most that one gets.
	minBar = 8
	maxBar = 40
)

// statsChart prints the table in fewer columns, with a bar at the end of each line: how
// many runs there were. A terminal without the room gets none.
func statsChart(out io.Writer, rep stats.Report, width int, dumb bool) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tRUNS\tOK\tMEDIAN\tP90\tTOKENS\tCOST\n", strings.ToUpper(string(rep.By)))
	for _, g := range append(slices.Clone(rep.Groups), rep.Total) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", cell(g.Name, max(10, width/4)), g.Runs, successText(g),
			tookText(g.Median), tookText(g.P90), thousands(g.Used.Total), costText(g))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	widest := 0
	for _, l := range lines {
		widest = max(widest, len([]rune(l)))
	}
	room := min(maxBar, width-widest-3)
	most := 0
	for _, g := range rep.Groups {
		most = max(most, g.Runs)
	}
	for i, l := range lines {
		// The first line is the head, the last the sum.
		if i > 0 && i <= len(rep.Groups) && room >= minBar {
			l += strings.Repeat(" ", widest-len([]rune(l))+2) + bar(rep.Groups[i-1].Runs, most, room, dumb)
		} else if room < minBar {
			l = clipped(l, width)
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	return nil
}

// clipped leaves out what would wrap.
func clipped(l string, width int) string {
	if runes := []rune(l); width > 0 && len(runes) > width {
		return string(runes[:width])
	}
	return l
}

// bar draws n of most in so many columns, to an eighth of one; what is there is seen.
func bar(n, most, width int, dumb bool) string {
	if n == 0 || most == 0 {
		return ""
	}
	eighths := max(1, n*width*8/most)
	if dumb {
		return strings.Repeat("#", max(1, eighths/8))
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
