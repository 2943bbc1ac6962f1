package textpage

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

func written(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if text.StringWidth(line) > p.Width() || strings.TrimRight(line, " ") != line {
			t.Errorf("wider than %d, or with blanks at its end: %q", p.Width(), line)
		}
	}
	return b.String()
}

func TestWidthIsBounded(t *testing.T) {
	for asked, want := range map[int]int{0: 100, -5: 60, 20: 60, 60: 60, 80: 80, 100: 100, 300: 100} {
		if got := New(Options{Width: asked}).Width(); got != want {
			t.Errorf("asked for %d columns: %d", asked, got)
		}
	}
}

func TestLines(t *testing.T) {
	p := New(Options{Width: 60})
	p.Blank() // nothing above
	p.Line("warning: ", "the server counted other prompt lengths than wanted in 4 requests, by 4 tokens in all")
	p.Blank()
	p.Blank()
	p.LineAtMost(1, "  - ", "the client stood still for 37.1 % of the times to first token, those of 62 requests")
	p.LineAtMost(2, "", "in one line\x1b[31m")
	want := `warning: the server counted other prompt lengths than wanted
         in 4 requests, by 4 tokens in all

  - the client stood still for 37.1 % of the times to …
in one line?[31m
`
	if got := written(t, p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := p.Lines(); n != 5 {
		t.Errorf("%d lines", n)
	}
}

// A head gives way first; then a table that is too wide is parted, and every part names its rows.
func TestTableIsParted(t *testing.T) {
	head := []string{"latency", "mean, ms", "p50, ms", "p90, ms", "p95, ms", "p99, ms"}
	rows := [][]string{{"TTFT from sent", "77.80", "78.00", "121.0", "124.0", "126.0"}, {"E2E", "102.8"}}
	p := New(Options{Width: 60})
	p.Table("Latency", head, rows)
	p.Table("Nothing", head, nil)
	p.Table("", []string{"", "in GPUs", "behind", "routers"}, [][]string{{strings.Repeat("a", 30), "12345678", "12345678", "12345678"}})
	want := `Latency
┌────────────────┬────────┬────────┬───────┬───────┬───────┐
│ latency        │ mean,  │ p50,   │ p90,  │ p95,  │ p99,  │
│                │     ms │     ms │    ms │    ms │    ms │
├────────────────┼────────┼────────┼───────┼───────┼───────┤
│ TTFT from sent │  77.80 │  78.00 │ 121.0 │ 124.0 │ 126.0 │
│ E2E            │  102.8 │        │       │       │       │
└────────────────┴────────┴────────┴───────┴───────┴───────┘

┌────────────────────────────────┬──────────┬──────────┐
│                                │  in GPUs │   behind │
├────────────────────────────────┼──────────┼──────────┤
│ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa │ 12345678 │ 12345678 │
└────────────────────────────────┴──────────┴──────────┘
┌────────────────────────────────┬──────────┐
│                                │  routers │
├────────────────────────────────┼──────────┤
│ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa │ 12345678 │
└────────────────────────────────┴──────────┘
`
	if got := written(t, p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p = New(Options{Width: 80})
	p.Columns(head, rows)
	want = `latency         mean, ms  p50, ms  p90, ms  p95, ms  p99, ms
TTFT from sent     77.80    78.00    121.0    124.0    126.0
E2E                102.8
`
	if got := written(t, p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Words give way to figures.
func TestFactsAreWrapped(t *testing.T) {
	p := New(Options{Width: 60})
	p.Facts("Run", [][]string{{"Duration", "60.04 s", "first due to last done; the rates are over it"}, {"Offered", "20 requests/s", "open-loop"}})
	want := `Run
┌──────────┬───────────────┬───────────────────────────────┐
│ Duration │       60.04 s │ first due to last done; the   │
│          │               │ rates are over it             │
│ Offered  │ 20 requests/s │ open-loop                     │
└──────────┴───────────────┴───────────────────────────────┘
`
	if got := written(t, p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Words are set left and wrapped; those that leave no room are a paragraph for each row.
func TestWordsAreWrapped(t *testing.T) {
	head, long := []string{"", "check", "n", "what was found"}, "no string of the source in any place of the output"
	p := New(Options{Width: 60})
	p.Columns(head, [][]string{{"ok", "ids", "7", long}}, 1, 3)
	p.Table("", head, [][]string{{"ok", "ids", "7", strings.Repeat(long+" ", 5)}}, 1, 3)
	if got := written(t, p); !strings.HasPrefix(got, `    check  n  what was found
ok  ids    7  no string of the source in any place of the
              output

ok ids
  n: 7
  what was found: no string of the source in any place of
                  the output no string`) {
		t.Error(got)
	}
}
