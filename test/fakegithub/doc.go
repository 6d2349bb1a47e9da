// Package fakegithub is a GitHub for tests, over HTTP: the pages on which a person
// turns a manifest into a GitHub App, and the API for it. It keeps state, as the real
// one does: names are taken once, codes are good once, keys belong to their app.
//
// What the API is asked and what it answers are checked against GitHub's own OpenAPI
// description (testdata, made by openapigen), so that the fake cannot drift into what
// only its tests believe. The description allows fields that it does not name and says
// nothing about the pages; the rules for those are written here from GitHub's
// documentation and from what other projects met. An answer that a [Fault] asked for
// is sent unchecked.
//
// Repositories are real ones: the git data of the API, GraphQL (checked against
// GitHub's schema, cut by graphqlgen) and git's own http-backend share a bare repository,
// so that a hash is what it would be on GitHub, and whatever was published can be
// fetched.
//
// The same server is github.com and a GitHub Enterprise Server: the API is served at
// the root and below /api/v3.
package fakegithub
