// Package sets has the command datasets: public traces by name, and fetching them.
package sets

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets/catalogue"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Command is the command datasets.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "datasets [NAME]",
		Short: "List public traces by name, and fetch them",
		Long: `Datasets lists public traces that import reads: format, licence, size, number of
requests or sessions, and where they are. With a NAME it says all of one: its address at
a fixed commit or release, its checksums and where these are from, whom to cite.

No trace comes with this program. "reprise datasets fetch NAME" brings one from where its
makers publish it.`,
		Example: `  reprise datasets
  reprise datasets mooncake-conversation`,
		Args: flags.Wants(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			sets := catalogue.Sets()
			if len(args) > 0 {
				one, err := find(args[0])
				if err != nil {
					return err
				}
				sets = []catalogue.Set{one}
			}
			if cli.On(cmd, "json") {
				return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"datasets": sets})
			}
			o := cli.TextOptions(cmd, "")
			if len(args) == 0 && !o.Details {
				return list(cmd.OutOrStdout(), o, sets)
			}
			for i := range sets {
				if err := describe(cmd.OutOrStdout(), o, &sets[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.Bool("json", false, "print JSON")
	flags.Details(cmd.Flags())
	cmd.AddCommand(fetchCommand())
	return cmd
}

// Names are those of all sets, for a shell to complete.
func Names() (names []string) {
	for _, s := range catalogue.Sets() {
		names = append(names, s.Name)
	}
	return names
}

func find(name string) (catalogue.Set, error) {
	s, ok := catalogue.Find(name)
	if !ok {
		return s, cli.Usagef("there is no data set %q: reprise datasets lists them", name)
	}
	return s, nil
}

// list writes a line for each set.
func list(w io.Writer, o textpage.Options, sets []catalogue.Set) error {
	p := textpage.New(o)
	rows := make([][]string, 0, len(sets))
	var unknown []string
	for i := range sets {
		s := &sets[i]
		rows = append(rows, []string{s.Name, s.Format, s.License, size(s.Size()), count(s.Rows), s.Host()})
		if s.Sums == catalogue.Unknown {
			unknown = append(unknown, s.Name)
		}
	}
	p.Columns([]string{"name", "format", "licence", "size", "rows", "where"}, rows)
	if len(unknown) > 0 {
		p.Line("", "No checksum is known of "+strings.Join(unknown, " and ")+".")
	}
	p.Line("", "To fetch one: reprise datasets fetch NAME. All of one: reprise datasets NAME.")
	_, err := p.WriteTo(w)
	return err
}

// describe writes all of a set. Addresses stay whole, to be copied.
func describe(w io.Writer, o textpage.Options, s *catalogue.Set) error {
	p := textpage.New(o)
	p.Line("", s.Name+": "+s.About)
	fact := func(name, words string) {
		if words != "" {
			p.Line(fmt.Sprintf("  %-9s ", name), words)
		}
	}
	fact("format", s.Format)
	fact("licence", s.License)
	of := size(s.Size())
	if s.Size() == 0 {
		of = "not known"
	}
	if len(s.Files) > 1 {
		of += fmt.Sprintf(", %d files", len(s.Files))
	}
	fact("size", of)
	if s.Rows > 0 {
		fact("holds", doc.Count(s.Rows)+" "+s.Of)
	}
	fact("page", s.Page)
	fact("cite", s.Cite)
	f, from := s.Files[0], s.Files[0].URL
	if len(s.Files) > 1 {
		from = strings.TrimSuffix(f.URL, f.Name)
		fact("SHA-256", "of each file: --json")
	} else {
		fact("SHA-256", f.SHA256)
		fact("Git blob", f.GitBlob)
	}
	fact("checksum", s.Sums.Words())
	fact("note", s.Note)
	if _, err := p.WriteTo(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "  %-9s %s\n", "from", from)
	return err
}

func size(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	for _, unit := range []struct {
		name string
		of   float64
	}{{"GB", 1e9}, {"MB", 1e6}} {
		if v := float64(bytes) / unit.of; v >= 1 {
			return doc.Number(v) + " " + unit.name
		}
	}
	return doc.Number(float64(bytes)/1e3) + " kB"
}

func count(n int64) string {
	if n == 0 {
		return "–"
	}
	return doc.Count(n)
}

// fetchFlags are the flags of datasets fetch.
type fetchFlags struct {
	dir, from string
}

func fetchCommand() *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Bring a public trace from where its makers publish it, verified",
		Long: `Fetch downloads a public trace over HTTPS, compares its checksum with the one in the
list, and prints the import that reads it. The licence is its makers': "reprise datasets
NAME" says which.

A download that broke off or was interrupted stays in a file that ends in .part, and the
same command continues it. A file appears under its own name once its checksum was right,
and never replaces another one. One that is there already is verified and kept. Where no
checksum is known, the first download's is written beside the file, and every later
one is held to it.

Proxies are taken from HTTPS_PROXY, HTTP_PROXY and NO_PROXY. --from fetches the same file
from a copy, such as a mirror inside a firm; its checksum must be the same.`,
		Example: `  reprise datasets fetch mooncake-conversation -o data`,
		Args:    flags.Wants(1, 1, "which data set?"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.StringVarP(&f.dir, "output", "o", ".", "`directory` for the files; created if missing")
	results.Bool("json", false, "print the fetched files as JSON")
	results.StringVar(&f.from, "from", "", "`address` of a copy of the file, or of the folder of several")
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

func (f *fetchFlags) run(cmd *cobra.Command, name string) error {
	set, err := find(name)
	if err != nil {
		return err
	}
	if f.from != "" && !strings.HasPrefix(f.from, "https://") && !strings.HasPrefix(f.from, "http://") {
		return cli.Usagef("--from: want an address that begins with https:// or http://")
	}
	if info, err := os.Stat(f.dir); err == nil && !info.IsDir() {
		return cli.Usagef("%s is a file: name a folder with -o", f.dir)
	}
	at := filepath.Join(f.dir, set.Files[0].Name) // what import reads
	dir := f.dir
	if len(set.Files) > 1 {
		dir = filepath.Join(f.dir, set.Name)
		at = dir
	}
	bar := cli.NewProgress(cmd)
	defer bar.End()
	fetcher := catalogue.Fetcher{Note: func(text string) { cli.Notef(cmd, "%s: %s", set.Name, text) }}
	var all []catalogue.Fetched
	present, resumed, bytes := 0, int64(0), int64(0)
	if len(set.Files) > 1 {
		bar.Start(set.Name, "files", int64(len(set.Files)))
	}
	for i, file := range set.Files {
		url := file.URL
		switch {
		case f.from != "" && len(set.Files) > 1:
			url = strings.TrimSuffix(f.from, "/") + "/" + file.Name
		case f.from != "":
			url = f.from
		}
		if len(set.Files) == 1 {
			bar.Start(set.Name, "bytes", file.Size)
			fetcher.Progress = func(done, _ int64) { bar.Set(done) }
		}
		got, err := fetcher.Fetch(cmd.Context(), file, url, filepath.Join(dir, file.Name))
		if err != nil {
			if i > 0 {
				err = fmt.Errorf("%w (%d of %d files are there)", err, i, len(set.Files))
			}
			return err
		}
		if got.Present {
			present++
		}
		all, resumed, bytes = append(all, got), resumed+got.Resumed, bytes+got.Bytes
		if len(set.Files) > 1 {
			bar.Set(int64(i + 1))
		}
	}
	bar.End()
	use := strings.Join(strings.Fields(fmt.Sprintf("reprise import %s %s -o %s.parquet", at, set.Import, set.Name)),
		" ")
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"dataset": set.Name, "license": set.License,
			"files": all, "use": use})
	}
	how := "checksum right"
	if !all[0].Verified {
		how = "no checksum was known: this download's is in " + all[0].Path + ".sha256"
	}
	did := map[bool]string{true: "was there", false: "fetched"}[present == len(all)]
	says := []string{fmt.Sprintf("%s: %s, %s, %s", at, did, cmp.Or(size(bytes), "0 B"), how),
		"licence: " + set.License + ", " + set.Page}
	if set.Note != "" {
		says = append(says, "note: "+set.Note)
	}
	cli.Answer(cmd, "--json prints them", append(says, "use:\n  "+use)...)
	return nil
}
