// Package bypass holds no code of the product: its tests are the proof that nothing leaves a
// restricted sandbox. Each row of the table is an attempt to get some bytes, a token, out of
// a real sandbox of each local provider, and is judged by what arrived where it should not,
// never by what the attempt itself says. The same row, run where it is allowed or where
// nothing is enforced, has to make its token arrive: a row that cannot do that proves
// nothing.
//
// The tests bring an internet along: they run in a network namespace of their own in which
// every address is this machine's, so that 8.8.8.8, 169.254.169.254 and ::1 are all there,
// log all that they get, and are nobody's real servers. The host's side of the sandboxes, a
// package egress without any exception for tests, runs in it too. What would be reached past
// all that, because a sandbox has a network after all, are servers in the namespace that the
// tests were started in.
package bypass
