// Package ghapp makes a GitHub App by the App Manifest flow and checks that its key
// and its secret work.
//
// [Start] listens on this machine and serves one page, which posts a manifest to
// GitHub. A person clicks "Create GitHub App" there; GitHub sends the browser back with
// a code; [Session.Wait] trades the code for the app, once. Where no browser can reach
// this machine, [Manual] does the same with a file and a pasted address. [Verify] and
// [VerifySecret] ask GitHub whether what was received, or what stands in a .env, is
// right. [Installations] mints short-lived tokens for repositories with the key, and a
// [Source] keeps one fresh.
//
// # Invariants
//
// A code is traded at most once in a session, whatever a browser does. What GitHub
// answered is on disk (Options.Keep) before anything looks at it, and stays there until
// [Session.Confirm]: GitHub shows the key and the secret only this once. The listener
// accepts connections from this machine only, and ends with the context of Wait or with
// [Session.Close], which waits for all that was started, except a browser command that
// still runs.
//
// The package prints nothing, asks nothing and reads no environment. It writes no .env;
// that is the caller's.
package ghapp
