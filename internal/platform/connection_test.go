package platform

import (
	"crypto/rand"
	"crypto/rsa"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/Insights/insightscli/internal/task"
)

func TestConnectionTokenNamesItsRun(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	spec := task.Spec{Run: "r", Task: "k", Team: 7, User: 9, Mode: task.ModeBackground}
	token, err := ConnectionToken(key, "id", spec, now)
	if err != nil {
		t.Fatal(err)
	}
	var c connectionClaims
	parsed, err := jwt.ParseWithClaims(token.Reveal(), &c, func(*jwt.Token) (any, error) { return key.Public(), nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience("insights:sandbox_connection"), jwt.WithExpirationRequired())
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Header["kid"] != "id" || c.RunID != "r" || c.TaskID != "k" || c.TeamID != 7 || c.UserID != 9 || c.DistinctID != "9" || c.Mode != "background" {
		t.Errorf("header %v, claims %+v", parsed.Header, c)
	}
	if got := c.ExpiresAt.Sub(now); got > ConnectionTTL || got < ConnectionTTL-time.Minute {
		t.Errorf("good for %s", got)
	}
}
