package reply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

func compile(t *testing.T, raw string) *Schema {
	t.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatalf("compile %.200s: %v", raw, err)
	}
	return s
}

// soon fails a test that takes so long that it hangs.
func soon(t *testing.T, bound time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > bound {
		t.Errorf("it took %s", took)
	}
}

func TestSchemasThatCannotBeUsed(t *testing.T) {
	chain := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 200 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	chain += `"d200":{}}}`
	for name, tt := range map[string]struct{ schema, want string }{
		"empty":           {``, "not JSON"},
		"prose":           {`an object please`, "line 1, column 1"},
		"second line":     {"{\n  \"type\": object\n}", "line 2, column 11"},
		"two documents":   {`{} {}`, "not JSON"},
		"a list":          {`[]`, "neither an object nor a truth value"},
		"wrong type":      {`{"properties":{"a":{"type":"text"}}}`, "at /properties/a/type"},
		"wrong keyword":   {`{"properties":{"a":{"minLength":"3"}}}`, "at /properties/a/minLength: got string, want integer"},
		"twice":           {`{"type":"object","type":"string"}`, "at /type: the name occurs twice"},
		"remote":          {`{"$ref":"https://example.com/s.json"}`, `it refers to "https://example.com/s.json"`},
		"remote draft":    {`{"$schema":"https://example.com/meta"}`, `it refers to "https://example.com/meta"`},
		"file":            {`{"$ref":"file:///etc/passwd"}`, `it refers to "file:///etc/passwd"`},
		"relative":        {`{"$ref":"other.json#/a"}`, `it refers to "other.json"`},
		"missing":         {`{"$ref":"#/$defs/none"}`, "it refers to /$defs/none, which is not there"},
		"anchor":          {`{"$ref":"#none"}`, "none"},
		"look-around":     {`{"properties":{"a":{"pattern":"(?=x)"}}}`, "at /properties/a/pattern"},
		"back-reference":  {`{"pattern":"(a)\\1"}`, "pattern"},
		"long pattern":    {`{"pattern":"` + strings.Repeat("a", 5000) + `"}`, "more than 4096 bytes"},
		"exploding":       {`{"pattern":"((a{1000}){1000}){1000}"}`, "pattern"},
		"itself":          {`{"$ref":"#"}`, "leads back to itself"},
		"round about":     {`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, "leads back to itself"},
		"deep down":       {`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`, "leads back to itself"},
		"long chain":      {chain, "lead to each other"},
		"deep":            {strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70), "nested deeper than 64"},
		"large":           {`{"description":"` + strings.Repeat("x", maxSchema) + `"}`, "bytes"},
		"many":            {`{"enum":[` + strings.Repeat("1,", maxSubschemas) + `2]}`, "values"},
		"huge number":     {`{"maximum":4E31322574}`, "out of range"},
		"dynamic, nested": {`{"$dynamicRef":"#x","$defs":{"a":{"$id":"http://a.example/b","$dynamicAnchor":"x"},"b":{"$dynamicAnchor":"x"}}}`, "within one schema"},
		"invalid UTF-8":   {"{\"title\":\"\xff\"}", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			soon(t, 20*time.Second, func() {
				_, err := Compile([]byte(tt.schema))
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v; want %q in one line", err, tt.want)
				}
				if errs.KindOf(err) != errs.Usage {
					t.Errorf("it is %s", errs.KindOf(err))
				}
			})
		})
	}
}

func TestDrafts(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, good, bad string
	}{
		"4":                {`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `2`, `1`},
		"6":                {`{"$schema":"http://json-schema.org/draft-06/schema#","const":1}`, `1.0`, `2`},
		"7":                {`{"$schema":"http://json-schema.org/draft-07/schema#","if":{"minimum":5},"then":{"maximum":6}}`, `6`, `7`},
		"2019-09":          {`{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]}}`, `{"b":1}`, `{"a":1}`},
		"2020-12":          {`{"prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, `["a",1]`},
		"the library's id": {`{"$id":"https://example.com/s","$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`, `"x"`, `1`},
		"anchors":          {`{"$defs":{"a":{"$anchor":"x","type":"string"}},"$ref":"#x"}`, `"x"`, `1`},
		"a draft itself":   {`{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"type":"string"}`, `{"type":1}`},
		"recursive":        {`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["v"],"properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/n"}}}}}`, `{"v":1,"next":{"v":2}}`, `{"v":1,"next":{"v":"2"}}`},
		"recursiveRef":     {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"type":"object","properties":{"c":{"$recursiveRef":"#"}}}`, `{"c":{"c":{}}}`, `{"c":{"c":1}}`},
		"dynamicRef":       {`{"$dynamicAnchor":"n","type":"object","properties":{"c":{"$dynamicRef":"#n"}}}`, `{"c":{"c":{}}}`, `{"c":{"c":1}}`},
		"format":           {`{"format":"date"}`, `"2026-11-30"`, `"yesterday"`},
		"unknown format":   {`{"type":"string","format":"of-ours"}`, `"x"`, `1`},
		"true and false":   {`{"properties":{"a":true,"b":false}}`, `{"a":1}`, `{"b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, tt.schema)
			if err := s.Check([]byte(tt.good)); err != nil {
				t.Errorf("%s: %v", tt.good, err)
			}
			if err := s.Check([]byte(tt.bad)); err == nil {
				t.Errorf("%s fits", tt.bad)
			}
		})
	}
}

func TestRequiredKeys(t *testing.T) {
	s := compile(t, `{"$ref":"#/$defs/a","$defs":{"a":{"required":["x"],"allOf":[{"required":["y","x"]}]}}}`)
	if got := fmt.Sprint(s.RequiredKeys()); got != "[x y]" {
		t.Error(got)
	}
}

// TestLargeSchemaCompiles: the library compares each subschema with each other one.
func TestLargeSchemaCompiles(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range (maxSubschemas - 10) / 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":{"type":"string"}`, i)
	}
	b.WriteString(`}}`)
	soon(t, 20*time.Second, func() { compile(t, b.String()) })
}
