//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is one attempt, and result what it said; the parent has the same shapes.
type job struct {
	Name   string
	Script string
	Env    []string
	Alone  bool
}

type result struct {
	Name   string
	Output string
}

const (
	atOnce    = 12
	jobTime   = 40 * time.Second
	maxOutput = 8 << 10
)

// runAll runs the jobs that it reads, those that are to be alone at the end, and writes what
// each said.
func runAll([]string) error {
	var jobs []job
	if err := json.NewDecoder(os.Stdin).Decode(&jobs); err != nil {
		return err
	}
	results := make([]result, len(jobs))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, j := range jobs {
		if j.Alone {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = j.run()
		})
	}
	wg.Wait()
	for i, j := range jobs {
		if j.Alone {
			results[i] = j.run()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func (j job) run() result {
	ctx, cancel := context.WithTimeout(context.Background(), jobTime)
	defer cancel()
	dir, err := os.MkdirTemp("/tmp", "try-")
	if err != nil {
		return result{j.Name, err.Error()}
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", j.Script)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), j.Env...), "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err != nil {
		out.WriteString("\n(" + err.Error() + ")")
	}
	text := out.String()
	if len(text) > maxOutput {
		text = text[:maxOutput]
	}
	return result{j.Name, strings.ToValidUTF8(strings.TrimSpace(text), "?")}
}

// off runs a command where nothing is enforced, with names looked up at 127.0.0.1 and an
// empty /run in which the sockets of the first argument, a directory, lie at the paths that
// a sandbox would look for them.
func off(args []string) error {
	// The process was made in a mount namespace of its own: a call of this one would be of
	// one thread, and the next mount perhaps of another.
	mine, err := os.Readlink("/proc/self/ns/mnt")
	theirs, err2 := os.Readlink("/proc/" + strconv.Itoa(os.Getppid()) + "/ns/mnt")
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if mine == theirs {
		return errors.New("not in a mount namespace of its own")
	}
	resolver := args[0] + "/resolv.conf"
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.WriteFile(resolver, []byte("nameserver 127.0.0.1\n"), 0o644),
		unix.Mount(resolver, "/etc/resolv.conf", "", unix.MS_BIND, ""),
	); err != nil {
		return err
	}
	for name, text := range map[string]string{"nsswitch.conf": "hosts: files dns\n", "hosts": "127.0.0.1 localhost\n"} {
		own := args[0] + "/" + name
		if err := errors.Join(os.WriteFile(own, []byte(text), 0o644), unix.Mount(own, "/etc/"+name, "", unix.MS_BIND, "")); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, path := range []string{"/run/insights/agent.sock", "/run/docker.sock", "/run/containerd/containerd.sock"} {
		ln := args[0] + "/sock"
		if err := errors.Join(os.MkdirAll(path[:strings.LastIndex(path, "/")], 0o755), os.Symlink(ln, path)); err != nil {
			return err
		}
	}
	return unix.Exec(args[1], args[1:], os.Environ())
}

// serve answers every connection to an address with one line, forever.
func serve(args []string) error {
	ln, err := net.Listen(args[0], args[1])
	if err != nil {
		return err
	}
	os.Stdout.WriteString("listening\n")
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(talkTime))
			c.Write([]byte(args[2] + "\n"))
			c.Read(make([]byte, 64))
		}()
	}
}
