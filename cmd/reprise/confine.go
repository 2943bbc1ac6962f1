package main

import (
	"context"

	"github.com/spf13/cobra"

	"reprise/anonymize"
)

// A confiner confines the process for good, see [anonymize.Confine].
type confiner func(read, write []string) anonymize.Confinement

type confinerKey struct{}

// withConfine has commands that look at text confine the process. Only main does,
// whose process ends with the command: tests run many in one.
func withConfine(ctx context.Context, f confiner) context.Context {
	return context.WithValue(ctx, confinerKey{}, f)
}

// confine leaves the process the files that a command needs, and says what could
// not be applied. It returns nil where nothing is to be confined.
func confine(cmd *cobra.Command, read, write []string) *anonymize.Confinement {
	f, ok := cmd.Context().Value(confinerKey{}).(confiner)
	if !ok {
		return nil
	}
	named := func(paths []string) (out []string) {
		for _, p := range paths {
			if p != "" && p != standard {
				out = append(out, p)
			}
		}
		return out
	}
	c := f(named(read), named(write))
	for _, m := range c.Missing() {
		notef(cmd, "not confined: %s", m)
	}
	return &c
}
