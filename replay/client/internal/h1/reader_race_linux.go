//go:build linux && (amd64 || arm64) && race

package h1

import "syscall"

// readOrdered tells the race detector that what a peer in this process did before it wrote came
// before the read. Reads of package net tell it in syscall.Read, which recvmsg does not
// pass; so does a read of no bytes.
func readOrdered(fd uintptr) { syscall.Read(int(fd), nil) }
