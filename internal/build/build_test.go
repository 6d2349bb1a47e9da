package build

import (
	"runtime/debug"
	"testing"
)

func TestVersionIsNeverEmpty(t *testing.T) {
	if Get().Version == "" || Get().Go == "" {
		t.Errorf("got %+v", Get())
	}
}

func TestLdflagsWin(t *testing.T) {
	i := Info{Version: "1.2.3", Commit: "abc"}
	i.fill(&debug.BuildInfo{
		Main:     debug.Module{Version: "v9.9.9"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "def"}, {Key: "vcs.time", Value: "2026-11-29T00:00:00Z"}},
	})
	if i.Version != "1.2.3" || i.Commit != "abc" || i.Date != "2026-11-29T00:00:00Z" {
		t.Errorf("got %+v", i)
	}
}

func TestInstalledModuleTellsItsVersion(t *testing.T) {
	var i Info
	i.fill(&debug.BuildInfo{Main: debug.Module{Version: "v0.3.0"}})
	if i.Version != "0.3.0" {
		t.Errorf("version = %q", i.Version)
	}
}
