package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace/textpage"
)

// inspect prints the fields of a log and how to import it.
func (f *importFlags) inspect(cmd *cobra.Command, files []datasets.File) error {
	found, err := datasets.Inspect(files, datasets.Options{Delimiter: f.delimiter, Decimal: f.decimal})
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
	cli.Message(out, found.File+": "+what)
	most := shownFields
	if details, _ := cmd.Flags().GetBool("details"); details {
		most = len(found.Fields)
	}
	writeFields(out, found, most, columnsOr80(out))
	_, err = io.WriteString(out, "\n"+howToImport(cmd, found, nil))
	return err
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
	writeFields(&b, fields.Inspection, shownFields, columnsOr80(cmd.ErrOrStderr()))
	b.WriteString(howToImport(cmd, fields.Inspection, replace))
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
	sized := false // the prompt or its length is mapped
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch name := flag.Name; {
		case name == "inspect" || name == "json" || name == "details" || replace == nil && slices.Contains(found.Flags, "--"+name):
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
		if strings.HasPrefix(words[i], "-") && len(words[i]) > 1 && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
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
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
