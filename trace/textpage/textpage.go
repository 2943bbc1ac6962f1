// Package textpage writes words and tables for a terminal, wrapped to its width.
//
//	p := textpage.New(textpage.Options{Width: 80})
//	p.Line("warning: ", "no p99 below 100 samples")
//	p.Table("Latency in ms", []string{"", "p50", "p99"}, rows)
//	_, err := p.WriteTo(os.Stdout)
//
// Nothing is written before [Page.WriteTo], which writes once and without colours. What
// does not print, such as an escape sequence in a name from a file, becomes a question
// mark.
//
// # Files
//
//   - textpage.go: the page: options, lines of words, the answer and where the rest is
//   - table.go: tables, in several parts where the page is too narrow for one
package textpage

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Widths of a page in columns. A page is no wider than MaxWidth, where a line is still
// read with ease, and no narrower than MinWidth.
const (
	MinWidth = 60
	MaxWidth = 100
)

// Screen is how many lines a command prints at most without details: its answer and the
// messages above and below.
const Screen = 25

// AnswerLines is how many lines an answer without details has at most, so that it fits
// one [Screen] together with an error.
const AnswerLines = Screen - 2

// Options say how wide a text is and how much it tells.
type Options struct {
	// Width is the width of the terminal in columns; it is brought within [MinWidth] and
	// [MaxWidth]. 0 is MaxWidth.
	Width int
	// Details asks for all tables in place of the answer.
	Details bool
	// Lines is how many lines an answer without details may have where it stands among
	// others; 0 is [AnswerLines].
	Lines int
	// Rest says where the rest is, below an answer without details, such as "All
	// tables: --details."
	Rest string
}

// AtMost is how many lines a text may take: n in an answer, any number with details.
func (o Options) AtMost(n int) int {
	if o.Details {
		return math.MaxInt
	}
	return n
}

// A Page is a text that is being written.
type Page struct {
	width int
	b     bytes.Buffer
}

// New begins a page.
func New(o Options) *Page {
	o.Width = cmp.Or(o.Width, MaxWidth)
	return &Page{width: min(max(o.Width, MinWidth), MaxWidth)}
}

// Width is the width of the page in columns.
func (p *Page) Width() int { return p.width }

// Line writes words after a mark, wrapped to the width, with further lines indented by
// the width of the mark. Without words it writes nothing.
func (p *Page) Line(mark, words string) {
	if words == "" {
		return
	}
	mark = Plain(mark)
	for part := range strings.SplitSeq(text.WrapSoft(Plain(words), p.width-text.StringWidth(mark)), "\n") {
		p.b.WriteString(strings.TrimRight(mark+part, " ") + "\n")
		mark = strings.Repeat(" ", text.StringWidth(mark))
	}
}

// LineAtMost writes words as [Page.Line] does, cut with "…" where they take more than n
// lines. It is for what the details have whole: never for a reason or a warning.
func (p *Page) LineAtMost(n int, mark, words string) {
	if words == "" {
		return
	}
	lines := strings.Split(text.WrapSoft(Plain(words), p.width-text.StringWidth(mark)), "\n")
	if len(lines) > n {
		lines = lines[:n]
		last := strings.TrimRight(lines[n-1], " ")
		for text.StringWidth(mark)+text.StringWidth(last)+2 > p.width {
			cut := strings.LastIndexByte(last, ' ')
			if cut < 0 {
				break
			}
			last = last[:cut]
		}
		lines[n-1] = last + " …"
	}
	for _, part := range lines {
		p.b.WriteString(strings.TrimRight(mark+part, " ") + "\n")
		mark = strings.Repeat(" ", text.StringWidth(mark))
	}
}

// Append writes the lines of another page of the same width.
func (p *Page) Append(other *Page) { p.b.Write(other.b.Bytes()) }

// Blank writes an empty line, but not at the beginning or after another one.
func (p *Page) Blank() {
	if b := p.b.Bytes(); len(b) > 0 && !bytes.HasSuffix(b, []byte("\n\n")) {
		p.b.WriteByte('\n')
	}
}

// Lines is how many lines the page has so far.
func (p *Page) Lines() int { return bytes.Count(p.b.Bytes(), []byte("\n")) }

// WriteTo writes the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p.b.Bytes())
	return int64(n), err
}

// Plain makes a string from a file safe for a terminal: what does not print, escape
// sequences above all, becomes a question mark.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\u00a0':
			return ' '
		}
		return '?'
	}, s)
}
