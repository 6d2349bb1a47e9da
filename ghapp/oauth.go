package ghapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// VerifySecret asks GitHub whether a client secret belongs to a client ID. There is no
// call for that, but GitHub looks at both before it looks at the code they come with:
// with a code that cannot exist, the complaint tells which of them is wrong.
func VerifySecret(ctx context.Context, clientID string, clientSecret secret.String, baseURL string, c *http.Client) error {
	const op = "ghapp.VerifySecret"
	if err := checkClientID(clientID); err != nil {
		return err
	}
	if clientSecret.Empty() {
		return errs.New(op, errs.Config, "generate one on the app's settings page", "there is no client secret")
	}
	s, err := newSite(baseURL, "")
	if err != nil {
		return err
	}
	said, err := s.complaint(ctx, clientID, clientSecret, c)
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx, op, "", "while GitHub was asked about the client secret")
	case err != nil:
		return errs.New(op, errs.Unavailable, "check the connection to "+s.web, "ask GitHub about the client secret: %w", plain(err))
	case said == "bad_verification_code":
		return nil
	case said == "Not Found":
		return errs.New(op, errs.Auth, "create the app, or copy the client ID from its settings page",
			"GitHub knows no app with the client ID %s", clientID)
	case said == "incorrect_client_credentials":
		return errs.New(op, errs.Auth, "generate a client secret on the settings page of the app with this client ID",
			"GitHub says %s: the client secret does not belong to the client ID %s", said, clientID)
	}
	return errs.New(op, errs.Unavailable, "", "%w: %q", errInconclusive, said)
}

// errInconclusive is an answer that says nothing about a secret.
var errInconclusive = errors.New("GitHub's answer says nothing about the client secret")

// complaint is GitHub's word for what is wrong with a code that cannot exist.
func (s site) complaint(ctx context.Context, clientID string, clientSecret secret.String, c *http.Client) (string, error) {
	form := url.Values{"client_id": {clientID}, "client_secret": {clientSecret.Reveal()}, "code": {"00000000000000000000"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.web+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := httpClient(c).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return "", fmt.Errorf("%s with no answer in JSON", resp.Status)
	}
	return answer.Error, nil
}
