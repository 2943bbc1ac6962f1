package cli

import (
	"io"

	"github.com/spf13/cobra"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// A Finding is what a command found, for each form that its flags ask for.
type Finding struct {
	Tier string        // the strictest of the traces that it is of, which says who may read its files
	Page *doc.Document // what is printed
	// Text prints the page otherwise, such as with more lines than an answer has; nil prints it as any.
	Text func(io.Writer, textpage.Options) error
	JSON any    // printed with --json
	Rest string // where more than the printed answer is
	HTML string // file of the page, "" for none
	Out  string // file of what else would go to stdout, "" for stdout
}

// Write writes the page of f for a browser where it has a file for that, and prints f as text, or with --json as JSON.
func (f Finding) Write(cmd *cobra.Command) error {
	mode := trace.TierMode(f.Tier)
	if f.HTML != "" {
		if err := WriteOutputMode(cmd, f.HTML, mode, f.Page.Write); err != nil {
			return err
		}
	}

	text := f.Text
	if text == nil && f.Page != nil {
		text = f.Page.WriteText
	}
	return WriteOutputMode(cmd, f.Out, mode, func(w io.Writer) error {
		if On(cmd, "json") {
			return WriteJSON(w, f.JSON)
		}
		return text(w, TextOptions(cmd, f.Rest))
	})
}
