package task

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestAppendOutputKeepsEveryByte(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, data := range map[string][]byte{
		"text":         []byte("hello\nworld\n"),
		"control":      []byte("a\x00b\x1b[31mc\r\n\t\"\\\x7f"),
		"wide":         []byte("héllo 世界 \u2028 👩‍💻"),
		"not utf-8":    {0xff, 'a', 0xc3},
		"every byte":   all,
		"line, no end": []byte("prompt> "),
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []Stream{Stdout, Stderr} {
				ev := Event{Params: AppendOutput(nil, stream, data, true)}
				if !json.Valid(ev.Params) {
					t.Fatalf("not JSON: %s", ev.Params)
				}
				o, err := ev.Output()
				if err != nil {
					t.Fatal(err)
				}
				got, b, err := o.Bytes()
				if err != nil || got != stream || !bytes.Equal(b, data) || !o.Continued {
					t.Fatalf("got %s %q (continued %v, %v), want %s %q", got, b, o.Continued, err, stream, data)
				}
				if want := bytes.Count(data, []byte("\n")); o.Lines != want {
					t.Fatalf("lines = %d, want %d", o.Lines, want)
				}
			}
		})
	}
}

func FuzzAppendOutput(f *testing.F) {
	f.Add([]byte("a\n"), false)
	f.Add([]byte{0xff, 0}, true)
	f.Fuzz(func(t *testing.T, data []byte, continued bool) {
		ev := Event{Params: AppendOutput(nil, Stderr, data, continued)}
		o, err := ev.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, b, err := o.Bytes(); err != nil || !bytes.Equal(b, data) {
			t.Fatalf("%q became %q (%v)", data, b, err)
		}
	})
}

func BenchmarkAppendOutput(b *testing.B) {
	line := append(bytes.Repeat([]byte("x"), 99), '\n')
	data := bytes.Repeat(line, 655)
	b.SetBytes(int64(len(data)))
	var buf []byte
	for b.Loop() {
		buf = AppendOutput(buf[:0], Stdout, data, false)
	}
}
