// Package signing publishes what an agent made: commits, rewritten branches, merges
// and pull requests on GitHub, signed by GitHub itself. It takes a tree that lies in a
// bare repository of ours and a token, and gives back what GitHub made of it. It knows
// nothing of sandboxes, runs or tools, and neither stages nor fetches anything.
//
// GitHub signs a commit that an app makes through the REST API when the request names
// no author and no committer. Unlike createCommitOnBranch of GraphQL, that API has
// modes, symbolic links, submodules and merges.
//
// # Invariants
//
//   - A branch is moved in one request, and only from the commit that the caller saw
//     ([Request.Expected]). A branch that moved meanwhile is an error ([ErrMoved]),
//     never overwritten. Whatever request is interrupted, the branch is the old one
//     or the new one.
//   - Before that, GitHub's tree has the hash of ours, so nothing was lost on the way,
//     and GitHub says that the commit is verified.
//   - The default branch and the base branch are not written to; where it cannot be
//     found out which those are, nothing is.
//   - The token is in no argument, address, file, error or notice. Git on the host runs
//     in our bare repository only, with no hook, filter or configuration.
//
// A [Client] may be used by several goroutines; a bare repository by one call at a
// time.
package signing
