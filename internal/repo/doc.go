// Package repo brings repositories into sandboxes and the changes back out. It
// parses addresses ([Parse]), looks at what they name ([Cache.Resolve]), makes the
// mounts that show a repository inside a sandbox ([Cache.Prepare], [Cache.Setup]),
// takes the agent's work out over the link ([Cache.Capture]) and shows or applies
// it ([Cache.Diff], [Cache.Apply]). It knows nothing of GitHub's API, of providers
// or of runs beyond their id.
//
// # Invariants
//
//   - The user's tree, index, configuration and refs are only read; the two
//     exceptions are asked for: refs/insights/<run> when a run is over, and the
//     tree that Apply is pointed at. A repository's files are read through a
//     private git directory of ours (a view) that borrows the objects and holds
//     none of the user's configuration, so that no hook, filter, fsmonitor or
//     external diff of a repository ever runs on the host.
//   - Git never runs on the host in a tree, index or git directory that a sandbox
//     can write. What comes out of a sandbox is a pack, read with a size bound into
//     a bare repository of ours.
//   - What opens a private repository ([Access]) is given to git in the environment of
//     one process, for the one address that it is for, and goes to no other server. It
//     is in no argument, URL, file, mirror or sandbox.
//   - No git process prompts, waits for ever, or inherits the caller's environment:
//     see [Options.Environ]. Every value of the user's stands behind `--` or in a
//     form that cannot be an option.
//   - A checkout in the cache is immutable once it has its final name. It is built
//     beside it under a file lock and renamed. Runs that use one leave a marker in
//     it, which any process can see; a marked checkout is never evicted. Nor is a mirror
//     that the bare repository of a run borrows from.
//
// A Cache may be used by many goroutines, and one state directory by many
// processes.
package repo
