package flags

import (
	"time"

	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace"
)

// Capture declares when a source was recorded.
type Capture struct {
	begin, end string
	Declared   trace.Capture // once window has read them
}

// Register adds the flags.
func (f *Capture) Register(fl *pflag.FlagSet) {
	_, rest := Sections(fl, "Source")
	rest.StringVar(&f.begin, "capture-begin", "",
		"`time` at which the capture of the source began: RFC 3339, or a duration if the source has no dates. Trace "+
			"times count from it")
	rest.StringVar(&f.end, "capture-end", "",
		"`time` at which the capture ended (exclusive). A request outside stops the import")
}

// Window reads the flags, which go together.
func (f *Capture) Window(zone *time.Location) (trace.Capture, error) {
	switch {
	case f.begin == "" && f.end == "":
		return trace.Capture{}, nil
	case f.begin == "":
		return trace.Capture{}, cli.Usagef("--capture-end alone declares no window: give --capture-begin too")
	case f.end == "":
		return trace.Capture{}, cli.Usagef("--capture-begin alone declares no window: give --capture-end too")
	}
	var err error
	f.Declared, err = datasets.ParseCapture(f.begin, f.end, zone)
	return f.Declared, cli.UsageIf(err, datasets.ErrUsage)
}

// Check refuses a window for a source whose times would be made up, and a release of such a source or without a window.
func (f *Capture) Check(info datasets.Info, released bool) error {
	switch declared := f.Declared.Declared(); {
	case (declared || released) && (!info.HasTimes || info.SessionTimes):
		return cli.Usagef("%s does not say when requests arrived, and each time that is made up depends on the "+
			"sessions before it: so it has no capture window to declare, and no release of tier partner or public",
			info.Format)
	case released && !declared:
		return cli.Usagef("--tier partner and public want a declared capture window: without one all times count " +
			"from the first request, which is one person's, so that noise for one user would not hide that user. " +
			"Give --capture-begin T --capture-end T")
	}
	return nil
}

// Templates says whether system prompts are kept.
type Templates struct {
	KeepTemplates bool
	kTemplate     int
}

// Register adds the flags.
func (f *Templates) Register(fl *pflag.FlagSet) {
	_, rest := Sections(fl, PrivacyFlags)
	rest.BoolVar(&f.KeepTemplates, "keep-templates", false,
		"keep the text of system prompts that many users share, with secrets removed, in NAME.templates.json")
	rest.IntVar(&f.kTemplate, "k-template", anonymize.DefaultKTemplate, "")
}

// LeastUsers checks the flags and returns how many users must have a template, or 0
// where none are kept.
func (f *Templates) LeastUsers(fl *pflag.FlagSet, out, tier string, info datasets.Info) (int, error) {
	switch {
	case !f.KeepTemplates && fl.Changed("k-template"):
		return 0, cli.Usagef("--set k-template needs --keep-templates")
	case !f.KeepTemplates:
		return 0, nil
	case out == "" || out == cli.Standard:
		return 0, cli.Usagef("--keep-templates writes a file beside the trace: give -o FILE.parquet")
	case tier == anonymize.Partner || tier == anonymize.Public:
		return 0, cli.Usagef("--keep-templates is not for --tier %s: its text would go unread beside a release; "+
			"keep it with --tier %s", tier, anonymize.Internal)
	case !info.HasText:
		return 0, cli.Usagef("--keep-templates: %s has no text", info.Format)
	case f.kTemplate < 2:
		return 0, cli.Usagef("--set k-template: want 2 or more")
	}
	return f.kTemplate, nil
}
