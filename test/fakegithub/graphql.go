package fakegithub

import (
	"cmp"
	_ "embed"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

//go:embed testdata/schema.graphql
var schemaText string

// document is a GraphQL request that the schema allows.
type document struct {
	op   *ast.OperationDefinition
	vars map[string]any
}

// parse checks a request against GitHub's schema.
func (s *Server) parse(r *http.Request) (document, error) {
	var in struct {
		Query         string
		Variables     map[string]any
		OperationName string `json:"operationName"`
	}
	if err := s.decode(r, &in); err != nil {
		return document{}, err
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: schemaText})
	if err != nil {
		return document{}, err
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, in.Query, rules.NewDefaultRules())
	if errs != nil {
		return document{}, errs
	}
	if len(doc.Operations) != 1 {
		return document{}, gqlerror.Errorf("%d operations", len(doc.Operations))
	}
	d := document{op: doc.Operations[0]}
	d.vars, err = validator.VariableValues(schema, d.op, in.Variables)
	return d, err
}

// graphql answers what the signing needs: a repository, and the move of refs.
func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	f := s.begin(OpGraphQL)
	if f.ends(w, s) {
		return
	}
	d, err := s.parse(r)
	if err != nil {
		s.t.Errorf("GitHub's schema does not allow this request: %v", err)
		s.send(w, refusal(http.StatusBadRequest, err.Error()), f)
		return
	}
	s.mu.Lock()
	body := s.execute(d, bearerOf(r))
	s.mu.Unlock()
	a := answer{http.StatusOK, body}
	if body == nil {
		a = refusal(http.StatusUnauthorized, "Bad credentials")
	}
	f.alters(a)
	s.send(w, a, f)
}

// execute runs all fields of an operation. It returns nil where the token is bad.
func (s *Server) execute(d document, bearer string) map[string]any {
	data, problems := map[string]any{}, []any{}
	for _, sel := range d.op.SelectionSet {
		field, ok := sel.(*ast.Field)
		if !ok {
			continue
		}
		args := field.ArgumentMap(d.vars)
		var v any
		var kind, problem string
		switch field.Name {
		case "repository":
			v, kind, problem = s.queryRepository(args, bearer)
		case "updateRefs":
			v, kind, problem = s.updateRefs(args["input"].(map[string]any), bearer)
		case "createCommitOnBranch":
			v, kind, problem = s.commitOnBranch(args["input"].(map[string]any), bearer)
		}
		if kind == "UNAUTHORIZED" {
			return nil
		}
		if problem != "" {
			problems = append(problems, map[string]any{"type": kind, "path": []string{field.Alias}, "message": problem})
			data[field.Alias] = nil
			continue
		}
		data[field.Alias] = d.project(field.SelectionSet, v)
	}
	out := map[string]any{"data": data}
	if len(problems) > 0 {
		out["errors"] = problems
	}
	return out
}

// resolver is a field whose value depends on its arguments.
type resolver func(args map[string]any) any

// project takes out of a value what was selected.
func (d document) project(set ast.SelectionSet, v any) any {
	switch v := v.(type) {
	case []any:
		all := []any{}
		for _, one := range v {
			all = append(all, d.project(set, one))
		}
		return all
	case map[string]any:
		out := map[string]any{}
		d.into(out, set, v)
		return out
	}
	return v
}

func (d document) into(out map[string]any, set ast.SelectionSet, v map[string]any) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if !d.included(sel.Directives) {
				continue
			}
			value := v[sel.Name]
			if f, ok := value.(resolver); ok {
				value = f(sel.ArgumentMap(d.vars))
			}
			out[sel.Alias] = d.project(sel.SelectionSet, value)
		case *ast.InlineFragment:
			if sel.TypeCondition == "" || sel.TypeCondition == v["__typename"] {
				d.into(out, sel.SelectionSet, v)
			}
		}
	}
}

func (d document) included(list ast.DirectiveList) bool {
	if include := list.ForName("include"); include != nil {
		on, _ := include.ArgumentMap(d.vars)["if"].(bool)
		return on
	}
	return true
}

func (s *Server) queryRepository(args map[string]any, bearer string) (v any, kind, problem string) {
	repo := s.repo(args["owner"].(string), args["name"].(string))
	if repo == nil {
		repo = s.renamed[strings.ToLower(args["owner"].(string)+"/"+args["name"].(string))]
	}
	_, refused := s.may(bearer, repo, "metadata", "read")
	if refused != nil && refused.status == http.StatusUnauthorized {
		return nil, "UNAUTHORIZED", ""
	}
	if refused != nil && refused.status == http.StatusNotFound {
		return nil, "NOT_FOUND", "Could not resolve to a Repository with the name '" + args["owner"].(string) + "/" + args["name"].(string) + "'."
	}
	m := map[string]any{
		"id": repo.nodeID(), "nameWithOwner": repo.Owner + "/" + repo.Name, "isArchived": repo.Archived, "url": s.webURL(repo),
		"ref":          resolver(func(args map[string]any) any { return s.queryRef(repo, args["qualifiedName"].(string)) }),
		"pullRequests": resolver(func(args map[string]any) any { return s.queryPulls(repo, args) }),
		"pullRequest":  resolver(func(args map[string]any) any { return s.queryPull(repo, args["number"], bearer) }),
	}
	if s.tip(repo, "refs/heads/"+repo.Default) != "" {
		m["defaultBranchRef"] = map[string]any{"id": "REF_1", "name": repo.Default}
	}
	return m, "", ""
}

func (s *Server) queryRef(repo *Repo, name string) any {
	oid := s.tip(repo, name)
	if oid == "" {
		return nil
	}
	return map[string]any{"id": "REF_" + name, "name": strings.TrimPrefix(name, "refs/heads/"), "target": s.queryCommit(repo, oid)}
}

func (s *Server) queryCommit(repo *Repo, oid string) map[string]any {
	text, err := s.command(repo.Dir, nil, nil, "cat-file", "commit", oid)
	if err != nil {
		s.t.Errorf("read %s: %v", oid, err)
	}
	head, message, _ := strings.Cut(text, "\n\n")
	parents := []any{}
	c := map[string]any{"__typename": "Commit", "id": "C_" + oid, "oid": oid, "message": message, "url": s.webURL(repo) + "/commit/" + oid}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c["tree"] = map[string]any{"id": "T_" + value, "oid": value}
		case "parent":
			parents = append(parents, map[string]any{"id": "C_" + value, "oid": value})
		case "gpgsig":
			c["signature"] = map[string]any{"isValid": true, "state": "VALID", "wasSignedByGitHub": true}
		}
	}
	c["parents"] = map[string]any{"nodes": parents, "totalCount": len(parents)}
	return c
}

func (s *Server) queryPulls(repo *Repo, args map[string]any) any {
	all := []any{}
	for _, p := range repo.pulls {
		if p.Closed || args["headRefName"] != nil && args["headRefName"] != p.Head {
			continue
		}
		all = append(all, map[string]any{
			"number": p.Number, "baseRefName": p.Base, "headRefName": p.Head, "isDraft": p.Draft, "isCrossRepository": p.CrossForks, "state": "OPEN",
		})
	}
	return map[string]any{"nodes": all, "totalCount": len(all)}
}

// updateRefs moves all refs or none.
func (s *Server) updateRefs(in map[string]any, bearer string) (v any, kind, problem string) {
	var repo *Repo
	for _, r := range s.repos {
		if r.nodeID() == in["repositoryId"] {
			repo = r
		}
	}
	if _, refused := s.may(bearer, repo, "contents", "write"); refused != nil {
		if refused.status == http.StatusUnauthorized {
			return nil, "UNAUTHORIZED", ""
		}
		return nil, "FORBIDDEN", "Resource not accessible by integration"
	}
	var todo strings.Builder
	todo.WriteString("start\n")
	for _, one := range in["refUpdates"].([]any) {
		u := one.(map[string]any)
		name, after, before := u["name"].(string), u["afterOid"].(string), text(u["beforeOid"])
		force, _ := u["force"].(bool)
		tip := s.tip(repo, name)
		switch {
		case before != "" && before != tip && (before != noOID || tip != ""):
			return nil, "STALE_DATA", "Expected ref to point to \"" + before + "\" but it did not."
		case after == noOID && tip == "":
			return nil, "UNPROCESSABLE", "Reference does not exist"
		case after == noOID:
			todo.WriteString("delete " + name + " " + tip + "\n")
			continue
		case !s.has(repo, "commit", after):
			return nil, "UNPROCESSABLE", "Object does not exist"
		case tip != "" && !force && !s.descends(repo, after, tip):
			return nil, "UNPROCESSABLE", "Update is not a fast forward"
		}
		todo.WriteString("update " + name + " " + after + " " + cmp.Or(tip, noOID) + "\n")
	}
	todo.WriteString("commit\n")
	if _, err := s.command(repo.Dir, nil, []byte(todo.String()), "update-ref", "--stdin"); err != nil {
		return nil, "UNPROCESSABLE", err.Error()
	}
	return map[string]any{"clientMutationId": nil}, "", ""
}

// noOID is the name of no object: what a ref is that does not exist.
const noOID = "0000000000000000000000000000000000000000"

func text(v any) string {
	t, _ := v.(string)
	return t
}

func (s *Server) descends(repo *Repo, oid, from string) bool {
	_, err := s.command(repo.Dir, nil, nil, "merge-base", "--is-ancestor", from, oid)
	return err == nil
}

// Archive makes a repository one that can only be read.
func (s *Server) Archive(r *Repo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Archived = true
}

// Rename gives a repository another name. GraphQL still finds it by the old one.
func (s *Server) Rename(r *Repo, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renamed == nil {
		s.renamed = map[string]*Repo{}
	}
	s.renamed[strings.ToLower(r.Owner+"/"+r.Name)] = r
	r.Name = name
}
