package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// TextOptions are those of a text on stdout: as wide as [Columns], and with everything
// where the command has --details. rest says where the rest is, below an answer without
// details.
func TextOptions(cmd *cobra.Command, rest string) textpage.Options {
	return textpage.Options{Rest: rest, Width: Columns(cmd.OutOrStdout()), Details: On(cmd, "details")}
}

// Columns is how wide text on w is to be: COLUMNS, or the width of the terminal, and 0
// where w is none.
func Columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f := terminal(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// Message writes a message for people, wrapped at spaces to [Columns] of w, with further
// lines indented. Lines that begin with a space, such as commands to copy, stay whole.
func Message(w io.Writer, message string) {
	_, _ = io.WriteString(w, broken(message, Columns(w))) // there is nobody else to tell
}

// Answer writes to stderr what a command made and what is worth knowing about that, a
// message each, the answer first. Without --details these are as many as fit on a screen,
// and rest says where the others are. With --quiet notes and what to use next are left out.
func Answer(cmd *cobra.Command, rest string, messages ...string) {
	if On(cmd, "quiet") {
		messages = slices.DeleteFunc(messages, func(m string) bool {
			return strings.HasPrefix(m, "note:") || strings.HasPrefix(m, "use:")
		})
	}
	details := On(cmd, "details")
	w, lines := cmd.ErrOrStderr(), 0
	for i, m := range messages {
		text := broken(m, Columns(w))
		lines += strings.Count(text, "\n")
		if lines > textpage.AnswerLines-1 && !details { // one is for the rest
			Warnf(cmd, "%s more: %s", doc.Many(int64(len(messages)-i), "note"), rest)
			return
		}
		_, _ = io.WriteString(w, text)
	}
}

// broken wraps a message to a width, which 0 leaves as it is.
func broken(message string, width int) string {
	if width > 0 {
		width = min(max(width, textpage.MinWidth), textpage.MaxWidth)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(message, "\n") {
		if width == 0 || strings.HasPrefix(line, " ") || utf8.RuneCountInString(line) <= width {
			b.WriteString(line + "\n")
			continue
		}
		used := 0
		for word := range strings.FieldsSeq(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case used > 0 && used+1+n > width:
				b.WriteString("\n  ")
				used = 2
			case used > 0:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += n
		}
		b.WriteByte('\n')
	}
	return b.String()
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

// Setting annotates a flag that is a setting: it is typed as --set NAME=VALUE.
const Setting = "reprise_setting"

// IsSetting tells whether a flag is a setting.
func IsSetting(f *pflag.Flag) bool {
	_, is := f.Annotations[Setting]
	return is
}

// On tells whether a switch is on. A command without the switch has it off.
func On(cmd *cobra.Command, name string) bool {
	on, err := cmd.Flags().GetBool(name)
	return err == nil && on
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
	enc.SetEscapeHTML(false)
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
