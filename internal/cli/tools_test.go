package cli

import "testing"

func TestSandboxPath(t *testing.T) {
	dirs := []string{"/home/ann/go/bin", "/home/ann/.nvm/versions/node/v22"}
	tests := []struct{ path, want string }{
		{"", "/usr/local/bin:/usr/bin:/bin"},
		{"/usr/local/go/bin:/bin:/home/ann/go/bin", "/usr/local/go/bin:/bin:/home/ann/go/bin:/usr/local/bin:/usr/bin"},
		{"/home/ann/.nvm/versions/node/v22/bin", "/home/ann/.nvm/versions/node/v22/bin:/usr/local/bin:/usr/bin:/bin"},
		{"/home/ann/.ssh/bin:/root/bin:/home/other/bin:bin::.", "/usr/local/bin:/usr/bin:/bin"},
		{"/home/ann/go/bin2", "/usr/local/bin:/usr/bin:/bin"},
	}
	for _, tt := range tests {
		if got := sandboxPath(tt.path, "/home/ann", dirs); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.path, got, tt.want)
		}
	}
}
