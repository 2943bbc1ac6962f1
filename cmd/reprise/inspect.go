package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
)

// inspect prints the fields of a log and how to import it.
func (f *importFlags) inspect(cmd *cobra.Command, files []datasets.File) error {
	found, err := datasets.Inspect(files, datasets.Options{Delimiter: f.delimiter})
	if err != nil {
		return cli.UsageIf(err, datasets.ErrUsage)
	}
	what := "unrecognised format"
	if found.Format != "" {
		what = "format " + found.Format
		if len(found.ToldBy) > 0 {
			what += ", told by " + strings.Join(found.ToldBy, ", ")
		}
		src, err := f.open(files)
		if err != nil {
			return err
		}
		if info := src.Info(); !src.Empty() && (!info.HasTimes || info.SessionTimes) {
			found.Flags = madeUpTimes
		}
		if err := src.Close(); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if f.asJSON {
		return cli.WriteJSON(out, found)
	}
	fmt.Fprintf(out, "%s: %s\n", found.File, what)
	writeFields(out, found, len(found.Fields))
	_, err = io.WriteString(out, "\n"+howToImport(cmd, found, nil))
	return err
}

// madeUpTimes are the flags for a source without times.
var madeUpTimes = []string{"--arrivals", "poisson:2"}

// shownFields bounds the fields in an error.
const shownFields = 20

// explainFields adds to the error of a source, whose fields are others than those asked
// for, which these are and a command line that imports it.
func explainFields(cmd *cobra.Command, err error) error {
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
	writeFields(&b, fields.Inspection, shownFields)
	b.WriteString(howToImport(cmd, fields.Inspection, replace))
	return cli.Exit(cli.Failure, fmt.Errorf("%w%s", err, strings.TrimRight(b.String(), "\n")))
}

// writeFields lists fields as a table.
func writeFields(w io.Writer, found *datasets.Inspection, most int) {
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
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found.Fields[:min(most, len(found.Fields))] {
		name := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f { // which a terminal would obey
				return '\uFFFD'
			}
			return c
		}, f.Path)
		if r := []rune(name); len(r) > 60 {
			name = string(r[:59]) + "…"
		}
		what := f.Type
		if f.Values != "" {
			what += ", " + f.Values
		}
		present := "always"
		if f.Present < found.Records {
			present = fmt.Sprintf("in %d", f.Present)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", name, present, what)
	}
	_ = table.Flush() // of memory, or of stdout, whose next write fails too
	if n := len(found.Fields) - most; n > 0 {
		fmt.Fprintf(w, "  and %d more: reprise import --inspect lists them\n", n)
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
			piped := shellLines("reprise import", []string{"-", "-o", outputBeside(file)})
			return b.String() + "  " + piped
		}
		if len(found.Fields) == 0 {
			return b.String()
		}
		b.WriteString("Name one:\n")
		found.Flags = []string{"--map", "input_tokens=FIELD"}
	} else {
		b.WriteString("To import it:\n")
	}
	b.WriteString(importCommandLine(cmd, found, replace))
	return b.String()
}

// importCommandLine repeats the command line with the flags that a log needs, or with
// fields of its --map replaced by others, in lines of at most 80 columns.
func importCommandLine(cmd *cobra.Command, found *datasets.Inspection, replace map[string]string) string {
	words := slices.Clone(cmd.Flags().Args())
	out := outputBeside(found.File)
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch name := flag.Name; {
		case name == "inspect" || name == "json" || replace == nil && slices.Contains(found.Flags, "--"+name):
		case name == "output":
			out = flag.Value.String()
		default:
			for _, v := range cli.FlagValues(flag) {
				if name == "map" {
					for absent, near := range replace {
						v = strings.ReplaceAll(v+",", "="+absent+",", "="+near+",")
						v = strings.TrimSuffix(v, ",")
					}
				}
				if flag.Value.Type() == "bool" {
					words = append(words, "--"+name)
				} else {
					words = append(words, "--"+name, v)
				}
			}
		}
	})
	if replace == nil {
		words = append(words, found.Flags...)
	}
	return shellLines("reprise import", append(words, "-o", out))
}

// outputBeside names a trace in the working directory after the log it is made from.
func outputBeside(log string) string {
	out := strings.TrimSuffix(filepath.Base(log), ".gz")
	out = strings.TrimSuffix(out, filepath.Ext(out)) + ".parquet"
	if out == filepath.Base(log) {
		return "trace.parquet"
	}
	return out
}

// shellLines is a command line that a shell reads, in lines of at most 80 columns. A flag
// stays on the line of its value.
func shellLines(command string, words []string) string {
	var b strings.Builder
	line := "  " + command
	for i := 0; i < len(words); i++ {
		part := shellQuoted(words[i])
		if strings.HasPrefix(words[i], "-") && len(words[i]) > 1 && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			part += " " + shellQuoted(words[i])
		}
		if len(line)+1+len(part) > 78 {
			b.WriteString(line + " \\\n")
			line = "   "
		}
		line += " " + part
	}
	return b.String() + line + "\n"
}

// shellQuoted is a word as a shell takes it.
func shellQuoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
