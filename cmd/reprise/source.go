package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// captureWords tell from when to when a trace was recorded, if that was declared.
func captureWords(c trace.Capture) string {
	begin, end := c.Texts()
	if end == "" {
		return ""
	}
	return fmt.Sprintf("capture declared: %v, from %s to %s; times count from its begin", c.Length(), begin, end)
}

// templatesName is the name of the file of templates beside a trace.
func templatesName(path string) string {
	return strings.TrimSuffix(path, ".parquet") + ".templates.json"
}

// writeTemplates writes the system prompts that many users share, for their owner alone.
func writeTemplates(cmd *cobra.Command, path string, t *anonymize.Templates) error {
	if t.Unit() == "" {
		cli.Notef(cmd, "templates: none, since the source names neither users nor sessions")
	} else {
		cli.Notef(cmd, "templates: %d system prompts in %s; A PERSON MUST READ THEM before anybody else gets the file", t.Len(), path)
	}
	return trace.WriteFile(path, 0o600, t.WriteJSON)
}
