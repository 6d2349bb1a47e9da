// Package e2e has the tests that drive the built program with the agents themselves,
// Claude Code, Codex and one that speaks ACP, each in Docker and in local sandboxes,
// against a model whose prompts carry their script (test/fakemodel). `make e2e` runs
// them alone; .ci/agents fetches the agents.
//
// A test gets a world of its own: a state directory, a home, a repository and a model,
// all gone at its end, when it also looks for what the runs have left behind and for
// the real keys where they must not be. No test measures time: where one must come
// between two things, the script holds the model until the test lets it go on.
package e2e
