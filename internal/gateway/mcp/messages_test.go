package mcp

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestMessagesLeavesOutGreetings(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for in, want := range map[string]string{
		"":                               "",
		"hello":                          "",
		"hello\n{\"a\":1}\nbye\n[2]\n":   "{\"a\":1}\n[2]\n",
		"\n\n{}\n":                       "{}\n",
		long + "{\n{\"" + long + "\"}\n": "{\"" + long + "\"}\n",
		"{} no end":                      "{} no end",
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			got, err := io.ReadAll(&messages{in: bufio.NewReader(r)})
			if err != nil || string(got) != want {
				t.Errorf("%.40q: %.40q, %v", in, got, err)
			}
		}
	}
}
