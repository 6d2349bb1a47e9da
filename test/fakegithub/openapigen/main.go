// Command openapigen cuts GitHub's OpenAPI description down to the operations that
// the fake serves: whatever their $refs lead to, and nothing else. Examples go too:
// one of them is a private key, which every scanner for secrets would find here. It
// takes the package as it was published and refuses any other:
//
//	npm pack @octokit/openapi@23.0.2
//	go run ./test/fakegithub/openapigen octokit-openapi-23.0.2.tgz test/fakegithub/testdata
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// The published package: @octokit/openapi 23.0.2 (MIT).
const (
	archiveSum  = "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c"
	description = "package/generated/api.github.com.json"
	licence     = "package/LICENSE"
)

// operations are what the fake serves.
func operations() map[string][]string {
	return map[string][]string{
		"/app":                              {"get"},
		"/app-manifests/{code}/conversions": {"post"},

		"/app/installations/{installation_id}/access_tokens": {"post"},
		"/installation/token":                                {"delete"},
		"/repos/{owner}/{repo}/installation":                 {"get"},
		"/orgs/{org}/installation":                           {"get"},
		"/users/{username}/installation":                     {"get"},

		"/repos/{owner}/{repo}/git/blobs":                    {"post"},
		"/repos/{owner}/{repo}/git/trees":                    {"post"},
		"/repos/{owner}/{repo}/git/commits":                  {"post"},
		"/repos/{owner}/{repo}/git/refs":                     {"post"},
		"/repos/{owner}/{repo}/merges":                       {"post"},
		"/repos/{owner}/{repo}/pulls":                        {"get", "post"},
		"/repos/{owner}/{repo}/pulls/{pull_number}":          {"get"},
		"/repos/{owner}/{repo}/pulls/{pull_number}/reviews":  {"get"},
		"/repos/{owner}/{repo}/commits/{ref}/check-runs":     {"get"},
		"/repos/{owner}/{repo}/commits/{ref}/status":         {"get"},
		"/repos/{owner}/{repo}/actions/runs":                 {"get"},
		"/repos/{owner}/{repo}/issues/{issue_number}/labels": {"post"},
	}
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: openapigen OCTOKIT-OPENAPI.tgz DIR")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal("openapigen: ", err)
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
	files, err := extract(data, description, licence)
	if err != nil {
		return err
	}
	pruned, err := prune(files[description])
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "api.github.com.json"), pruned, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "api.github.com.LICENSE"), files[licence], 0o644)
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
		for _, name := range names {
			if h.Name != name {
				continue
			}
			if files[name], err = io.ReadAll(tr); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

type object = map[string]any

// prune keeps the operations and the components they lead to.
func prune(data []byte) ([]byte, error) {
	var doc object
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	paths := object{}
	for path, methods := range operations() {
		kept := object{}
		for _, method := range methods {
			op, ok := child(doc, "paths", path)[method]
			if !ok {
				return nil, fmt.Errorf("the description has no %s %s", method, path)
			}
			kept[method] = op
		}
		paths[path] = kept
	}
	dropExamples(paths)
	components := object{}
	keep(doc, components, paths)
	// The permissions that a manifest may ask for have no operation of their own.
	keep(doc, components, object{"$ref": "#/components/schemas/app-permissions"})
	out := object{"openapi": doc["openapi"], "info": doc["info"], "paths": paths, "components": components}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(out)
	return b.Bytes(), err
}

// keep copies what node refers to into components, and what that refers to.
func keep(doc, components object, node any) {
	switch n := node.(type) {
	case []any:
		for _, v := range n {
			keep(doc, components, v)
		}
	case object:
		for _, v := range n {
			keep(doc, components, v)
		}
		ref, _ := n["$ref"].(string)
		section, name, ok := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
		if !ok || child(components, section)[name] != nil {
			return
		}
		if components[section] == nil {
			components[section] = object{}
		}
		found := child(doc, "components", section)[name]
		child(components, section)[name] = found
		keep(doc, components, found)
	}
}

// dropExamples takes the examples out of the bodies below node.
func dropExamples(node any) {
	n, _ := node.(object)
	for key, v := range n {
		if key == "content" {
			for _, body := range child(n, key) {
				if b, ok := body.(object); ok { // else it is a property of that name
					delete(b, "examples")
				}
			}
		}
		dropExamples(v)
	}
}

// child walks down into objects; what is missing is empty.
func child(o object, path ...string) object {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	return o
}
