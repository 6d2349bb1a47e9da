package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

func TestStrictSchema(t *testing.T) {
	const item = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	deep := strings.Repeat(`{"type":"array","items":`, 12) + `{"type":"string"}` + strings.Repeat("}", 12)
	for schema, want := range map[string]string{
		item:                         item,
		`{"$schema":"x",` + item[1:]: item,
		`{"type":"object","properties":{"n":{"type":["integer","null"],"maximum":12345678901234567890}},"required":["n"],"additionalProperties":false}`:               "same",
		`{"type":"object","properties":{"l":{"type":"array","items":{"$ref":"#/$defs/i"}}},"required":["l"],"additionalProperties":false,"$defs":{"i":` + item + `}}`: "same",
		`{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},` + item + `]}},"required":["u"],"additionalProperties":false}`:                               "same",

		``: "", `true`: "", `[]`: "", `null`: "", `{}`: "",
		`{"type":"string"}`: "",
		`{"type":"object"}`: "",
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                             "",
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                   "",
		`{"type":"object","properties":{"a":{},"b":{}},"required":["a","a"],"additionalProperties":false}`:                    "",
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                               "",
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                             "",
		`{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`:                 "",
		`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}`:                     "",
		`{"type":"object","properties":{"a":{"enum":["x"]}},"required":["a"],"additionalProperties":false}`:                   "",
		`{"type":"object","properties":{"a":{"$ref":"#","title":"x"}},"required":["a"],"additionalProperties":false}`:         "",
		`{"type":"object","properties":{"a":{"$ref":"http://x"}},"required":["a"],"additionalProperties":false}`:              "",
		`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`: "",
		`{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`:                     "",
	} {
		got, ok := strictSchema(json.RawMessage(schema))
		if ok != (want != "") {
			t.Errorf("%s: %v", schema, ok)
			continue
		}
		if want == "same" {
			want = schema
		}
		var a, b map[string]json.RawMessage
		if ok && (json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || len(a) != len(b) || string(a["properties"]) != string(b["properties"])) {
			t.Errorf("%s became %s", schema, got)
		}
	}
}

func TestReads(t *testing.T) {
	for command, want := range map[string]bool{
		`/bin/bash -c ls`: true, `/bin/bash -c 'ls -la a/b'`: true, `/bin/sh -lc 'cat a.txt'`: true, `/bin/bash -c 'grep -n x *.go'`: true,
		`/bin/bash -c 'find . -delete'`: false, `/bin/bash -c 'cat a > b'`: false, `/bin/bash -c 'ls | tee f'`: false,
		`/bin/bash -c 'cat $(touch x)'`: false, `/bin/bash -c 'cat a; rm b'`: false, "/bin/bash -c 'cat a\nrm b'": false,
		`/bin/bash -c 'sed -i s/a/b/ x'`: false, `/bin/bash -c rm`: false, `ls`: false, ``: false, `/bin/bash -c ''`: false,
		`/bin/bash -c 'rg --pre x y'`: false, `/bin/bash -c 'X=1 rm y'`: false, `/bin/bash -c 'ls' rm`: false, "/bin/bash -c 'ls'\n": false,
	} {
		if got := reads(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestScript(t *testing.T) {
	for command, want := range map[string]string{
		`/bin/bash -c 'echo a b'`: "echo a b", `/bin/bash -lc ls`: "ls", `python3 x.py`: "python3 x.py",
		`/bin/bash -c 'echo '\''a'\'''`: `'echo '\''a'\'''`, `git log -c x y`: "git log -c x y",
	} {
		if got := script(command); got != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

// Pieces are told once, whatever Codex says twice.
func TestSpeech(t *testing.T) {
	type step struct{ what, item, text, want string }
	for name, steps := range map[string][]step{
		"pieces":        {{"begin", "1", "", ""}, {"add", "1", "a ", "a "}, {"add", "1", "b", "b"}, {"end", "1", "a b", ""}},
		"whole":         {{"begin", "1", "", ""}, {"end", "1", "a b", "a b"}},
		"without begin": {{"end", "1", "a b", "a b"}},
		"two": {
			{"begin", "1", "", ""},
			{"add", "1", "a", "a"},
			{"end", "1", "a", ""},
			{"begin", "2", "", ""},
			{"add", "2", "b", "\n\nb"},
			{"end", "2", "bc", "c"},
		},
		"two with a tool between": {{"end", "1", "a", "a"}, {"interrupt", "", "", ""}, {"end", "2", "b", "b"}},
		"again": {
			{"begin", "1", "", ""},
			{"add", "1", "a ", "a "},
			{"add", "1", "b ", "b "},
			{"begin", "1", "", ""},
			{"add", "1", "a ", ""},
			{"add", "1", "b c", "c"},
			{"add", "1", "d", "d"},
			{"end", "1", "a b cd", ""},
		},
		"again, only at the end": {{"begin", "1", "", ""}, {"add", "1", "a ", "a "}, {"begin", "2", "", ""}, {"end", "2", "a b", "b"}},
		"in other words": {
			{"begin", "1", "", ""}, {"add", "1", "a ", "a "}, {"begin", "2", "", ""}, {"add", "2", "x", "\n\nx"}, {"add", "2", "y", "y"}, {"end", "2", "xy", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s speech
			for i, st := range steps {
				got := ""
				switch st.what {
				case "begin":
					s.begin(st.item)
				case "add":
					got = s.add(st.item, st.text)
				case "end":
					got = s.end(st.item, st.text)
				case "interrupt":
					s.interrupt()
				}
				if got != st.want {
					t.Errorf("step %d: %q, want %q", i, got, st.want)
				}
			}
		})
	}
}

func TestNoSecretIsAnArgument(t *testing.T) {
	args, err := arguments(wire.Start{MCP: []wire.MCPServer{{Name: "in", URL: `http://h/"x`}}}, []string{
		"OPENAI_BASE_URL=http://gw/v1", "OPENAI_API_KEY=secret-1", "INSIGHTS_PERSONAL_API_KEY=secret-2",
	})
	if err != nil || strings.Contains(strings.Join(args, " "), "secret-") {
		t.Errorf("%q, %v", args, err)
	}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, `mcp_servers.in={url="http://h/\"x",`) }) {
		t.Errorf("%q", args)
	}
}

func TestServerError(t *testing.T) {
	const long = "MCP client for `bad` failed to start: handshaking failed: Send message error Transport [a<b>] error: unexpected server response: HTTP 500: , when send initialize request: Send message error Transport [a<b>] error: unexpected server response: HTTP 500: , when send initialize request"
	if got := serverError(long); got != "unexpected server response: HTTP 500" {
		t.Errorf("%q", got)
	}
	if got := serverError(""); got != "it did not start" {
		t.Errorf("%q", got)
	}
}

func TestTurnErrors(t *testing.T) {
	for info, want := range map[string]struct {
		status  int
		refuses bool
	}{
		`"cyberPolicy"`: {0, true}, `"other"`: {0, false}, `null`: {0, false}, ``: {0, false},
		`{"httpConnectionFailed":{"httpStatusCode":401}}`:        {401, false},
		`{"responseStreamDisconnected":{"httpStatusCode":null}}`: {0, false},
		`{"activeTurnNotSteerable":{"turnKind":"review"}}`:       {0, false},
	} {
		e := turnError{Info: json.RawMessage(info)}
		if e.status() != want.status || e.refuses() != want.refuses {
			t.Errorf("%s: %d, %v", info, e.status(), e.refuses())
		}
	}
}

// Nothing that an agent says is too large for the journal, or cut within a character.
func TestBounds(t *testing.T) {
	long := strings.Repeat("é", maxText)
	if got := clip(long, 101); got != strings.Repeat("é", 50) {
		t.Errorf("%d bytes", len(got))
	}
	if got := content(long)[0].Content.Text; len(got) > maxText+10 || !strings.Contains(got, "\n…\n") {
		t.Errorf("%d bytes", len(got))
	}
	if got := bounded(raw(long + long)); len(got) > 100 {
		t.Errorf("%d bytes", len(got))
	}
	if got := title(long); len(got) > 310 {
		t.Errorf("%d bytes", len(got))
	}
}
