package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/publication"
	"reprise/cmd/reprise/internal/runs"
	"reprise/datasets"
	"reprise/datasets/export"
	"reprise/replay/peerfile"
	"reprise/replay/report/table"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// exportFlags are the flags of export.
type exportFlags struct {
	out, to, header string
	model           string
	prompts         flags.Prompts
	hub             publication.Flags
}

func exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export FILE... --to FORMAT",
		Short: "Write a trace in another tool's format, or results as a table",
		Long: `Export writes a trace for another tool, prints what the format loses and how to give
the file to that tool. Where a format needs prompts, they are generated from the seed,
with exactly the tokens of each row.

Results of replay or simulate become a table for pandas, Polars, DuckDB or a
spreadsheet, with a row for each request: ttft_ms, e2e_ms, tpot_ms, send_lag_ms, tokens,
status. Several results files become one table, with their names in the column run.
docs/data.md describes the columns.

--to hf makes a folder of a released trace, ready to be pushed to Hugging Face: the
Parquet, a dataset card, Croissant metadata, the privacy card, a citation file and
checksums. You say licence, authors, title and repository; none has a default.

Formats of results:
  table             one row for each request; Parquet or CSV

For publication:
  hf                folder for Hugging Face, of a trace of tier public or partner

Formats of traces:
` + cli.HelpList(export.Formats(), 17, func(o export.Format) (string, string) { return o.Name, o.About }) + `
docs/formats.md says what each of them loses.`,
		Example: `  reprise export t.parquet --to mooncake -o t.jsonl
  reprise export t.parquet --to vllm-custom --tokenizer o200k_base -o prompts.jsonl
  reprise export r.parquet --to table -o requests.parquet
  reprise export public.parquet --to hf -o release --title Chat --license CC-BY-4.0 --author Example --repo example/chat`,
		Args: flags.Wants(1, math.MaxInt, "which trace, or which results?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.KeepInputs(append(args, f.prompts.Corpus, f.prompts.Tokenizer), f.out, f.header); err != nil {
				return err
			}
			if f.to == cli.ToHub {
				if f.header != "" || f.model != "" || f.prompts != (flags.Prompts{}) {
					return cli.Usagef("--header, --model, --tokenizer, --seed and --corpus cannot be used with --to "+
						"%s, which takes the trace as it is", cli.ToHub)
				}
				return f.hub.Run(cmd, args, f.out, tool())
			}
			if name := f.hub.Given(cmd.Flags()); name != "" {
				return cli.Usagef("--%s is for --to %s", name, cli.ToHub)
			}
			if f.to == tableFormat || f.to == "" && holdsResults(args[0]) {
				return f.table(cmd, args)
			}
			if len(args) > 1 {
				return cli.Usagef("--to %s takes one trace: only results become one table, by --to %s",
					f.to, tableFormat)
			}
			t, err := cli.OpenTrace(cmd, args[0])
			if err != nil && holdsResults(args[0]) {
				return cli.Usagef("%s holds results of a run: want --to %s -o FILE.parquet, or FILE.csv", args[0],
					tableFormat)
			}
			if err != nil {
				return err
			}
			defer t.Close()
			return f.run(cmd, t)
		},
	}
	fl := cmd.Flags()
	everyday, _ := flags.Sections(fl, flags.ResultsFlags)
	everyday.OutputVar(&f.out, "`file` to write, instead of stdout")
	everyday.Bool("json", false, "print the summary as JSON")
	everyday.Bool("quiet", false, flags.QuietUsage)
	everyday.StringVar(&f.to, "to", "", "`format` to write")
	everyday.FileVar(&f.header, "header", "second `file` of formats that have one")
	everyday.StringVar(&f.model, "model", "", "model to name in requests, instead of each row's own")
	f.hub.Register(fl)
	f.prompts.Register(fl, "tokenizer of prompts; by default the trace's, else o200k_base",
		"seed of prompts; by default the trace's, else 1")
	return cmd
}

func (f *exportFlags) run(cmd *cobra.Command, t *trace.Trace) error {
	outputs := export.Formats()
	i := slices.IndexFunc(outputs, func(o export.Format) bool { return o.Name == f.to })
	if i < 0 {
		var names []string
		for _, o := range outputs {
			names = append(names, o.Name)
		}
		names = append(names, cli.ToHub)
		if f.to == "" {
			return cli.Usagef("no format given: --to takes one of %s", strings.Join(names, ", "))
		}
		return cli.Usagef("--to: there is no format %q: want one of %s", f.to, strings.Join(names, ", "))
	}
	format := outputs[i]
	switch {
	case (f.header != "") != (format.HeaderExt != ""):
		if f.header != "" {
			return cli.Usagef("--header: %s has no second file", f.to)
		}
		return cli.Usagef("%s has a second file: name it, such as --header t.%s", f.to,
			strings.TrimPrefix(format.HeaderExt, "."))
	case !format.NeedsPrompts && f.prompts != flags.Prompts{}:
		return cli.Usagef("--tokenizer, --seed and --corpus are for prompts, and %s has none", f.to)
	}
	// A trace without blocks gets blocks that nothing shares where the format is of
	// requests with prompts; where it is of blocks, made-up ones would be a lie.
	all, err := t.Reader()
	if err != nil {
		return err
	}
	rows, blockSize := &runs.Rows{Reader: all, Total: all.Rows()}, t.Meta.BlockSize
	if format.NeedsPrompts {
		if rows, blockSize, err = runs.OpenRows(t); err != nil {
			return err
		}
	}
	o := export.Options{BlockSize: blockSize, Model: f.model}
	if format.NeedsPrompts {
		maker, err := f.prompts.Maker(cmd, t, blockSize)
		if err != nil {
			return err
		}
		if o.Prompter, err = maker.Prompter(result.Template{}); err != nil {
			return err
		}
	}
	if err := jsonOrFile(cmd, cmp.Or(f.out, cli.Standard)); err != nil {
		return err
	}
	wrote, err := f.write(cmd, t.Meta.Mode(), rows, o)
	if err != nil {
		return err
	}
	if tier := trace.TierNote("file", t.Meta.Tier); tier != "" {
		wrote.Notes = append(wrote.Notes, tier+" The format has no place to say so.")
	}
	if end := format.NameEnd; end != "" && f.out != "" && f.out != cli.Standard && !strings.HasSuffix(f.out, end) {
		wrote.Notes = append(wrote.Notes,
			fmt.Sprintf("the tool reads only files whose name ends in %s: rename it, or export again with -o %s%[1]s",
				end, strings.TrimSuffix(f.out, filepath.Ext(f.out))))
	}
	wrote.Format, wrote.Tier, wrote.Use = f.to, t.Meta.Tier, f.use(format, rows.Total, blockSize)
	return wrote.say(cmd, f.out)
}

// write writes the rows, and the header beside them; neither file appears
// unless both are whole.
func (f *exportFlags) write(cmd *cobra.Command, mode os.FileMode, rows *runs.Rows,
	o export.Options) (wrote written, err error) {
	body := func(header io.Writer) error {
		return cli.WriteOutputMode(cmd, f.out, mode, func(w io.Writer) error {
			o.Header = header
			dst, err := export.NewWriter(f.to, w, o)
			if err != nil {
				return cli.UsageIf(err, datasets.ErrUsage)
			}
			if _, err := trace.Copy(tally{dst, &wrote}, rows); err != nil {
				return err
			}
			wrote.Notes = dst.Loss()
			return dst.Close()
		})
	}
	if f.header == "" {
		err = body(nil)
	} else {
		err = trace.WriteFile(f.header, mode, body)
	}
	return wrote, err
}

// tableFormat is the value of --to for results.
const tableFormat = "table"

// holdsResults says whether a path is one of results, finished or not.
func holdsResults(path string) bool {
	for _, name := range []string{path, result.JournalName(path)} {
		if f, err := peerfile.Open(name); err == nil {
			f.Close()
			return true
		}
	}
	return false
}

// table writes the results of runs as one table.
func (f *exportFlags) table(cmd *cobra.Command, paths []string) error {
	if f.header != "" || f.model != "" || f.prompts != (flags.Prompts{}) {
		return cli.Usagef("--header, --model, --tokenizer, --seed and --corpus are for traces, and --to %s is "+
			"for results", tableFormat)
	}
	write, use := table.WriteCSV, ""
	info, err := objectstore.Stat(f.out)
	switch ext := strings.ToLower(filepath.Ext(f.out)); {
	case ext == ".parquet":
		write, use = table.WriteParquet, "read_parquet"
	case ext == ".csv":
		use = "read_csv"
	case f.out != "" && f.out != cli.Standard && (err != nil || info.Mode().IsRegular()): // a pipe takes CSV
		return cli.Usagef("-o %s: want a name that ends in .parquet or .csv", f.out)
	}
	if err := jsonOrFile(cmd, cmp.Or(f.out, cli.Standard)); err != nil {
		return err
	}
	if paths, err = resultsNamed(cmd, paths); err != nil {
		return err
	}
	names, err := runNames(paths, nil)
	if err != nil {
		return err
	}
	var all []table.Run
	var requests int64
	for i, path := range paths {
		results, err := peerfile.Open(path)
		if t, terr := trace.Open(path); err != nil && terr == nil {
			t.Close()
			return cli.Usagef("%s is a trace, and --to %s is for results: any reader of Parquet opens a trace as it is",
				path, tableFormat)
		}
		if err != nil {
			return err
		}
		defer results.Close()
		all, requests = append(all, table.Run{Name: names[i], Results: results}), requests+results.Rows()
	}
	bar := cli.NewProgress(cmd)
	bar.Start("export", "requests", requests)
	mode := trace.TierMode(table.Tier(all))
	err = cli.WriteOutputMode(cmd, f.out, mode, func(w io.Writer) error {
		return write(w, all, func(rows int64) error {
			bar.Set(rows)
			return cmd.Context().Err()
		})
	})
	bar.End()
	if err != nil {
		return err
	}
	wrote := tableWritten{File: f.out, Runs: len(all), Requests: requests, Notes: []string{}}
	if tier := trace.TierNote("table", table.Tier(all)); tier != "" && use != "read_parquet" {
		wrote.Notes = append(wrote.Notes, tier+" CSV has no place to say so.")
	}
	if use != "" {
		wrote.Use = fmt.Sprintf("%s(%q) of pandas, Polars or DuckDB", use, f.out)
	}
	return wrote.say(cmd)
}

// A tableWritten is what was written to a table of results.
type tableWritten struct {
	File     string   `json:"file"`
	Runs     int      `json:"runs"`
	Requests int64    `json:"requests"`
	Notes    []string `json:"notes"`
	Use      string   `json:"use,omitempty"`
}

func (w tableWritten) say(cmd *cobra.Command) error {
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), w)
	}
	says := []string{fmt.Sprintf("%s: %s of %s", outputName(w.File), doc.Many(w.Requests, "request"),
		doc.Many(int64(w.Runs), "run"))}
	for _, n := range w.Notes {
		says = append(says, "note: "+n)
	}
	if w.Use != "" {
		says = append(says, "use:  "+w.Use)
	}
	cli.Answer(cmd, "--json prints them", says...)
	return nil
}

// use fills the placeholders of the other tool's command line.
func (f *exportFlags) use(format export.Format, rows int64, blockSize int) string {
	file, model := f.out, f.model
	if file == "" || file == cli.Standard {
		file = "FILE"
	}
	model = cmp.Or(model, "MODEL")
	use := format.Use
	if blockSize == 0 && format.UseBlockless != "" {
		use = format.UseBlockless
	}
	return strings.NewReplacer("FILE", file, "HEADER", f.header, "ROWS", strconv.FormatInt(rows, 10),
		"BLOCK", strconv.Itoa(blockSize), "MODEL", model).Replace(use)
}
