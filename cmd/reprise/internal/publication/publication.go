// Package publication has export --to hf: a released trace as a folder for a hub of data
// sets.
package publication

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/anonymize/publish"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// Flags are the flags of a publication.
type Flags struct {
	title, about, license, repo, edition, date string
	authors                                    []string
}

// Register declares the flags.
func (f *Flags) Register(fl *pflag.FlagSet) {
	everyday, _ := flags.Sections(fl, "Publication, --to hf")
	everyday.StringVar(&f.title, "title", "", "`title` of the data set")
	everyday.StringVar(&f.license, "license", "",
		"SPDX `id` such as CC-BY-4.0, or the https address of another licence")
	everyday.StringArrayVar(&f.authors, "author", nil,
		"`\"Family, Given\"`, with an ORCID in <> if you like, or an organisation; may be repeated")
	everyday.StringVar(&f.repo, "repo", "", "`OWNER/NAME` that the data set is to have on Hugging Face")
	everyday.StringVar(&f.about, "about", "", "`words` about the data set, which go before what the rows tell")
	everyday.StringVar(&f.edition, "edition", "", "`version` of the data set, such as 1.0.0")
	everyday.StringVar(&f.date, "date", "", "`date` of publication, such as 2026-05-31; today by default")
}

// names are the flags of a publication.
var names = []string{"title", "license", "author", "repo", "about", "edition", "date"}

// Given is a flag of a publication that was given, empty if none was. What a variable has
// set is for all commands of a shell.
func (f *Flags) Given(fl *pflag.FlagSet) string {
	for _, name := range names {
		if flag := fl.Lookup(name); flag.Changed && !flags.SetByVariable(flag) {
			return name
		}
	}
	return ""
}

// statement is what the flags say.
func (f *Flags) statement() (s publish.Statement, err error) {
	s = publish.Statement{Title: f.title, About: f.about, Repo: f.repo, Edition: f.edition, Date: time.Now().UTC()}
	if f.license != "" {
		if s.License, err = publish.ParseLicense(f.license); err != nil {
			return s, cli.Usagef("--license: %w", err)
		}
	}
	for _, text := range f.authors {
		a, err := publish.ParseAuthor(text)
		if err != nil {
			return s, cli.Usagef("--author %q: %w", text, err)
		}
		s.Authors = append(s.Authors, a)
	}
	if f.date != "" {
		if s.Date, err = time.Parse(time.DateOnly, f.date); err != nil {
			return s, cli.Usagef("--date: want a day such as 2026-05-31")
		}
	}
	if err := s.Check(func(part string) string { return "--" + part }); err != nil {
		return s, cli.Exit(cli.Usage, err)
	}
	return s, nil
}

// Run writes the folder dir of the trace that args name. tool is this program and its
// version.
func (f *Flags) Run(cmd *cobra.Command, args []string, dir, tool string) error {
	if len(args) > 1 {
		return cli.Usagef("--to %s takes one trace", cli.ToHub)
	}
	if dir == "" || dir == cli.Standard {
		return cli.Usagef("name a folder for the data set: -o release")
	}
	if before, err := os.ReadDir(dir); err == nil && len(before) > 0 {
		return cli.Usagef("%s is not empty: name a new folder with -o", dir)
	}
	if _, err := objectstore.Stat(filepath.Dir(filepath.Clean(dir))); err != nil {
		return cli.Usagef("folder %s does not exist: make it first, or name another with -o",
			filepath.Dir(filepath.Clean(dir)))
	}
	in, size, err := cli.OpenInput(cmd, args[0])
	if err != nil {
		return err
	}
	defer in.Close()
	t, err := cli.TraceIn(args[0], in, size)
	if err != nil {
		return err
	}
	defer t.Close()
	r := publish.Release{Trace: t, Bytes: in, Size: size, Mode: t.Meta.Mode(), Tool: tool}
	if r.Card, err = publish.Check(t.Meta); err != nil {
		return cli.Exit(cli.Usage, cli.InFile(args[0], err))
	}
	s, err := f.statement()
	if err != nil {
		return err
	}
	audited := true
	if info, err := objectstore.Stat(args[0]); err == nil {
		audited = info.Mode().Perm()&0o044 != 0
		r.Mode = info.Mode().Perm() & 0o644
	}
	files, err := publish.Write(dir, r, s)
	if err != nil {
		return err
	}
	notes := []string{}
	if t.Meta.Tier == anonymize.Partner {
		notes = append(notes, trace.TierNote("folder", t.Meta.Tier)+" Push it to a private repository.")
	}
	if !audited && r.Card != nil {
		notes = append(notes, fmt.Sprintf("%s was not released by an audit: only you can read it. Before you push: "+
			"reprise audit %s --internal TRACE --release", args[0], args[0]))
	}
	use := fmt.Sprintf("hf upload %s %s --repo-type dataset", s.Repo, dir)
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"folder": dir, "tier": t.Meta.Tier, "repo": s.Repo,
			"license": s.License.Name(), "files": files, "notes": notes, "use": use})
	}
	says := []string{fmt.Sprintf("%s: %s, tier %s, ready for %s", dir, doc.Many(int64(len(files)), "file"),
		t.Meta.Tier, s.URL())}
	for _, file := range files {
		says = append(says, fmt.Sprintf("  %-22s %s bytes", file.Name, doc.Count(file.Bytes)))
	}
	for _, n := range notes {
		says = append(says, "note: "+n)
	}
	cli.Answer(cmd, "--json prints them", append(says, "use:\n  "+use)...)
	return nil
}
