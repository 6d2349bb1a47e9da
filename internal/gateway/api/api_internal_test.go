package api

import "testing"

// The address comes from a setting that a repository may bring.
func TestMetadataIsNoAPI(t *testing.T) {
	for address, refused := range map[string]bool{
		"169.254.169.254:80": true, "[::ffff:169.254.169.254]:80": true, "[fe80::1%eth0]:80": true, "[fd00:ec2::254]:80": true,
		"127.0.0.1:8000": false, "[::1]:8000": false, "10.0.0.1:443": false,
	} {
		if err := noMetadata(t.Context(), "tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}
