//go:build !windows

package cli

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// watchSize sends the size of the terminal whenever it has changed, until stop.
func watchSize(size func() (rows, cols uint16)) (changes <-chan [2]uint16, stop func()) {
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, syscall.SIGWINCH)
	out, quit := make(chan [2]uint16, 1), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-winch:
			}
			rows, cols := size()
			select {
			case <-out: // one that nobody took is out of date
			default:
			}
			out <- [2]uint16{rows, cols}
		}
	})
	return out, func() {
		signal.Stop(winch)
		close(quit)
		wg.Wait()
	}
}
