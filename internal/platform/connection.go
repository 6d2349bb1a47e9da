package platform

import (
	"crypto/rsa"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// ConnectionTTL is how long a connection token is good for.
const ConnectionTTL = 24 * time.Hour

// connectionAudience is who a connection token is for.
const connectionAudience = "insights:sandbox_connection"

// connectionClaims are what the agent server's HTTP surface is told of a caller.
type connectionClaims struct {
	RunID      string `json:"run_id"`
	TaskID     string `json:"task_id"`
	TeamID     int64  `json:"team_id"`
	UserID     int64  `json:"user_id"`
	DistinctID string `json:"distinct_id"`
	Mode       string `json:"mode"`
	jwt.RegisteredClaims
}

// ConnectionToken signs a token (RS256) that lets its bearer talk to the published
// agent server of one run. keyID is that of key's public half. Dependency golang-jwt:
// the agent server checks with the same library.
func ConnectionToken(key *rsa.PrivateKey, keyID string, spec task.Spec, now time.Time) (secret.String, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, connectionClaims{
		RunID: string(spec.Run), TaskID: string(spec.Task), TeamID: spec.Team, UserID: spec.User,
		DistinctID: strconv.FormatInt(spec.User, 10), Mode: string(spec.Mode),
		RegisteredClaims: jwt.RegisteredClaims{
			Audience:  jwt.ClaimStrings{connectionAudience},
			ExpiresAt: jwt.NewNumericDate(now.Add(ConnectionTTL)),
		},
	})
	t.Header["kid"] = keyID
	signed, err := t.SignedString(key)
	if err != nil {
		return secret.String{}, errs.New("platform.ConnectionToken", errs.Internal, "", "sign connection token: %w", err)
	}
	return secret.New(signed), nil
}
