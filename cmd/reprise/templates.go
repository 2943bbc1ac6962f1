package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
)

// templateFlags say whether system prompts are kept.
type templateFlags struct {
	keepTemplates bool
	kTemplate     int
}

func (f *templateFlags) register(fl *pflag.FlagSet) {
	fl.BoolVar(&f.keepTemplates, "keep-templates", false, "keep system prompts that many users have as text, scrubbed, in NAME.templates.json, for a person to read")
	fl.IntVar(&f.kTemplate, "k-template", anonymize.DefaultKTemplate, "for --keep-templates: users, or sessions where there are none, that must have a system prompt")
}

// templatesName is the name of the file of templates beside a trace.
func templatesName(path string) string {
	return strings.TrimSuffix(path, ".parquet") + ".templates.json"
}

// templates checks the flags and returns how many users must have a template, or 0
// where none are kept.
func (f *templateFlags) templates(fl *pflag.FlagSet, out, tier string, info datasets.Info) (int, error) {
	switch {
	case !f.keepTemplates && fl.Changed("k-template"):
		return 0, usagef("--k-template is for --keep-templates")
	case !f.keepTemplates:
		return 0, nil
	case out == "" || out == standard:
		return 0, usagef("--keep-templates writes a file beside the trace: give -o FILE.parquet")
	case tier == anonymize.Partner:
		return 0, usagef("--keep-templates is not for --tier %s: its text would go beside a release that nobody has read; keep it with --tier %s", tier, anonymize.Internal)
	case !info.HasText:
		return 0, usagef("--keep-templates: %s has no text", info.Format)
	case f.kTemplate < 2:
		return 0, usagef("--k-template: want 2 or more")
	}
	return f.kTemplate, nil
}

// writeTemplates writes the file, for its owner alone.
func writeTemplates(cmd *cobra.Command, path string, t *anonymize.Templates) error {
	if t.Unit() == "" {
		notef(cmd, "templates: none, since the source names neither users nor sessions")
	} else {
		notef(cmd, "templates: %d system prompts in %s; A PERSON MUST READ THEM before anybody else gets the file", t.Len(), path)
	}
	return trace.WriteFile(path, 0o600, t.WriteJSON)
}
