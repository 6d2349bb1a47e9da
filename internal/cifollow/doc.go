// Package cifollow follows the pull requests of a run after its agent has come to rest:
// it looks at their checks and reviews, and asks the agent to mend what failed. It knows
// GitHub only by what it reads of it ([GitHub]), and a run only by what it needs of one
// ([Run]).
//
// # Invariants
//
//   - Everything that a [Watcher] remembers of a round is in the message that it said to
//     the run: whoever takes the run over goes on from there, and no round is said twice.
//   - A pull request is followed for a few rounds at most, and every wait is bounded.
//   - What people and programs wrote on GitHub is data: it is quoted line by line, cut, and
//     rid of everything that is no text. Only people who belong to the repository are
//     quoted at all.
package cifollow
