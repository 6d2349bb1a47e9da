package fakegithub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask sends a request with a token, and returns the status and the body.
func ask(t *testing.T, s *Server, method, path, token string, body any) (int, map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func TestGitDataThatGitHubRefuses(t *testing.T) {
	t.Parallel()
	c := &complaints{TB: t}
	s := New(c, Options{})
	s.AddRepo("acme", "app")
	token := s.Token("acme", map[string]string{"contents": "write"}, "app")
	_, blob := ask(t, s, "POST", "/repos/acme/app/git/blobs", token, map[string]any{"content": "aGk=", "encoding": "base64"})
	if blob["sha"] != "32f95c0d1244a78b2be1bab8de17906fabb2c4a8" {
		t.Fatalf("%v: %s", blob, c.take())
	}
	entry := func(path, mode, kind string, sha any) map[string]any {
		return map[string]any{"tree": []any{map[string]any{"path": path, "mode": mode, "type": kind, "sha": sha}}}
	}
	zero := strings.Repeat("0", 40)
	for name, tt := range map[string]struct {
		path string
		body any
		says string
	}{
		"an unknown mode":         {"git/trees", entry("x", "100645", "blob", blob["sha"]), "100645"},
		"a mode of another type":  {"git/trees", entry("x", "120000", "tree", blob["sha"]), ""},
		"a blob that is not here": {"git/trees", entry("x", "100644", "blob", zero), ""},
		"a tree that is not here": {"git/trees", entry("x", "040000", "tree", zero), ""},
		"a deletion of nothing":   {"git/trees", entry("x", "100644", "blob", nil), ""},
		"a name that is .git":     {"git/trees", entry("a/.GIT/b", "100644", "blob", blob["sha"]), ""},
		"no entries":              {"git/trees", map[string]any{"tree": []any{}}, ""},
		"a field of no request":   {"git/blobs", map[string]any{"content": "x", "mode": "x"}, "unknown field"},
		"a commit of no tree":     {"git/commits", map[string]any{"message": "x", "tree": zero}, ""},
		"a ref of no commit":      {"git/refs", map[string]any{"ref": "refs/heads/x", "sha": zero}, ""},
		"no ref":                  {"git/refs", map[string]any{"ref": "x", "sha": zero}, ""},
	} {
		status, answer := ask(t, s, "POST", "/repos/acme/app/"+tt.path, token, tt.body)
		said := c.take()
		if status < 400 || (tt.says == "") != (said == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %d %v, %q", name, status, answer, said)
		}
	}
	if said := c.take(); said != "" {
		t.Error(said)
	}
}

func TestWhatATokenIsGoodFor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := New(t, Options{Clock: func() time.Time { return now }})
	s.AddRepo("acme", "app")
	s.AddRepo("acme", "lib")
	blob := map[string]any{"content": "x"}
	write := map[string]string{"contents": "write"}
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"its repository":     {s.Token("acme", write, "app"), 201},
		"all of an owner":    {s.Token("acme", write), 201},
		"a person":           {s.UserToken(), 201},
		"another repository": {s.Token("acme", write, "lib"), 404},
		"another owner":      {s.Token("else", write), 404},
		"reading":            {s.Token("acme", map[string]string{"contents": "read"}), 403},
		"nothing":            {"x", 401},
	} {
		if status, answer := ask(t, s, "POST", "/repos/acme/app/git/blobs", tt.token, blob); status != tt.want {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	token := s.Token("acme", write)
	now = now.Add(time.Hour + time.Second)
	if status, _ := ask(t, s, "POST", "/repos/acme/app/git/blobs", token, blob); status != 401 {
		t.Errorf("after an hour: %d", status)
	}
}

// What GitHub's schema does not have is the test's fault.
func TestGraphQLIsChecked(t *testing.T) {
	t.Parallel()
	c := &complaints{TB: t}
	s := New(c, Options{})
	repo := s.AddRepo("acme", "app")
	token := s.Token("acme", map[string]string{"contents": "write"})
	query := func(q string, vars any) (int, map[string]any, string) {
		status, answer := ask(t, s, "POST", "/graphql", token, map[string]any{"query": q, "variables": vars})
		return status, answer, c.take()
	}
	for q, says := range map[string]string{
		`{ repository(owner: "acme", name: "app") { id nameWithOwner } }`:                               "",
		`{ repository(owner: "acme", name: "app") { nam } }`:                                            "nam",
		`{ repository(owner: "acme") { id } }`:                                                          "name",
		`mutation { updateRefs(input: {repositoryId: "x"}) { clientMutationId } }`:                      "refUpdates",
		`mutation($i: UpdateRefsInput!) { updateRefs(input: $i) { clientMutationId } }`:                 "must be defined",
		`mutation { updateRefs(input: {repositoryId: "x", refUpdates: [{name: "x"}]}) { __typename } }`: "afterOid",
	} {
		if status, answer, said := query(q, nil); (says == "") != (status == 200) || (says == "") != (said == "") || !strings.Contains(said, says) {
			t.Errorf("%s: %d %v, %q", q, status, answer, said)
		}
	}
	move := `mutation($i: UpdateRefsInput!) { updateRefs(input: $i) { clientMutationId } }`
	zero := strings.Repeat("0", 40)
	_, answer, said := query(move, map[string]any{"i": map[string]any{
		"repositoryId": repo.nodeID(), "refUpdates": []any{map[string]any{"name": "refs/heads/x", "beforeOid": zero, "afterOid": zero}},
	}})
	if answer["errors"] == nil || said != "" {
		t.Errorf("%v, %q", answer, said)
	}
}
