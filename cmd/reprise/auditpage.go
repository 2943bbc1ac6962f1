package main

import (
	"github.com/spf13/cobra"

	"reprise/anonymize/audit"
)

// writeAuditPage writes a result for whoever must answer for the release.
func writeAuditPage(cmd *cobra.Command, path string, c *audit.Case, r *audit.Result) error {
	p, err := audit.Page(cmd.Context(), c, r)
	if err != nil {
		return err
	}
	return writeOutput(cmd, path, p.Write)
}
