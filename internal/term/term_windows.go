package term

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// The two ways Windows says that the other end of a pipe is closed.
const (
	errorBrokenPipe = syscall.Errno(109)
	errorNoData     = syscall.Errno(232)
)

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(f.Fd()), &mode) == nil
}

// width returns the columns of the console's window, 0 if f is no console.
func width(f *os.File) int {
	if f == nil {
		return 0
	}
	var info struct {
		size, cursor             [2]int16
		attributes               uint16
		left, top, right, bottom int16
		maximum                  [2]int16
	}
	get := syscall.NewLazyDLL("kernel32.dll").NewProc("GetConsoleScreenBufferInfo")
	if r, _, _ := get.Call(f.Fd(), uintptr(unsafe.Pointer(&info))); r == 0 {
		return 0
	}
	return int(info.right-info.left) + 1
}

func isClosedPipe(err error) bool {
	return errors.Is(err, errorBrokenPipe) || errors.Is(err, errorNoData)
}
