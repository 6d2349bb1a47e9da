// Package kind is the copy of the original's package of this name: the kinds of reasons
// why a value does not fit.
package kind
