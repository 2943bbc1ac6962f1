//go:build !unix

package bench

import (
	"os"
	"syscall"
)

// There are no groups of processes here: only the first one is ended, and not asked.

func ownGroup() *syscall.SysProcAttr { return nil }

func askGroup(p *os.Process) { _ = p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() }

// lockDir succeeds for everyone, where there are no locks.
func lockDir(string) (unlock func(), err error) { return func() {}, nil }
