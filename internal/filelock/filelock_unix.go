//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

func try(f *os.File, mode Mode) (bool, error) {
	how := syscall.LOCK_EX
	if mode == Shared {
		how = syscall.LOCK_SH
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var result error
	err = raw.Control(func(fd uintptr) {
		for {
			result = syscall.Flock(int(fd), how|syscall.LOCK_NB)
			if !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	if errors.Is(result, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil && result == nil, errors.Join(err, result)
}
