//go:build !linux && !darwin

package replay

func (h *Host) system() {}
