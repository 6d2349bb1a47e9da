package reply

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNumbersAreExact: a float64 has 53 bits; identifiers and sums have more.
func TestNumbersAreExact(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, value string
		fits          bool
	}{
		"beyond 2^53":          {`{"const":9007199254740993}`, `9007199254740993`, true},
		"its neighbour":        {`{"const":9007199254740993}`, `9007199254740992`, false},
		"maximum":              {`{"maximum":9007199254740992}`, `9007199254740993`, false},
		"a tenth":              {`{"multipleOf":0.1}`, `0.3`, true},
		"cents":                {`{"multipleOf":0.01}`, `4.35`, true},
		"not cents":            {`{"multipleOf":0.01}`, `4.355`, false},
		"1.0 is whole":         {`{"type":"integer"}`, `1.0`, true},
		"1e2 is whole":         {`{"type":"integer"}`, `1e2`, true},
		"the same in enum":     {`{"enum":[1]}`, `1.00`, true},
		"twenty digits":        {`{"minimum":12345678901234567890}`, `12345678901234567889`, false},
		"float64's largest":    {`{"type":"number"}`, `1.7976931348623157e308`, true},
		"beyond float64":       {`{"type":"number"}`, `1e400`, true},
		"many different items": {`{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, true},
	} {
		if err := compile(t, tt.schema).Check([]byte(tt.value)); (err == nil) != tt.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHugeExponents: written out, 4E31322574 has 31 million digits, and computing
// with it took minutes (case K7). What cannot be computed is refused at once.
func TestHugeExponents(t *testing.T) {
	for _, schema := range []string{
		`{}`, `{"type":"integer"}`, `{"maximum":5}`, `{"multipleOf":3}`, `{"const":1}`, `{"enum":[1,2]}`, `{"uniqueItems":true}`,
	} {
		s := compile(t, schema)
		for _, value := range []string{
			`4E31322574`, `-4e31322574`, `4E-31322574`, `1e99999999999999999999`, `[1,4E31322574]`, `{"a":4E+31322574}`,
			strings.Repeat("9", 2000), `0.` + strings.Repeat("1", 2000),
		} {
			soon(t, time.Second, func() {
				if err := s.Check([]byte(value)); err == nil || !strings.Contains(err.Error(), "number") || len(err.Error()) > 200 {
					t.Errorf("%s: %.30s: %v", schema, value, err)
				}
			})
		}
	}
}

func TestHostileValues(t *testing.T) {
	s := compile(t, `{}`)
	for name, value := range map[string]string{
		"empty": "", "deep": strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"very deep": strings.Repeat(`{"a":`, 1<<20), "large": `"` + strings.Repeat("x", maxValue) + `"`,
		"twice": `{"a":1,"a":2}`, "twice below": `[{"b":{"a":1,"a":2}}]`, "trailing comma": `{"a":1,}`,
		"comment": "{} // all", "two": `{} {}`, "NaN": `NaN`, "a byte that is no text": "\"\xff\"", "BOM": "\ufeff{}",
	} {
		soon(t, 10*time.Second, func() {
			if err := s.Check([]byte(value)); err == nil || len(err.Error()) > 300 {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestWorkIsBounded: schemas whose branches lead into each other double the work with
// each step; counting it must not.
func TestWorkIsBounded(t *testing.T) {
	doubling := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 60 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d60":{"type":"string"}}}`
	for name, tt := range map[string]struct{ schema, value string }{
		"doubling at one value": {doubling, `1`},
		"doubling downwards": {
			`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`,
			strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200),
		},
		"without a word": {
			`{"not":{"$ref":"#/$defs/x"},"$defs":{"x":{"properties":{"a":{"$ref":"#/$defs/x"}},"patternProperties":{"a":{"$ref":"#/$defs/x"}},"type":"object"}}}`,
			strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200),
		},
		"a slow pattern": {`{"pattern":"^(a?){500}a{500}$"}`, `"` + strings.Repeat("a", 1<<20) + `"`},
		"many alternatives": {
			`{"items":{"enum":[` + strings.Repeat(`"x",`, 5000) + `"y"]}}`,
			`[` + strings.Repeat(`"z",`, 5000) + `"z"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, tt.schema)
			soon(t, 10*time.Second, func() {
				if err := s.Check([]byte(tt.value)); err == nil || !strings.Contains(err.Error(), "too large") {
					t.Error(err)
				}
			})
		})
	}
}

// TestHonestReplyIsChecked: the bounds are far from what agents reply.
func TestHonestReplyIsChecked(t *testing.T) {
	s := compile(t, `{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"$ref":"#/$defs/i"}}},
		"$defs":{"i":{"type":"object","required":["name","why"],"additionalProperties":false,"properties":{
		"name":{"type":"string","pattern":"^[a-z]+$"},"why":{"anyOf":[{"type":"string"},{"type":"null"}]},"n":{"type":"integer","minimum":0}}}}}`)
	item := `{"name":"abc","why":"` + strings.Repeat("because ", 100) + `","n":3}`
	value := `{"items":[` + strings.Repeat(item+",", 3999) + item + `]}`
	soon(t, 10*time.Second, func() {
		if err := s.Check([]byte(value)); err != nil {
			t.Error(err)
		}
	})
}

func TestProblemsAreShort(t *testing.T) {
	s := compile(t, `{"type":"object","required":["a","b"],"additionalProperties":false,"properties":{
		"a":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"n":{"maximum":9007199254740993}}}},
		"b":{"anyOf":[{"type":"string"},{"type":"null"}]},"x/y":{"enum":["p","q"]},"long":{"minLength":5000},
		"k":{"oneOf":[{"properties":{"t":{"const":"one"}}},{"properties":{"t":{"const":"two"},"u":{"properties":{"v":{"minLength":3}}}}}]}}}`)
	for value, want := range map[string]string{
		`[]`:                                    "at the top: got array, want object",
		`{"a":[]}`:                              "at the top: missing property 'b'",
		`{"a":[{"name":1}],"b":""}`:             "at /a/0/name: got number, want string",
		`{"a":[],"b":1}`:                        "at /b: got number, want string or null",
		`{"a":[],"b":"","x/y":"r"}`:             "at /x~1y: value must be one of 'p', 'q'",
		`{"a":[],"b":"","z":1}`:                 "at the top: additional properties 'z' not allowed",
		`{"a":[{"n":9007199254740994}],"b":""}`: "at /a/0/n: it is 9007199254740994, more than 9007199254740993",
		`{"a":[],"b":"","k":{"t":"two","u":{"v":"x"}}}`: "at /k/u/v: minLength: got 1, want 3",
		`{"a":[],"b":"","long":"x"}`:                    "at /long: minLength: got 1, want 5000",
	} {
		err := s.Check([]byte(value))
		var m *Mismatch
		if !errors.As(err, &m) || err.Error() != want {
			t.Errorf("%s: %v; want %s", value, err, want)
		}
	}
	err := s.Check([]byte(`{"a":[{"name":1},{"name":2},{"name":3},{"name":4},{"name":5},{"name":6},{"name":7}],"b":""}`))
	var m *Mismatch
	if !errors.As(err, &m) || len(m.Problems) != maxProblems+1 || m.Problems[maxProblems] != "and 2 more" {
		t.Error(err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"$ref":"#/a","a":{"type":"object"}}`, `{"a":1}`)
	f.Add(`{"allOf":[{"minimum":1e3}],"unevaluatedItems":false}`, `[1,2]`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","dependencies":{"a":["b"]}}`, `{"a":null}`)
	f.Fuzz(func(_ *testing.T, schema, value string) {
		s, err := Compile([]byte(schema))
		if err != nil {
			return
		}
		_ = s.Check([]byte(value)) // whatever it says, it says it
		_ = s.saysNothing([]byte(value))
		_, _ = Extract(value, s)
	})
}
