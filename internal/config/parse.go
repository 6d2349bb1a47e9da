package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// parse reads the text of a setting. Its errors never repeat a secret.
func (s Setting) parse(text string, at place) (any, error) {
	if s.Secret {
		return secret.New(text), nil
	}
	switch s.Type {
	case TypeBool:
		return parseBool(text), nil
	case TypeInt:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return n, nil
	case TypeFloat:
		return ParseCPUs(text)
	case TypeAmount:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			return nil, fmt.Errorf("%q is not an amount such as 2 or 0.5", text)
		}
		return f, nil
	case TypeSize:
		return ParseMemory(text)
	case TypeDuration:
		return ParseDuration(text)
	case TypeURL:
		return parseURL(text)
	case TypeOrigin:
		return parseOrigin(text)
	case TypePath:
		return parsePath(text, at)
	case TypeMounts:
		return ParseMounts(text, at.home)
	case TypeList:
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }), nil
	case TypeServers:
		return parseServers(text)
	case TypeEnvironments:
		return parseEnvironments(text)
	}
	return text, nil
}

// place is what relative texts are relative to.
type place struct{ dir, home string }

// parseBool takes everything that does not say no for yes: DEBUG is also the
// variable by which other programs name what they want logged (DEBUG=app:*).
func parseBool(text string) bool {
	switch strings.ToLower(text) {
	case "0", "false", "f", "no", "n", "off":
		return false
	}
	return true
}

// ParseCPUs reads a number of processor cores; 0 is the provider's default.
func ParseCPUs(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 4096 {
		return 0, fmt.Errorf("%q is not a number of cores such as 2 or 0.5", text)
	}
	return f, nil
}

// ParseMemory reads an amount of memory such as 512m, 8g or 1.5GiB and returns it
// in MiB; a bare number counts MiB, 0 is the provider's default.
func ParseMemory(text string) (int64, error) {
	wrong := fmt.Errorf("%q is not an amount of memory such as 512m or 8g", text)
	t := strings.ToLower(text)
	for _, suffix := range []string{"ib", "b"} {
		if cut, ok := strings.CutSuffix(t, suffix); ok {
			t = cut
			break
		}
	}
	unit := 1.0
	if i := len(t) - 1; i >= 0 {
		switch t[i] {
		case 'm':
			t = t[:i]
		case 'g':
			t, unit = t[:i], 1<<10
		case 't':
			t, unit = t[:i], 1<<20
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > 1<<40 {
		return 0, wrong
	}
	mib := int64(n * unit)
	if mib == 0 && n != 0 || mib > 0 && mib < 6 {
		return 0, fmt.Errorf("%q is less than the 6m that a sandbox needs at least", text)
	}
	return mib, nil
}

// ParseDuration reads a length of time such as 90s, 30m or 3h; 0 is none.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a length of time such as 90s, 30m or 3h", text)
	}
	return d, nil
}

func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("not an http:// or https:// URL") // may hold a password: not repeated
	}
	return text, nil
}

// parseOrigin reads the address of a server that is told secrets.
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(text, "?#"):
		return "", errors.New("not an address such as https://github.example.com, with nothing but the host") // may hold a password: not repeated
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return text, nil
	}
	return "", errors.New("not an https:// address")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// HideUserinfo hides what a URL has before the @ of its host: a password, or a token in
// the place of a user.
func HideUserinfo(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = nil
	return strings.Replace(u.String(), "://", "://"+secret.Hidden+"@", 1)
}

// parsePath makes a path absolute. ~ is expanded, because nothing else does it for
// a value from an env file of a service manager.
func parsePath(text string, at place) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") {
		if at.home == "" {
			return "", fmt.Errorf("%q uses ~, but HOME is not set", text)
		}
		text = at.home + text[1:]
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(at.dir, text)
	}
	return filepath.Clean(text), nil
}
