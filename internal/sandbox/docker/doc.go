// Package docker runs sandboxes as containers of a Docker-compatible engine: one
// hardened container a run, made by three calls (create, start, remove) and
// reached over the link only. It is the only importer of github.com/docker/docker.
//
// # Engine
//
// The engine is found as the docker command finds it: DOCKER_HOST, DOCKER_CONTEXT,
// the current context of config.json, the default socket; after that the sockets
// of rootless Docker, Docker Desktop and podman. The values come in as [Options];
// the environment is not read here. The API version is negotiated.
//
// # Transport
//
// On an engine that shares this kernel and file system the run's link directory is
// bound into the container and PID 1 is reached by its unix socket. On any other
// engine the agent server and boot.json are copied into the created container and
// the link is `exec -i CONTAINER insights-agent-server link`. [Options.Transport]
// forces one of the two.
//
// # Traces
//
// Everything that is made carries the labels of the run before it can be lost. The
// container's name is made from the run id, so that a second container for the
// same run is a conflict that the engine itself reports; it is then removed by
// label. AutoRemove stays off: a container that ended by itself keeps its last
// output until Destroy. The bridge network is shared by all runs and stays until
// [Provider.Leftovers] are removed.
package docker
