package reply

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestExtract: what models put around the JSON that they were asked for (case K4).
func TestExtract(t *testing.T) {
	keyed := compile(t, `{"type":"object","required":["items"],"properties":{"items":{"type":"array"}}}`)
	free := compile(t, `{"type":"object"}`)
	list := compile(t, `{"type":"array"}`)
	scalar := compile(t, `{"type":"integer"}`)
	const good = `{"items": [1, 2.50, 9007199254740993]}`
	for name, tt := range map[string]struct {
		s          *Schema
		text, want string
	}{
		"alone":                      {keyed, good, good},
		"space around":               {keyed, " \n" + good + "\t\n", good},
		"BOM":                        {keyed, "\ufeff" + good, good},
		"BOM after space":            {keyed, "\n\ufeff" + good, good},
		"CRLF":                       {keyed, "Here:\r\n```json\r\n" + good + "\r\n```\r\n", good},
		"tagged":                     {keyed, "```json\n" + good + "\n```", good},
		"tagged in capitals":         {keyed, "```JSON\n" + good + "\n```", good},
		"untagged":                   {keyed, "```\n" + good + "\n```", good},
		"tildes":                     {keyed, "~~~json\n" + good + "\n~~~", good},
		"four ticks":                 {keyed, "````json\n" + good + "\n````", good},
		"in one line":                {keyed, "```json " + good + " ```", good},
		"not closed":                 {keyed, "```json\n" + good, good},
		"indented":                   {keyed, "- so:\n   ```json\n   " + good + "\n   ```", good},
		"ticks inside":               {keyed, "```json\n{\"items\":[\"```\"]}\n```", "{\"items\":[\"```\"]}"},
		"prose before and after":     {keyed, "Here it is: " + good + ". Anything else?", good},
		"braces in prose":            {keyed, "The set {1, 2} and {x}: " + good + " as in f() { return }", good},
		"footnotes":                  {keyed, "As said [1], see [it](x): " + good, good},
		"tagged before untagged":     {keyed, "```\n{\"items\":[0]}\n```\n```json\n" + good + "\n```", good},
		"an example before":          {keyed, "```json\n{\"example\":1}\n```\nand\n```json\n" + good + "\n```", good},
		"a fenced other, then prose": {keyed, "```json\n{\"example\":1}\n```\nand " + good, good},
		"two objects":                {keyed, `{"note":1} ` + good, good},
		"two objects, first one":     {keyed, good + ` {"note":1}`, good},
		"two that would do":          {keyed, good + ` {"items":[]}`, good},
		"none that would do":         {keyed, `{"a":1} {"b":2}`, `{"a":1}`},
		"nested in another":          {keyed, `{"result": ` + good + `}`, `{"result": ` + good + `}`},
		"a broken one before":        {keyed, `{"items": [..], } is how; so: ` + good, good},
		"other code":                 {keyed, "```go\nx := map[string]int{\"a\": 1}\n```\n" + good, good},
		"list":                       {list, "The list: [1,2]", "[1,2]"},
		"list among objects":         {list, `[{"a":1}]`, `[{"a":1}]`},
		"scalar":                     {scalar, " 42\n", "42"},
		"scalar in a fence":          {scalar, "```\n42\n```", "42"},
		"no schema":                  {nil, "see [1]", "[1]"},
		"exact":                      {free, `so {"n":1.10, "m":1E+2}`, `{"n":1.10, "m":1E+2}`},
	} {
		got, err := Extract(tt.text, tt.s)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
	}
}

func TestExtractTellsWhatIsWrong(t *testing.T) {
	keyed := compile(t, `{"type":"object","required":["a"]}`)
	free := compile(t, `{"type":"object"}`)
	for name, tt := range map[string]struct {
		s      *Schema
		text   string
		reason Reason
		words  string
	}{
		"nothing":           {keyed, "", ReasonEmpty, "empty"},
		"space":             {keyed, " \r\n\t\ufeff ", ReasonEmpty, "empty"},
		"prose":             {keyed, "I could not find anything.", ReasonProse, "no JSON"},
		"trailing comma":    {free, `{"a":{"b":1},}`, ReasonProse, "no JSON"}, // and not {"b":1}
		"fenced and broken": {free, "```json\n{\"a\":{\"b\":1},\n}\n```", ReasonFenced, "line 2, column 1"},
		"cut off":           {keyed, `{"a":[{"a":1},{"a":2}`, ReasonProse, "no JSON"},
		"quotes":            {free, `{'a':1}`, ReasonProse, "no JSON"},
		"an empty fence":    {free, "```json\n```", ReasonFenced, "code block"},
	} {
		got, err := Extract(tt.text, tt.s)
		var e *ExtractError
		if !errors.As(err, &e) || e.Reason != tt.reason || !strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s, %v; want %s, %q", name, got, err, tt.reason, tt.words)
		}
	}
}

func TestExtractIsNotQuadratic(t *testing.T) {
	s := compile(t, `{"type":"object","required":["a"]}`)
	for _, piece := range []string{
		`{`, `[`, `{"`, `{"a":`, `[[`, `{"a":1} `, `{"a":1,} `, "```\n", "```json\n{\n", `{"b":[`, "`", `"`, "{\\", `{}`, "``` ```\n", "````\n```\n",
	} {
		text := strings.Repeat(piece, 2<<20/len(piece))
		soon(t, 20*time.Second, func() { _, _ = Extract(text, s) })
		soon(t, 20*time.Second, func() { _, _ = Extract(text, nil) })
	}
	if _, err := Extract(strings.Repeat("x", maxText+1), s); err == nil {
		t.Error("a text without bounds was looked through")
	}
}
