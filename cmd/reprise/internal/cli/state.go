package cli

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
)

type stateKey struct{}

// WithState has commands keep what they must remember of this user in a folder: releases that count, wherever the
// traces are, and what they learnt of servers. Only main gives that of the user: tests have one of their own.
func WithState(ctx context.Context, folder string) context.Context {
	return context.WithValue(ctx, stateKey{}, folder)
}

// StateFolder is the folder of [WithState]. It is empty where nothing is remembered.
func StateFolder(cmd *cobra.Command) string {
	if cmd.Context() == nil {
		return ""
	}
	folder, _ := cmd.Context().Value(stateKey{}).(string)
	return folder
}

// UserState is where programs keep what they must remember of this user: that of the XDG
// base directories, also on macOS. It is empty where the user has none.
func UserState() string {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "reprise")
	}
	if folder := os.Getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && folder != "" {
		return filepath.Join(folder, "reprise")
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "reprise")
	}
	return ""
}
