package fakegithub

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

//go:embed testdata/api.github.com.json
var description []byte

// spec is GitHub's description of its API.
type spec struct {
	doc    *openapi3.T
	router routers.Router
}

func loadSpec() (*spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	doc.Servers = nil // any host
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	return &spec{doc: doc, router: router}, nil
}

// strict are the options of every check. Tokens are checked by the operations.
func strict() *openapi3filter.Options {
	return &openapi3filter.Options{
		MultiError:            true,
		IncludeResponseStatus: true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
	}
}

// request checks a request, and finds its operation.
func (sp *spec) request(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := sp.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.EscapedPath(), err)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: strict()}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		return in, fmt.Errorf("%s %s: %w", r.Method, r.URL.EscapedPath(), err)
	}
	// The description names no body for any of these operations.
	if route.Operation.RequestBody == nil && r.Body != nil {
		if n, err := io.Copy(io.Discard, r.Body); n > 0 || err != nil {
			return in, errors.Join(fmt.Errorf("%s %s: a body of %d bytes", r.Method, r.URL.EscapedPath(), n), err)
		}
	}
	return in, nil
}

// response checks an answer.
func (sp *spec) response(ctx context.Context, in *openapi3filter.RequestValidationInput, status int, h http.Header, body []byte) error {
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: h,
		Body: io.NopCloser(bytes.NewReader(body)), Options: strict(),
	}
	if err := openapi3filter.ValidateResponse(ctx, out); err != nil {
		return fmt.Errorf("answer %d to %s %s: %w", status, in.Request.Method, in.Request.URL.EscapedPath(), err)
	}
	return nil
}

// permissions checks what a manifest asks for. The schema lets unknown names pass, and
// GitHub does not.
func (sp *spec) permissions(want map[string]string) error {
	schema := sp.doc.Components.Schemas["app-permissions"].Value
	value := map[string]any{}
	for name, level := range want {
		if schema.Properties[name] == nil {
			return fmt.Errorf("%q is no permission", name)
		}
		value[name] = level
	}
	return schema.VisitJSON(value, openapi3.MultiErrors())
}
