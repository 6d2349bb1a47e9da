// Package build tells which build of the program this is. Releases set the
// variables with -ldflags; a build from a checkout or by `go install` finds the
// same in what the Go toolchain recorded.
package build

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by -ldflags "-X github.com/Insights/insightscli/internal/build.Version=…".
// Read them through [Get].
var (
	Version string
	Commit  string
	Date    string
)

// Info describes a build.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Get returns what is known about this build.
func Get() Info {
	info := Info{
		Version: Version, Commit: Commit, Date: Date,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		info.fill(b)
	}
	if info.Version == "" {
		info.Version = "devel"
	}
	return info
}

// fill takes what ldflags did not set from the toolchain's record.
func (i *Info) fill(b *debug.BuildInfo) {
	if i.Version == "" && b.Main.Version != "(devel)" {
		i.Version = strings.TrimPrefix(b.Main.Version, "v")
	}
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision" && i.Commit == "":
			i.Commit = s.Value
		case s.Key == "vcs.time" && i.Date == "":
			i.Date = s.Value
		}
	}
}
