package session

import (
	_ "embed"
	"errors"
)

//go:embed demo.yaml
var demo []byte

// Demo is the reference flow: the names in a repository that have the worst story, each
// researched, and what to do about them.
func Demo() (*Script, error) {
	return Load(demo, func(string) ([]byte, error) { return nil, errors.New("the demo names no files") })
}
