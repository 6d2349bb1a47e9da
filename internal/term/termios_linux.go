package term

import "syscall"

const getTermios = syscall.TCGETS
