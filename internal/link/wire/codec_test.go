package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"
)

func testFrames() []Frame {
	at := time.Unix(1764000000, 123456789)
	return []Frame{
		{Type: FrameStdout, Seq: 1, At: at, Data: []byte("hello\n")},
		{Type: FrameStderr, Seq: 2, At: at, Data: bytes.Repeat([]byte{0xff}, MaxChunk), Continued: true},
		{Type: FrameEvent, Seq: 3, At: at, Method: "session/update", Data: []byte(`{"a":1}`)},
		{Type: FrameHeartbeat, At: at, Data: []byte(`{"agent_active":true}`)},
		{Type: FrameDone, Seq: 1<<64 - 1, At: at, Data: []byte{}},
	}
}

func TestFramesSurviveTheStream(t *testing.T) {
	var b bytes.Buffer
	w := NewFrameWriter(&b)
	for _, f := range testFrames() {
		if err := w.Write(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := NewFrameReader(&b)
	for _, want := range testFrames() {
		var got Frame
		if err := r.Next(&got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	if err := r.Next(new(Frame)); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last: %v", err)
	}
}

func TestDecodeFrameReadsWhatAppendFrameWrote(t *testing.T) {
	var b []byte
	for _, f := range testFrames() {
		var err error
		if b, err = AppendFrame(b, &f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range testFrames() {
		var got Frame
		n, err := DecodeFrame(b, &got)
		if err != nil || n != FrameSize(&want) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d bytes, %v: %+v", n, err, got)
		}
		b = b[n:]
	}
	if len(b) > 0 {
		t.Fatalf("%d bytes left", len(b))
	}
}

func TestFrameBounds(t *testing.T) {
	for name, f := range map[string]Frame{
		"data":   {Type: FrameEvent, Data: make([]byte, MaxFrame)},
		"method": {Type: FrameEvent, Method: string(make([]byte, 1<<16))},
	} {
		if b, err := AppendFrame([]byte("x"), &f); !errors.Is(err, ErrFrame) || string(b) != "x" {
			t.Errorf("%s: AppendFrame: %v", name, err)
		}
		if err := NewFrameWriter(io.Discard).Write(&f); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: Write: %v", name, err)
		}
	}
	f := Frame{Type: FrameEvent, Data: make([]byte, MaxFrame-frameHeader)}
	b, err := AppendFrame(nil, &f)
	if err != nil || len(b) != MaxFrame {
		t.Errorf("largest frame: %d bytes, %v", len(b), err)
	}
}

func TestMalformedFrames(t *testing.T) {
	good, err := AppendFrame(nil, &Frame{Type: FrameEvent, Seq: 1, Method: "m", Data: []byte("d")})
	if err != nil {
		t.Fatal(err)
	}
	change := func(i int, v byte) []byte {
		b := bytes.Clone(good)
		b[i] = v
		return b
	}
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"too long":       {change(0, 0xff), ErrFrame},
		"too short":      {change(3, frameHeader-5), ErrFrame},
		"type 0":         {change(4, 0), ErrFrame},
		"unknown type":   {change(4, 9), ErrFrame},
		"unknown flag":   {change(5, 2), ErrFrame},
		"method too big": {change(6, 0xff), ErrFrame},
		"torn":           {good[:len(good)-1], io.ErrUnexpectedEOF},
		"torn header":    {good[:7], io.ErrUnexpectedEOF},
		"torn length":    {good[:2], io.ErrUnexpectedEOF},
	} {
		if _, err := DecodeFrame(c.bytes, new(Frame)); !errors.Is(err, c.want) {
			t.Errorf("%s: DecodeFrame: %v", name, err)
		}
		if err := NewFrameReader(bytes.NewReader(c.bytes)).Next(new(Frame)); !errors.Is(err, c.want) {
			t.Errorf("%s: Next: %v", name, err)
		}
	}
}

// FuzzFrame: what decodes encodes to the same bytes; nothing panics; both decoders
// agree.
func FuzzFrame(f *testing.F) {
	for _, fr := range testFrames() {
		if b, err := AppendFrame(nil, &fr); err == nil && len(b) < 1000 {
			f.Add(b)
			f.Add(b[:len(b)-1])
		}
	}
	f.Add([]byte{0, 0, 0, 20, 3, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b Frame
		n, err := DecodeFrame(in, &a)
		err2 := NewFrameReader(bytes.NewReader(in)).Next(&b)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("DecodeFrame: %v, Next: %v", err, err2)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v", a, b)
		}
		out, err := AppendFrame(nil, &a)
		if err != nil || !bytes.Equal(out, in[:n]) {
			t.Fatalf("%x became %x, %v", in[:n], out, err)
		}
	})
}
