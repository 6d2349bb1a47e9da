package agentserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// audience is who a token of the HTTP surface must be for.
const audience = "insights:sandbox_connection"

var (
	errOtherRun = errors.New("the token is for another run")
	errNoKey    = errors.New("this sandbox has no key to check tokens with")
)

// claims are those of a connection token that matter here.
type claims struct {
	RunID string `json:"run_id"`
	jwt.RegisteredClaims
}

// checkToken checks the value of an Authorization header. Dependency golang-jwt: the
// signature, the times and the audience of a token are not ours to re-invent.
func (h *surface) checkToken(header string) error {
	boot := h.server.boot
	token, isBearer := strings.CutPrefix(header, "Bearer ")
	if !isBearer {
		return errors.New("a bearer token is needed")
	}
	if len(boot.JWTKey) == 0 {
		return errNoKey
	}
	key, err := jwt.ParseRSAPublicKeyFromPEM(boot.JWTKey)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoKey, err)
	}
	var c claims
	_, err = jwt.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if kid, named := t.Header["kid"]; named && boot.JWTKeyID != "" && kid != boot.JWTKeyID {
			return nil, fmt.Errorf("unknown key %q", kid)
		}
		return key, nil
	}, jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired())
	switch {
	case err != nil:
		return err
	case c.RunID != boot.Run:
		return errOtherRun
	}
	return nil
}

// tokenCode is the protocol's word for what is wrong with a token.
func tokenCode(err error) string {
	switch {
	case errors.Is(err, errNoKey):
		return "server_error"
	case errors.Is(err, jwt.ErrTokenExpired):
		return "expired"
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "invalid_signature"
	}
	return "invalid_token"
}
