// Command graphqlgen cuts GitHub's GraphQL schema down to the fields that the fake
// answers, with the inputs, enums and scalars that these need whole. It takes the
// package as it was published and refuses any other (15.26 defines fields twice):
//
//	npm pack @octokit/graphql-schema@15.25.0
//	go run ./test/fakegithub/graphqlgen octokit-graphql-schema-15.25.0.tgz test/fakegithub/testdata
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// The published package: @octokit/graphql-schema 15.25.0 (MIT).
const (
	archiveSum = "849df23016f61e3b093b8f37ae34a97efd284b5edef43d070b1e8e934a098a03"
	schema     = "package/schema.graphql"
	licence    = "package/LICENSE.md"
)

// kept are the fields that the fake answers, by type.
func kept() map[string]string {
	signature := "isValid state wasSignedByGitHub"
	return map[string]string{
		"Query":                 "repository",
		"Mutation":              "updateRefs createCommitOnBranch",
		"Repository":            "id nameWithOwner isArchived url defaultBranchRef ref pullRequest pullRequests",
		"Ref":                   "id name target",
		"Node":                  "id",
		"GitObject":             "id oid",
		"Commit":                "id oid message tree parents signature url",
		"Tree":                  "id oid",
		"Blob":                  "id oid",
		"Tag":                   "id oid",
		"CommitConnection":      "nodes totalCount",
		"GitSignature":          signature,
		"GpgSignature":          signature,
		"SmimeSignature":        signature,
		"SshSignature":          signature,
		"UnknownSignature":      signature,
		"PullRequestConnection": "nodes totalCount",
		"PullRequest":           "id number url isDraft baseRefName headRefName isCrossRepository state reviewThreads",
		"UpdateRefsPayload":     "clientMutationId",

		"CreateCommitOnBranchPayload":        "clientMutationId commit ref",
		"PullRequestReviewThreadConnection":  "nodes totalCount",
		"PullRequestReviewThread":            "id isResolved isOutdated path line comments",
		"PullRequestReviewCommentConnection": "nodes totalCount",
		"PullRequestReviewComment":           "id author authorAssociation body url",
		"Actor":                              "login",
		"Bot":                                "id login",
		"User":                               "id login",
	}
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: graphqlgen OCTOKIT-GRAPHQL-SCHEMA.tgz DIR")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal("graphqlgen: ", err)
	}
}

func run(archive, dir string) error {
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != archiveSum {
		return fmt.Errorf("%s is not the published package: its SHA-256 is %x", archive, sum)
	}
	files, err := extract(data, schema, licence)
	if err != nil {
		return err
	}
	doc, err := parser.ParseSchema(&ast.Source{Name: schema, Input: string(files[schema])})
	if err != nil {
		return err
	}
	if err := prune(doc); err != nil {
		return err
	}
	var out bytes.Buffer
	formatter.NewFormatter(&out, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	if err := os.WriteFile(filepath.Join(dir, "schema.graphql"), out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "schema.graphql.LICENSE"), files[licence], 0o644)
}

func extract(archive []byte, names ...string) (map[string][]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(zr); len(files) < len(names); {
		h, err := tr.Next()
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", strings.Join(names, " and "), err)
		}
		if !slices.Contains(names, h.Name) {
			continue
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// prune keeps the fields of kept, and what their arguments and values are made of.
func prune(doc *ast.SchemaDocument) error {
	fields := kept()
	p := pruner{doc: doc, need: map[string]bool{}}
	for name, list := range fields {
		d := doc.Definitions.ForName(name)
		if d == nil {
			return fmt.Errorf("the schema has no type %s", name)
		}
		p.need[name] = true
		if err := keepFields(d, strings.Fields(list)); err != nil {
			return err
		}
		d.Interfaces = slices.DeleteFunc(d.Interfaces, func(i string) bool { return fields[i] == "" })
		for _, f := range d.Fields {
			if err := p.follow(f.Type, f.Arguments); err != nil {
				return fmt.Errorf("%s.%s: %w", name, f.Name, err)
			}
		}
	}
	doc.Definitions = slices.DeleteFunc(doc.Definitions, func(d *ast.Definition) bool { return !p.need[d.Name] })
	doc.Directives, doc.Extensions = nil, nil
	return nil
}

func keepFields(d *ast.Definition, names []string) error {
	for _, name := range names {
		if d.Fields.ForName(name) == nil {
			return fmt.Errorf("the schema has no %s.%s", d.Name, name)
		}
	}
	d.Directives = nil
	d.Fields = slices.DeleteFunc(d.Fields, func(f *ast.FieldDefinition) bool { return !slices.Contains(names, f.Name) })
	for _, f := range d.Fields {
		f.Directives = nil
		for _, a := range f.Arguments {
			a.Directives = nil
		}
	}
	return nil
}

type pruner struct {
	doc  *ast.SchemaDocument
	need map[string]bool
}

// follow needs the type of a field and those of its arguments.
func (p *pruner) follow(t *ast.Type, args ast.ArgumentDefinitionList) error {
	if err := p.want(t.Name()); err != nil {
		return err
	}
	for _, a := range args {
		if err := p.want(a.Type.Name()); err != nil {
			return err
		}
	}
	return nil
}

// want needs a type: an object must be listed, anything else is kept whole.
func (p *pruner) want(name string) error {
	d := p.doc.Definitions.ForName(name)
	if d == nil || p.need[name] { // the scalars of the language are not defined
		return nil
	}
	if d.Kind == ast.Object || d.Kind == ast.Interface || d.Kind == ast.Union {
		if kept()[name] == "" {
			return fmt.Errorf("the type %s is not kept", name)
		}
		return nil
	}
	p.need[name] = true
	d.Directives = nil
	for _, v := range d.EnumValues {
		v.Directives = nil
	}
	for _, f := range d.Fields {
		f.Directives = nil
		if err := p.follow(f.Type, f.Arguments); err != nil {
			return err
		}
	}
	return nil
}
