// Package jail is what the agent server does to the place it wakes up in before it
// serves: it builds the sandbox of provider `local` around itself ([Init]), gives
// up what a container engine left it ([Container]), and starts every process of
// the agent behind one more wall ([Jail.Starter]). It runs inside the sandbox only,
// as a static binary without cgo: dropping capabilities in every thread needs the
// Go runtime to own them all.
//
// # Order
//
// The order is the tried one and most of it is forced. The network comes before
// the old root goes, because its sysctls are written through the host's /proc; so
// does the new proc, which can be mounted only while a fully visible one is there.
// The one recursive read-only call comes after all mounts that shall be read-only
// and before those that must not be. Capabilities go last; after them PID 1 is
// undumpable and has raw default signal actions, so that the kernel drops what an
// agent of the same uid sends it. From then on os/signal must not be used in PID 1,
// and a nil dereference ends the sandbox.
//
// # Walls
//
// An agent's process lives in a second user namespace, one per started command,
// with no capability over the first. That is why it cannot read, trace or enter
// PID 1 although it may have its uid. Processes of different commands do not see
// each other's /proc entries for the same reason.
package jail
