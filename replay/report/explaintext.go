package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/page"
)

// WriteExplanation writes an explanation for people, in lines of at most 100 columns:
// what is defined, and of a run the values.
func WriteExplanation(w io.Writer, e *Explanation) error {
	var b bytes.Buffer
	for i, d := range e.Definitions {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, part := range []struct{ label, words string }{{"", d.Name}, {"  ", d.Definition}, {"  formula: ", d.Formula}, {"  unit: ", d.Unit}} {
			indent := part.label
			for _, line := range strings.Split(text.WrapSoft(part.words, TextWidth-len(indent)), "\n") {
				b.WriteString(indent + strings.TrimRight(line, " ") + "\n")
				indent = strings.Repeat(" ", len(indent))
			}
		}
	}
	switch {
	case e.Values != nil && len(e.Paths) > 0:
		if err := writeExplained(&b, e); err != nil {
			return err
		}
	case len(e.Paths) > 0:
		b.WriteString("\nIn the JSON of a report:\n  " + strings.Join(e.Paths, "\n  ") + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeExplained lists the values, which tables would break the paths of.
func writeExplained(b *bytes.Buffer, e *Explanation) error {
	if len(e.Values) == 0 {
		b.WriteString("\nThese results do not have it.\n")
		return nil
	}
	b.WriteString("\nIn these results:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, v := range e.Values {
		value, rests := "none", ""
		if v.Value != "" {
			value = v.Value.String() + " " + v.Unit
		}
		if v.Samples != nil {
			rests = "of " + page.Brief(*v.Samples)
		}
		if v.Method != "" {
			rests += ", " + v.Method
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", Plain(v.Path), value, rests)
	}
	return t.Flush()
}

// WriteNames lists all that [Explain] knows, with the units and where in the JSON of a
// report the numbers are.
func WriteNames(w io.Writer) error {
	var b bytes.Buffer
	for _, d := range Definitions() {
		b.WriteString(d.Name + " [" + d.Unit + "]\n")
		if len(d.Paths()) > 0 && d.Name != strings.Join(d.Paths(), ", ") {
			b.WriteString("  " + strings.Join(d.Paths(), "\n  ") + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
