// Package doc lays out the answer of a command, a [Document]: as the one self-contained HTML
// page, with plots, that every report uses (profiles, replays, comparisons, audits), for a
// terminal, and as Markdown.
//
// A report fills in a [Document] (facts, sections, notes, tables, plots, terms: plain
// strings and numbers, nothing of HTML) and calls [Document.Write] or [Document.WriteText], so
// that a figure has one value in both. For HTML
//
//  1. the page is checked: every row as wide as its head, every series with as
//     many X as Y; an error names the place by its number, never by its content;
//  2. each series is cleaned: points without an X are dropped, as are those a
//     logarithmic axis cannot show; the rest is sorted by X;
//  3. long series are thinned to at most 2,000 points with LTTB, and bars that
//     would be thinner than a pixel are added to their neighbours; a line under
//     the plot says so wherever something was left out;
//  4. the numbers are rounded to six digits and embedded as JSON, text goes
//     through html/template, and style and scripts are put inline;
//  5. the page goes to the writer in one call, or not at all.
//
// The first screen is for the answer: a headline, the verdict, a small table and a few
// figures, and beside them the main plot, so that all of it is seen at 1280 × 800 pixels.
//
// Every number can have a definition: a label that names a [Term] shows the
// definition on hovering, and links to it at the end of the page for paper and for
// readers without a pointer.
//
// [Count], [Number], [Percent] and their like print the figures of pages, texts and
// tables, so that a figure reads the same everywhere.
//
// The file opens from disk and loads nothing else: its Content-Security-Policy
// forbids every connection, image and frame, and admits the one script and the
// one style sheet by their SHA-256, so that text could not run even if it were not
// escaped. The same Document gives the same bytes. The plots
// are drawn by uPlot (MIT; its licence stands in the page), chosen over larger
// plotting libraries because it is 50 KB and draws in milliseconds, and over
// images because a reader wants to zoom and to read values.
//
// # Files
//
//   - document.go: Document and its parts (first screen, sections, notes, tables, plots,
//     series, marks, terms), and the check for contradictions
//   - text.go: the page for a terminal: its first screen, or all but the plots
//   - markdown.go: the page as Markdown
//   - templatedata.go: the page as its template reads it: labels linked to definitions, alignment
//     of number columns, cells
//   - frame.go: the one HTML file: template, styles and scripts inline, the
//     Content-Security-Policy
//   - chart.go: a plot as the script draws it: rounding, axis names, remarks on points left
//     out
//   - cdf.go: cumulative distributions: the axis that fits them, and their percentiles
//   - points.go: points cleaned and thinned: LTTB, bars merged, points that an axis cannot
//     show
//   - number.go: how numbers are printed everywhere: counts, percent, percentage points,
//     seconds, decimals, thousands
//
// Exported names may change in any release.
package doc
