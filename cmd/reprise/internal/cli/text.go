package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"reprise/trace/textpage"
)

// TextOptions are those of a text on stdout: its width is COLUMNS, or that of the
// terminal, and --details of the command asks for everything. rest says where the rest is, below an answer without details.
func TextOptions(cmd *cobra.Command, rest string) textpage.Options {
	o := textpage.Options{Rest: rest}
	o.Details, _ = cmd.Flags().GetBool("details")
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		o.Width = n
	} else if f, ok := cmd.OutOrStdout().(*os.File); ok {
		o.Width, _, _ = term.GetSize(int(f.Fd())) // 0 where it is no terminal
	}
	return o
}

// Wrapped breaks text at its spaces into indented lines of a help text.
func Wrapped(list string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(list) {
		switch {
		case width == 0:
			b.WriteString("  ")
		case width+len(word) > 74:
			b.WriteString("\n  ")
			width = 0
		default:
			b.WriteByte(' ')
		}
		b.WriteString(word)
		width += len(word) + 1
	}
	return b.String()
}

// FlagValues are the values that were given to a flag: several where it may be repeated.
func FlagValues(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// HelpList lists what a flag or an argument can be, one a line of a help text: names
// padded to a width, and what each is. An item whose entry says nothing is left out.
func HelpList[T any](items []T, width int, entry func(T) (name, about string)) string {
	var b strings.Builder
	for _, item := range items {
		if name, about := entry(item); about != "" {
			fmt.Fprintf(&b, "  %-*s %s\n", width, name, about)
		}
	}
	return b.String()
}

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Figure prints a number with so many decimal places, and a dash for none.
func Figure(v *float64, places int) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', places, 64)
}
