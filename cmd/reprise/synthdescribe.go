package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/synth/spec"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// describeSpec prints what a specification sets, and where its values are from: with a
// source first, and all with --details.
func describeSpec(cmd *cobra.Command, s *spec.Spec) error {
	parameters := s.Parameters()
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Name       string           `json:"name"`
			About      string           `json:"about"`
			Parameters []spec.Parameter `json:"parameters"`
		}{s.Name, s.About, parameters})
	}
	o := cli.TextOptions(cmd, "")
	p := textpage.New(o)
	p.LineAtMost(2, "", fmt.Sprintf("%s: %s", s.Name, s.About))
	shown := 0
	for _, one := range parameters {
		if one.Source == "" && len(s.Sources) > 0 && !o.Details {
			continue
		}
		if !o.Details && p.Lines() > textpage.AnswerLines-4 {
			break
		}
		shown++
		p.LineAtMost(o.AtMost(1), "", one.Key+": "+one.Value)
		if one.Source != "" {
			p.LineAtMost(o.AtMost(1), "    ", one.Source)
		}
	}
	if more := len(parameters) - shown; more > 0 {
		p.Line("", fmt.Sprintf("and %s: --details", page.Many(int64(more), "more parameter")))
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}
