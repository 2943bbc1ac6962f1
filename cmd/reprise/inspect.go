package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// inspect prints the fields of a log and how to import it.
func (f *importFlags) inspect(cmd *cobra.Command, files []datasets.File) error {
	found, err := datasets.Inspect(files, datasets.Options{Delimiter: f.Delimiter, Decimal: f.Decimal})
	if err != nil {
		return cli.UsageIf(err, datasets.ErrUsage)
	}
	what := "unrecognised format"
	if found.Format != "" {
		what = "format " + found.Format
		if len(found.ToldBy) > 0 {
			what += ", told by " + strings.Join(found.ToldBy, ", ")
		}
		src, err := f.Open(files, nil)
		if errors.Is(err, datasets.ErrUsage) {
			return f.explainFields(cmd, files, err)
		}
		if err != nil { // the trial below says so beside the fields
			src = &datasets.Source{}
		} else if info := src.Info(); !src.Empty() && (!info.HasTimes || info.SessionTimes) {
			found.Flags = madeUpTimes
		}
		if err := src.Close(); err != nil {
			return err
		}
	}
	tried := f.try(cmd, files, found)
	if err := f.writeFormat(cmd, found); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if cli.On(cmd, "json") {
		return cli.WriteJSON(out, struct {
			*datasets.Inspection
			Tried *trial `json:"tried"`
		}{found, tried})
	}
	cli.Message(out, found.File+": "+what)
	most := shownFields
	if cli.On(cmd, "details") {
		most = len(found.Fields)
	}
	writeFields(out, found, most, columnsOr80(out))
	_, err = io.WriteString(out, "\n")
	if tried != nil {
		cli.Message(out, tried.words())
	}
	if f.formatFileToWrite() == nil && (tried == nil || tried.err == nil) {
		_, err = io.WriteString(out, howToImport(cmd, found, nil))
	}
	return err
}

// formatFileToWrite is the file of a format that --inspect writes; nil for none.
func (f *importFlags) formatFileToWrite() []string {
	if !f.onlyLook || !flags.IsFormatFile(f.out) {
		return nil
	}
	return []string{f.out}
}

// writeFormat writes the mapping that was found as a file for --format.
func (f *importFlags) writeFormat(cmd *cobra.Command, found *datasets.Inspection) error {
	for _, path := range f.formatFileToWrite() {
		text := found.FormatFile()
		if text == nil {
			return cli.Usagef("%s is not written: no mapping is needed or proposed for this log", path)
		}
		err := trace.WriteFile(path, 0o600, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return err
		}
		cli.Notef(cmd, "%s has the mapping: add to it what the log has, and import with --format %s", path, path)
	}
	return nil
}

// A trial is what the command line that --inspect proposes makes of the first requests.
// Nothing of it is kept.
type trial struct {
	Requests int64      `json:"requests"`
	Whole    bool       `json:"all"` // there are no more
	Bad      int64      `json:"bad_records"`
	First    *time.Time `json:"first"` // arrival, by the source's own clock; null without one
	Last     *time.Time `json:"last"`
	ByUsage  *int64     `json:"input_tokens_by_usage"` // null where no request tells
	ByText   *int64     `json:"input_tokens_by_text"`
	Output   int64      `json:"output_tokens"`
	Problem  string     `json:"problem"` // why it fails, or a flag is proposed

	records int64 // a record may give several requests or none
	err     error
	badAt   string // the first bad record
	left    int
	from    trace.EntryReader
	undue   bool // times are made up
}

// triedRequests bounds the requests of a trial.
const triedRequests = 1000

// Read implements [trace.EntryReader].
func (t *trial) Read(batch []trace.Entry) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	n, err := t.from.Read(batch[:min(len(batch), t.left)])
	t.left -= n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		t.Problem, err = err.Error()+"\nImport stops there: take that record out first", io.EOF
	}
	t.Whole = t.Whole || err == io.EOF
	for _, e := range batch[:n] {
		if at := e.Time; !t.undue && (t.First == nil || at.Before(*t.First)) {
			t.First = &at
		}
		if at := e.Time; !t.undue && (t.Last == nil || at.After(*t.Last)) {
			t.Last = &at
		}
		if e.InputTokens != nil {
			if t.ByUsage == nil {
				t.ByUsage = new(int64)
			}
			*t.ByUsage += int64(*e.InputTokens)
		}
	}
	return n, err
}

// Write implements [trace.Writer].
func (t *trial) Write(rows []trace.Request) (int, error) { return len(rows), nil }

// try imports the first requests as found proposes, into nothing. It adds flags that it
// finds to be needed. It returns nil where there is no proposal, or nothing to read twice.
func (f *importFlags) try(cmd *cobra.Command, files []datasets.File, found *datasets.Inspection) *trial {
	if found.Missing != "" || slices.Contains(cmd.Flags().Args(), cli.Standard) {
		return nil
	}
	with := *f
	for i := 0; i+1 < len(found.Flags); i += 2 {
		switch value := found.Flags[i+1]; found.Flags[i] {
		case "--map":
			with.Maps = append(slices.Clone(with.Maps), value)
		case "--arrivals":
			with.arrivals = value
		case "--decimal":
			with.Decimal = value
		case "--format":
			with.Format = value
		}
	}
	with.MaxBad, with.tier.Tier = 1, anonymize.Internal
	t := with.tryOnce(cmd, files)
	if t.err != nil && f.Lengths == "" {
		with.Lengths = anonymize.LengthsUsage
		if again := with.tryOnce(cmd, files); again.err == nil {
			again.Problem, _, _ = strings.Cut(t.err.Error(), "\n")
			again.Problem += ": the command takes usage"
			found.Flags = append(found.Flags, "--lengths", anonymize.LengthsUsage)
			t = again
		}
	}
	if errors.Is(t.err, datasets.ErrDelta) {
		with.Rows = "delta"
		if again := with.tryOnce(cmd, files); again.err == nil {
			found.Flags = append(found.Flags, "--rows", with.Rows)
			again.Problem = "the command takes each row for the new part of its turn, as the rows look; --rows full " +
				"is for rows of whole prompts"
			t = again
		}
	}
	if bad := float64(t.Bad) / float64(max(t.Bad+t.records, 1)); t.err == nil && bad > f.MaxBad {
		found.Flags = append(found.Flags, "--max-bad", fmt.Sprint(math.Ceil(20*bad)/20))
		t.Problem = "the command leaves bad records out, the first of them " + t.badAt
	}
	if t.err != nil {
		t.Problem = t.err.Error()
	}
	return t
}

func (f *importFlags) tryOnce(cmd *cobra.Command, files []datasets.File) *trial {
	t := &trial{left: triedRequests}
	src, err := f.Open(files, nil)
	if t.err = err; err != nil {
		return t
	}
	defer src.Close()
	var timing string
	var policy anonymize.Policy
	if t.from, timing, t.err = f.timed(src); t.err != nil {
		return t
	}
	if policy, t.err = f.policy(src.Info()); t.err != nil {
		return t
	}
	t.undue = timing != ""
	card, err := anonymize.Run(cmd.Context(), policy, t, t)
	if t.err = err; err == nil {
		t.Requests, t.Output, t.Bad, t.records = card.Totals.Requests, card.Totals.OutputTokens, src.Info().Bad,
			src.Info().Records
		if first := src.Info().FirstBad; len(first) > 0 {
			t.badAt = first[0].Error()
		}
		if card.Totals.Texts > 0 {
			t.ByText = &card.Totals.TextInput
		}
	}
	return t
}

// words say what a trial has shown.
func (t *trial) words() string {
	if t.err != nil {
		return "It cannot be imported as it is: " + t.Problem
	}
	which := "The first " + doc.Many(t.Requests, "request")
	switch {
	case t.Whole && t.Requests == 1:
		which = "Its one request"
	case t.Whole:
		which = fmt.Sprintf("All %s requests", doc.Count(t.Requests))
	}
	switch {
	case t.First != nil && t.First.Year() > 1970:
		const clock = "2006-01-02 15:04:05"
		which += ", " + t.First.UTC().Format(clock) + " to " + t.Last.UTC().Format(clock) + " UTC"
	case t.First != nil:
		which += ", " + t.Last.Sub(*t.First).Round(time.Millisecond).String() + " from the first to the last"
	}
	var parts []string
	counts := " input tokens"
	for _, c := range []struct {
		n  *int64
		by string
	}{{t.ByUsage, " by usage"}, {t.ByText, " by text"}} {
		if c.n != nil {
			parts = append(parts, doc.Count(*c.n)+counts+c.by)
			counts = ""
		}
	}
	if len(parts) > 0 {
		parts = []string{strings.Join(parts, ", ")}
	}
	parts = append(parts, doc.Count(t.Output)+" output tokens")
	if t.Bad > 0 {
		parts = append(parts, doc.Many(t.Bad, "bad record"))
	}
	out := which + ":\n  " + strings.Join(parts, "\n  ")
	if t.Problem != "" {
		out += "\n" + t.Problem
	}
	return out
}

// madeUpTimes are the flags for a source without times.
var madeUpTimes = []string{"--arrivals", "poisson:2"}

// shownFields bounds the fields in an answer and in an error.
const shownFields = 14

// columnsOr80 is how wide lines for w are, and 80 where it is no terminal or a wider one.
func columnsOr80(w io.Writer) int {
	if n := cli.Columns(w); n > 0 {
		return min(max(n, textpage.MinWidth), 80)
	}
	return 80
}

// explainFields adds to the error of a source, whose fields are others than those asked
// for, which these are and a command line that imports it; to that of several formats, a
// command line for each.
func (f *importFlags) explainFields(cmd *cobra.Command, files []datasets.File, err error) error {
	if several := (*datasets.FormatsError)(nil); errors.As(err, &several) {
		says := ":"
		for _, of := range several.Formats {
			says += "\n" + strings.TrimRight(importCommandLine(cmd,
				&datasets.Inspection{Format: of.Format, Flags: []string{"--format", of.Format}}, nil), "\n")
		}
		return fmt.Errorf("%w%s", err, says)
	}
	if errors.Is(err, datasets.ErrDelta) {
		how := importCommandLine(cmd, &datasets.Inspection{File: files[0].Name, Flags: []string{"--rows", "delta"}},
			nil)
		return fmt.Errorf("%w\nTo import it:\n%s", err, strings.TrimRight(how, "\n"))
	}
	var fields *datasets.FieldsError
	if !errors.As(err, &fields) {
		return err
	}
	if ours := cli.OurKind(fields.Inspection.File); ours != nil {
		return ours
	}
	var b strings.Builder
	var replace map[string]string
	if near := fields.Nearest(); near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", near)
		replace = map[string]string{fields.Absent: near}
	}
	b.WriteByte('\n')
	writeFields(&b, fields.Inspection, shownFields, columnsOr80(cmd.ErrOrStderr()))
	var tried *trial
	if fields.Absent == "" {
		tried = f.try(cmd, files, fields.Inspection)
	}
	if tried != nil {
		b.WriteString(tried.words() + "\n")
	}
	if tried == nil || tried.err == nil {
		b.WriteString(howToImport(cmd, fields.Inspection, replace))
	}
	return cli.Exit(cli.Failure, fmt.Errorf("%w%s", err, strings.TrimRight(b.String(), "\n")))
}

// writeFields lists fields as a table.
func writeFields(w io.Writer, found *datasets.Inspection, most, width int) {
	if len(found.Fields) == 0 {
		return
	}
	records := "the first record"
	switch {
	case found.Whole && found.Records == 1:
		records = "its one record"
	case found.Whole:
		records = fmt.Sprintf("all %d records", found.Records)
	case found.Records > 1:
		records = fmt.Sprintf("the first %d records", found.Records)
	}
	fmt.Fprintf(w, "Fields of %s:\n", records)
	rows, names, presents := [][3]string{}, 0, 0
	for _, f := range found.Fields[:min(most, len(found.Fields))] {
		name := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f { // which a terminal would obey
				return '\uFFFD'
			}
			return c
		}, f.Path)
		if r := []rune(name); len(r) > 56 {
			name = string(r[:55]) + "…"
		}
		what := f.Type
		if f.Values != "" {
			what += ", " + f.Values
		}
		present := "always"
		if f.Present < found.Records {
			present = fmt.Sprintf("in %d", f.Present)
		}
		rows = append(rows, [3]string{name, present, what})
		names, presents = max(names, len([]rune(name))), max(presents, len(present))
	}
	for _, r := range rows {
		if 6+names+presents+len([]rune(r[2])) > width { // then the rest is below the name
			fmt.Fprintf(w, "  %s\n    %-*s  %s\n", r[0], presents, r[1], r[2])
			continue
		}
		fmt.Fprintf(w, "  %s%*s  %-*s  %s\n", r[0], names-len([]rune(r[0])), "", presents, r[1], r[2])
	}
	if n := len(found.Fields) - most; n > 0 {
		fmt.Fprintf(w, "  and %d more: reprise import --inspect --details\n", n)
	}
}

// howToImport is a command line that imports a log, or what it lacks.
func howToImport(cmd *cobra.Command, found *datasets.Inspection, replace map[string]string) string {
	var b strings.Builder
	if found.Missing != "" && replace == nil {
		fmt.Fprintf(&b, "It cannot be imported as it is: %s.\n", found.Missing)
		if found.List != "" {
			file := cmd.Flags().Arg(0)
			b.WriteString("To import them:\n  jq -c '." + found.List + "[]' " + shellQuoted(file) + " |\n")
			piped := shellLines("reprise import", []string{"-", "-o", outputBeside(file)}, 80)
			return b.String() + "  " + piped
		}
		if len(found.Fields) == 0 || found.Final {
			return b.String()
		}
		b.WriteString("Name one:\n")
		found.Flags = append(found.Flags, "--map", "input_tokens=FIELD")
	} else {
		b.WriteString("To import it:\n")
	}
	b.WriteString(importCommandLine(cmd, found, replace))
	return b.String()
}

// importCommandLine repeats the command line with the flags that a log needs, or with
// fields of its --map replaced by others, in lines of at most 80 columns. A log without a
// name is one of several formats, and its trace is named after that.
func importCommandLine(cmd *cobra.Command, found *datasets.Inspection, replace map[string]string) string {
	words := slices.Clone(cmd.Flags().Args())
	out := outputBeside(cmp.Or(found.File, found.Format))
	sized := false // the prompt or its length is mapped
	importer, _, _ := cmd.Root().Find([]string{"import"})
	const ofOutput = "output overwrite" // which is another file where the command is not import
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch name := flag.Name; {
		case cmd != importer && (strings.Contains(ofOutput, name) || importer.Flags().Lookup(name) == nil):
		case name == "inspect" || name == "json" || name == "details" ||
			replace == nil && slices.Contains(found.Flags, "--"+name):
		case name == "output" && found.File == "": // one of several traces
			out = strings.TrimSuffix(flag.Value.String(), ".parquet") + "-" + out
		case name == "output":
			out = flag.Value.String()
		default:
			for _, v := range cli.FlagValues(flag) {
				if name == "map" {
					sized = sized || sizeTarget.MatchString(v)
					for absent, near := range replace {
						v = strings.ReplaceAll(v+",", "="+absent+",", "="+near+",")
						v = strings.TrimSuffix(v, ",")
					}
				}
				switch {
				case cli.IsSetting(flag):
					words = append(words, "--set", name+"="+v)
				case flag.Value.Type() == "bool":
					words = append(words, "--"+name)
				default:
					words = append(words, "--"+name, v)
				}
			}
		}
	})
	if replace == nil {
		words = append(words, found.Flags...)
	} else if at := slices.IndexFunc(found.Flags, sizeTarget.MatchString); !sized && at > 0 {
		words = append(words, "--map", found.Flags[at])
	}
	return shellLines("reprise import", append(words, "-o", out), columnsOr80(cmd.ErrOrStderr()))
}

// sizeTarget matches a --map that names the prompt or its length. Every import needs one
// of them.
var sizeTarget = regexp.MustCompile(`(^|,)\s*(messages|prompt|input_tokens)=`)

// outputBeside names a trace in the working directory after the log it is made from.
func outputBeside(log string) string {
	out := strings.TrimSuffix(filepath.Base(log), ".gz")
	out = strings.TrimSuffix(out, filepath.Ext(out)) + ".parquet"
	if out == filepath.Base(log) {
		return "trace.parquet"
	}
	return out
}

// shellLines is a command line that a shell reads, in lines of at most width columns. A
// flag stays on the line of its value.
func shellLines(command string, words []string, width int) string {
	var b strings.Builder
	line := "  " + command
	for i := 0; i < len(words); i++ {
		part := shellQuoted(words[i])
		if strings.HasPrefix(words[i], "-") && len(words[i]) > 1 && i+1 < len(words) &&
			!strings.HasPrefix(words[i+1], "--") {
			i++
			part += " " + shellQuoted(words[i])
		}
		if len(line)+1+len(part) > width-2 {
			b.WriteString(line + " \\\n")
			line = "   "
		}
		line += " " + part
	}
	return b.String() + line + "\n"
}

// shellQuoted is a word as a shell takes it.
func shellQuoted(word string) string {
	if word != "" && strings.Trim(word,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
