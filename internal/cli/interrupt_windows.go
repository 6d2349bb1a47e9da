package cli

import "golang.org/x/sys/windows"

// interruptSelf does what Ctrl-C does where the console makes an event of it.
func interruptSelf() { _ = windows.GenerateConsoleCtrlEvent(windows.CTRL_C_EVENT, 0) }
