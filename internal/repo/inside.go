package repo

import (
	"context"
	"io"
	"strings"
)

// Inside runs git in a directory of a sandbox, as the agent, with nothing that would
// prompt, page or sign. What answers is hostile: an answer is good for the agent's own
// affairs, and must be checked before anything else depends on it.
type Inside struct{ in inside }

// NewInside returns the git of a directory of a sandbox.
func NewInside(in Execer, dir string) Inside { return Inside{newInside(in, dir)} }

// Text runs git and returns at most max bytes of what it wrote, without the last
// newline, and the code that it ended with. More is an error.
func (i Inside) Text(ctx context.Context, max int64, args ...string) (out string, code int, err error) {
	text := limited{left: max}
	code, _, err = i.in.run(ctx, &text, nil, args...)
	return strings.TrimSuffix(text.buf.String(), "\n"), code, err
}

// OID runs git and returns the object id that it answers, or "" when it ends with a
// code other than 0.
func (i Inside) OID(ctx context.Context, args ...string) (string, error) {
	return i.in.oid(ctx, args...)
}

// Must runs git, with in as its input if that is not nil, and makes an error of any
// code but 0: what git complained about.
func (i Inside) Must(ctx context.Context, in io.Reader, args ...string) error {
	code, says, err := i.in.run(ctx, io.Discard, in, args...)
	if err == nil && code != 0 {
		err = &gitError{verb: verb(args), code: code, stderr: says}
	}
	return err
}

// has returns those of some objects that the sandbox has.
func (i inside) has(ctx context.Context, oids []string) ([]string, error) {
	out := limited{left: int64(len(oids)+1) * 256}
	code, says, err := i.run(ctx, &out, strings.NewReader(strings.Join(oids, "\n")+"\n"), "cat-file", "--batch-check=%(objectname)")
	if err == nil && code != 0 {
		err = &gitError{verb: "cat-file", code: code, stderr: says}
	}
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for line := range strings.SplitSeq(out.buf.String(), "\n") {
		there[line] = true
	}
	var have []string
	for _, oid := range oids {
		if there[oid] {
			have = append(have, oid)
		}
	}
	return have, nil
}
