package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// fitInProcess makes a model of an invented trace as a user does, by this program in a
// process of its own. Its ledgers are in the folder of the trace, and end with it.
func fitInProcess(ctx context.Context, path, tier string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	cmd := exec.CommandContext(ctx, self, "synth", "fit", path, "--tier", tier, "--unit", "user", "--epsilon", "50", "--delta", "1e-6", "--i-understand",
		"--max-input", "4096", "--max-output", "1024", "--ledger", filepath.Join(dir, "ledger"), "--quiet", "-o", "-")
	cmd.Args[0] = "reprise"
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "LOCALAPPDATA="+dir)
	var model, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &model, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return model.Bytes(), nil
}
