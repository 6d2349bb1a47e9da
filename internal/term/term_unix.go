//go:build linux || darwin

package term

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// isTerminal asks for the line discipline's settings, which only a terminal has.
func isTerminal(f *os.File) bool {
	var t syscall.Termios
	return ioctl(f, getTermios, unsafe.Pointer(&t))
}

// width returns the columns of the terminal f, 0 if it has none.
func width(f *os.File) int {
	var size struct{ rows, cols, x, y uint16 }
	if !ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) {
		return 0
	}
	return int(size.cols)
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) bool {
	if f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
		ok = errno == 0
	})
	return err == nil && ok
}

func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
