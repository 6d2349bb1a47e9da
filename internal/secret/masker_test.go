package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const pem = "-----BEGIN TEST KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEFAASC\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldY\nxyz\n-----END TEST KEY-----\n"

func TestMaskerMasks(t *testing.T) {
	const value = `p4ss"w\rd<é>/+`
	m := NewMasker(value, pem, "canary-0123456789")
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := map[string]struct{ in, want string }{
		"value":                  {"x " + value + " y", "x [hidden] y"},
		"value twice":            {value + value, "[hidden][hidden]"},
		"nothing":                {"plain text\n", "plain text\n"},
		"empty":                  {"", ""},
		"json of a value":        {`{"k":` + string(quoted) + `}`, `{"k":"[hidden]"}`},
		"ascii json of a value":  {`"p4ss\"w\\rd<\u00e9>/+"`, `"[hidden]"`},
		"url of a value":         {"https://u:p4ss%22w%5Crd%3C%C3%A9%3E%2F%2B@h/", "https://u:[hidden]@h/"},
		"whole pem":              {"[" + pem + "]", "[[hidden]]"},
		"a line of a pem":        {"a QUJDREVGR0hJSktMTU5PUFFSU1RVVldY b", "a [hidden] b"},
		"base64":                 {b64("canary-0123456789"), "[hidden]"},
		"base64 with a line end": {b64("canary-0123456789\n"), "[hidden]K"},
		"base64 within":          {b64("ab:canary-0123456789"), "YWI6[hidden]"},
		"base64 behind one":      {b64("acanary-0123456789"), "YW[hidden]"},
		"base64 behind two":      {b64("abcanary-0123456789-"), "YWJ[hidden]S0="},
		"base64 of a pem": {
			base64.URLEncoding.EncodeToString([]byte(pem)), "[hidden]",
		},
		"a wrapped line of base64 of a pem": {b64(pem)[76:152] + "\n", "[hidden]\n"},
		"overlapping":                       {"canary-canary-0123456789", "canary-[hidden]"},
		"token":                             {"t=ghp_0123456789abcdefXYZ.", "t=[hidden]."},
		"every token":                       {"gho_0123456789abcdef ghu_0123456789abcdef ghr_0123456789abcdef ghs_0123456789abcdef", "[hidden] [hidden] [hidden] [hidden]"},
		"long tokens":                       {"github_pat_11AAAA_0123456789abc phx_0123456789abcdef sk-ant-api03-0123456789abcdef sk-ant-oat01-0123456789abcdef", "[hidden] [hidden] [hidden] [hidden]"},
		"short token":                       {"ghp_012345", "ghp_012345"},
		"token and value":                   {"ghp_0123456789abcdef-canary-0123456789", "[hidden]"},
		"value across the end of a token":   {"ghp_0123456789abcdef_p4ss\"w\\rd<é>/+!", "[hidden]!"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := m.MaskString(tt.in); got != tt.want {
				t.Errorf("MaskString(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestEveryLineOfWrappedBase64IsMasked: base64(1) wraps at 76 columns, and echo adds a
// line end to what it encodes.
func TestEveryLineOfWrappedBase64IsMasked(t *testing.T) {
	key := pem + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n", 5)
	m := NewMasker(key)
	for _, width := range []int{64, 76} {
		for _, value := range []string{key, strings.TrimSpace(key), key + "\n"} {
			text := base64.StdEncoding.EncodeToString([]byte(value))
			var lines strings.Builder
			for ; len(text) > width; text = text[width:] {
				lines.WriteString(text[:width] + "\n")
			}
			lines.WriteString(text + "\n")
			for line := range strings.Lines(m.MaskString(lines.String())) {
				if left := strings.Trim(strings.ReplaceAll(line, Hidden, ""), "\n="); len(left) > 4 {
					t.Errorf("width %d: %q is left", width, left)
				}
			}
		}
	}
}

func TestMaskerMasksHeaders(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"curl":             {"> Authorization: Bearer abc.def.ghi\r\n> Host: x\r\n", "> Authorization: Bearer [hidden]\r\n> Host: x\r\n"},
		"any case":         {"AUTHORIZATION:Basic dTpwdw==\n", "AUTHORIZATION:Basic [hidden]\n"},
		"no scheme":        {"x-api-key: 0123456789\n", "x-api-key: [hidden]\n"},
		"proxy":            {"Proxy-Authorization: abcdef\n", "Proxy-Authorization: [hidden]\n"},
		"argument":         {`curl -H "Authorization: token abcdef" https://x`, `curl -H "Authorization: token [hidden]" https://x`},
		"json":             {`{"Authorization": "Bearer abcdef", "x": 1}`, `{"Authorization": "Bearer [hidden]", "x": 1}`},
		"json of a header": {`{"X-Api-Key":["abcdef"]}`, `{"X-Api-Key":["[hidden]"]}`},
		"escaped json":     {`"{\"authorization\":\"abcdef\"}"`, `"{\"authorization\":\"[hidden]\"}"`},
		"environment":      {"HEADERS=authorization=Bearer abcdef\n", "HEADERS=authorization=Bearer [hidden]\n"},
		"short value":      {"authorization: none\n", "authorization: none\n"},
		"assignment":       {"authorization = header(request)\n", "authorization = header(request)\n"},
		"prose":            {"the authorization of users\n", "the authorization of users\n"},
		"at the end":       {"x-api-key: abc", "x-api-key: abc"},
	}
	m := NewMasker()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := m.MaskString(tt.in); got != tt.want {
				t.Errorf("MaskString(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestShortValuesAreTold: masking "a" would blank everything (SEED-platform#3929).
func TestShortValuesAreTold(t *testing.T) {
	m := NewMasker("a", "", "12345", "123456", " \n      ")
	if got, want := fmt.Sprint(m.Short()), "[a 12345  \n      ]"; got != want {
		t.Errorf("Short() = %s, want %s", got, want)
	}
	if got, want := m.MaskString("a banana, 12345, 123456"), "a banana, 12345, [hidden]"; got != want {
		t.Errorf("MaskString = %q, want %q", got, want)
	}
}

func TestMaskerPrintsNoSecret(t *testing.T) {
	m := NewMasker("canary-0123456789")
	for _, got := range []string{fmt.Sprint(m), fmt.Sprintf("%+v", m), fmt.Sprintf("%#v", m)} {
		if strings.Contains(got, "canary") {
			t.Errorf("printed as %s", got)
		}
	}
}

func TestMaskJSONStaysJSON(t *testing.T) {
	m := NewMasker("123456789", `":"x","`, "multi-line\nsecret-value")
	tests := map[string]struct{ in, want string }{
		"untouched":             {`{"a": [1, true, null]}`, `{"a": [1, true, null]}`},
		"string":                {`{"a":"123456789"}`, `{"a":"[hidden]"}`},
		"number":                {`{"a":123456789,"b":[true,null,1.50]}`, `{"a":"[hidden]","b":[true,null,1.50]}`},
		"over a quote":          {`{"k":"x","l":1}`, `{"k[hidden]l":1}`},
		"escaped":               {`{"a":"multi-line\nsecret-value"}`, `{"a":"[hidden]"}`},
		"header with an object": {`{"authorization":{"a":"abcdefgh","n":123456789},"b":"x"}`, `{"authorization":{"a":"[hidden]","n":"[hidden]"},"b":"x"}`},
		"header with a number":  {`{"x-api-key":12345678}`, `{"x-api-key":"[hidden]"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := string(m.MaskJSON([]byte(tt.in)))
			if got != tt.want || !json.Valid([]byte(got)) {
				t.Errorf("MaskJSON(%s)\n got %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

// pieces are what the random texts are made of: secrets, parts of them, and what
// surrounds them.
func pieces(values []string) []string {
	all := []string{
		"a", " ", "\n", "ghp_", "gh", "sk-ant-api", "0123456789abcdef", "Authorization", "authorization:", ": ", "Bearer ",
		"x-api-key", "\"", "\\", "é", "some plain text ", "=", "[",
	}
	for _, v := range values {
		all = append(all, v, v[:len(v)/2], v[len(v)/2:], v[:1], base64.StdEncoding.EncodeToString([]byte(v)))
	}
	return all
}

// TestSplitStreamsAreMaskedLikeWholeOnes compares texts cut at random places with
// the same texts in one piece.
func TestSplitStreamsAreMaskedLikeWholeOnes(t *testing.T) {
	values := []string{"secret-value-1", "value-1-and-more", "aaaaaa", "aaaabaaaa", pem, "x\"y\\z\nsecond line"}
	m := NewMasker(values...)
	parts := pieces(values)
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var text []byte
		for range 1 + r.IntN(12) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		checkSplit(t, m, text, func() int { return 1 + r.IntN(9) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// checkSplit masks text in chunks and compares; it also checks what Stream promises
// of what it holds back.
func checkSplit(t *testing.T, m *Masker, text []byte, size func() int) {
	t.Helper()
	want := string(m.Mask(text))
	s := m.Stream()
	var got []byte
	for rest := text; len(rest) > 0; {
		n := min(size(), len(rest))
		got = append(got, s.Write(bytes.Clone(rest[:n]))...)
		rest = rest[n:]
		if s.Held() == 0 {
			// Whoever goes on with a new stream must get the same.
			s = m.Stream()
		}
	}
	got = append(got, s.Flush()...)
	if string(got) != want {
		t.Errorf("text %q\nsplit %q\nwhole %q", text, got, want)
	}
	if s.Held() != 0 {
		t.Errorf("%d bytes held after Flush", s.Held())
	}
}

func TestNoValueSurvives(t *testing.T) {
	values := []string{"secret-value-1", "aaaaaa", "abcabcabd"}
	m := NewMasker(values...)
	parts := pieces(values)
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var text []byte
		for range 1 + r.IntN(12) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		got := m.MaskString(string(text))
		for _, v := range values {
			if strings.Contains(got, v) {
				t.Fatalf("seed %d: %q leaves %q in %q", seed, text, v, got)
			}
		}
	}
}

func TestStreamHoldsNothingOfOrdinaryLines(t *testing.T) {
	s := NewMasker("secret-value-1").Stream()
	for _, line := range []string{"compiling\n", "ok\n", "100%\r", "done.\n"} {
		if got := string(s.Write([]byte(line))); got != line || s.Held() != 0 {
			t.Errorf("Write(%q) = %q with %d bytes held", line, got, s.Held())
		}
	}
}

// TestEndlessTokenIsBounded: a text of token characters without an end must not be
// swallowed, nor keep the stream unsettled, for ever.
func TestEndlessTokenIsBounded(t *testing.T) {
	s := NewMasker().Stream()
	out := len(s.Write([]byte("ghp_" + strings.Repeat("x", 100))))
	chunk := bytes.Repeat([]byte("y"), 8<<10)
	for range 16 {
		out += len(s.Write(chunk))
	}
	if out < 8<<10 || s.Held() != 0 {
		t.Errorf("%d bytes came out, %d are held", out, s.Held())
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("token ghp_0123456789abcdef end"), uint8(3))
	f.Add([]byte("Authorization: Bearer secret-value-1\r\n"), uint8(1))
	f.Add([]byte("c2VjcmV0LXZhbHVlLTE="), uint8(5))
	m := NewMasker("secret-value-1", "second\nvalue of two lines", "aabaab")
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		checkSplit(t, m, text, func() int { return 1 + int(size) })
	})
}

func BenchmarkStream(b *testing.B) {
	var log bytes.Buffer
	for i := 0; log.Len() < 64<<10; i++ {
		fmt.Fprintf(&log, "2026-11-29T18:%02d:11Z INFO internal/journal: appended event %d of the run with the usual fields\n", i%60, i)
	}
	random := make([]byte, 48<<10)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	texts := map[string][]byte{
		"log": log.Bytes()[:64<<10], "base64": []byte(base64.StdEncoding.EncodeToString(random)),
		"hundred": bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 655),
	}
	for _, n := range []int{1, 20} {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf("value-%x-%x", i*7919, r.Uint64()))
		}
		m := NewMasker(values...)
		for name, text := range texts {
			b.Run(fmt.Sprintf("%s/values=%d", name, n), func(b *testing.B) {
				s := m.Stream()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					s.Write(text)
				}
			})
		}
	}
}

// TestSettledPartsAreMaskedLikeTheWhole: a text that is cut where Settled says hides the
// same as in one piece.
func TestSettledPartsAreMaskedLikeTheWhole(t *testing.T) {
	values := []string{"secret-value-1", "value-1-and-more", "aaaaaa", "aaaabaaaa", pem, "x\"y\\z\nsecond line"}
	m := NewMasker(values...)
	parts := pieces(values)
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var text, got []byte
		for range 1 + r.IntN(12) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		var held []byte
		for rest := text; len(rest) > 0; {
			n := min(1+r.IntN(9), len(rest))
			held = append(held, rest[:n]...)
			rest = rest[n:]
			n = m.Settled(held)
			got = append(got, m.Mask(held[:n])...)
			held = held[n:]
		}
		got = append(got, m.Mask(held)...)
		if want := m.Mask(text); string(got) != string(want) {
			t.Fatalf("seed %d: text %q\nparts %q\nwhole %q", seed, text, got, want)
		}
	}
}
