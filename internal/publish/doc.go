// Package publish has the tools by which the agent of a run publishes its work on
// GitHub: git_signed_commit, git_signed_rewrite, git_signed_merge and
// create_pull_request. It stands between the sandbox, whose git says what is to be
// published, and package signing, which makes it so; the agent reaches it as an MCP
// server of the host's.
//
// # Invariants
//
//   - The sandbox holds nothing that can write to GitHub. Tokens are asked for by call, for
//     one repository, and go to package signing alone.
//   - What is published is the agent's index, not its working tree. It comes out as a pack
//     into a bare repository of ours ([repo.Desk]); git never runs on the host in what a
//     sandbox can write.
//   - What the sandbox says about itself (its branch, what is in progress, what it has
//     seen) decides about the agent's own comfort only. Which repository is written to is
//     decided by the run, which commits are on GitHub by GitHub, and what descends from
//     what in our bare repository.
//   - A call may be lost at any moment, with this process or without. Called again, a tool
//     finds what was published and says so.
//   - What follows the publication, the sandbox's own refs, may fail with a warning only.
//
// One call at a time works on a repository; others wait. A Publisher may be used by
// several goroutines. The package knows neither the runner nor where tokens come from.
package publish
