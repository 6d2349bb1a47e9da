package repo

import "testing"

func TestComplaint(t *testing.T) {
	for says, want := range map[string]string{
		"":                                      "",
		"warning: slow\nfatal: no such thing\n": "no such thing",
		"ssh: connect to host h port 22: Connection refused\r\nfatal: Could not read from remote repository.\n": "ssh: connect to host h port 22: Connection refused",
		"Cloning\nssh: Could not resolve hostname h: Name or service not known\nfatal: gone\n":                  "ssh: Could not resolve hostname h: Name or service not known",
		"only this": "only this",
	} {
		if got := complaint(says); got != want {
			t.Errorf("%q: %q, want %q", says, got, want)
		}
	}
}
