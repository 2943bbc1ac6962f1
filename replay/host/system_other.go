//go:build !linux && !darwin

package host

func (h *Machine) system() {}
