// Package doctor looks for what keeps background agents from working on a machine,
// and names one remedy for each problem.
//
// A [Check] has a stable code. Checks run side by side, each within [Bound], so that
// the whole is over in less than three seconds with everything broken. They change
// nothing. Some problems have a remedy that is safe to apply by itself; those name
// the step of package setup that does it, and [Repair] carries it out.
//
// The package asks nothing by itself beyond files and addresses that it is given:
// engines, stores and GitHub come in as functions of [Machine].
package doctor
