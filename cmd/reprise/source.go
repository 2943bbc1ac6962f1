package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// sayCapture tells from when to when a trace was recorded, if that was declared.
func sayCapture(cmd *cobra.Command, c trace.Capture) {
	if begin, end := c.Texts(); end != "" {
		cli.Notef(cmd, "capture declared: %v, from %s to %s; times count from its begin", c.Length(), begin, end)
	}
}

// templatesName is the name of the file of templates beside a trace.
func templatesName(path string) string {
	return strings.TrimSuffix(path, ".parquet") + ".templates.json"
}
