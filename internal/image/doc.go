// Package image knows the images that sandboxes start from: which tag a template
// stands for, the Dockerfile that makes it, whether the image that an engine has
// is still the one that this build would make, and how to build it.
//
// It knows no engine. What it needs of one is the small interface [engine], which
// sandbox/docker implements. An image is fresh when its label [LabelDockerfile] is
// the sha256 of the embedded Dockerfile; no clock and no registry is asked.
//
// Where the base image cannot be pulled, [Builder] bootstraps Debian itself with
// mmdebstrap or debootstrap, says so, and builds on that. The packages are listed
// once, in the Dockerfile, and go into the bootstrap directly, so that the build
// needs no network of its own then.
//
// A file lock keeps two processes from building one image at a time.
package image
