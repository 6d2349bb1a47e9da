package jail

import (
	"slices"
	"testing"
)

func TestEtcSelect(t *testing.T) {
	found := []string{
		"shadow", "gshadow", "ssh", "sudoers", "passwd", "group", "hosts", "resolv.conf", "docker", "wireguard",
		"ld.so.cache", "python3.11", "java-17-openjdk", "os-release", "lsb-release", "ssl", "environment", "apt", "localtime",
	}
	got := etcSelect(found)
	for _, want := range []string{"ld.so.cache", "python3.11", "java-17-openjdk", "os-release", "lsb-release", "ssl/certs", "localtime"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"shadow", "gshadow", "ssh", "sudoers", "passwd", "ssl", "docker", "wireguard", "environment", "apt", "hosts"} {
		if slices.Contains(got, never) {
			t.Errorf("%s is shown", never)
		}
	}
}

func TestCarriesCredential(t *testing.T) {
	for text, want := range map[string]bool{
		"registry=https://packages.example/\n":                 false,
		"//registry.example/:_authToken=abc":                   true,
		"_auth = aGk=":                                         true,
		"[url \"https://x:y@git.example/\"]\n":                 true,
		"[url \"https://git.example/\"]\n\tinsteadOf = me@x\n": false,
		"index-url = https://user:pw@pypi.example/simple":      true,
		"index-url = https://token@pypi.example/simple":        true,
		"[http]\n\textraHeader = Authorization: x":             true,
		"<password>x</password>":                               true,
		"[core]\n\tautocrlf = input\n":                         false,
		"<s><!-- <password>x</password> --><proxies/></s>":     false,
		"<s><!-- a --><password>x</password><!-- b --></s>":    true,
		"<s><!-- <password>x</password></s>":                   true,
		"://":                                                  false,
		"":                                                     false,
	} {
		if got := carriesCredential([]byte(text)); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestSetsCredential(t *testing.T) {
	for text, want := range map[string]bool{
		"export ARTIFACTORY_TOKEN=abc\n":                          true,
		"  DB_PASSWORD='x'; export DB_PASSWORD":                   true,
		"if true; then AWS_SECRET_ACCESS_KEY=\"x\"; fi":           true,
		"export https_proxy=http://ann:pw@proxy.example:3128":     true,
		"# ARTIFACTORY_TOKEN=abc":                                 false,
		"export TOKEN=$(cat ~/.token)":                            false,
		"export TOKEN=\"$OTHER\"\nSECRET=\n":                      false,
		"PS1='\\u@\\h'; # asks for no password\nexport EDITOR=vi": false,
		"export http_proxy=http://proxy.example:3128":             false,
		"": false,
	} {
		if got := setsCredential([]byte(text)); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestHasID(t *testing.T) {
	file := []byte("root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nbroken\n")
	for id, want := range map[int]bool{0: true, 1000: true, 100: false, 1: false} {
		if got := hasID(file, id); got != want {
			t.Errorf("%d: got %v", id, got)
		}
	}
}
