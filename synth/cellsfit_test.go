package synth

import (
	"bytes"
	"math"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// Histograms of 100 requests in blocks of 16 tokens become these tables, and no
// others. Those of an earlier version say global of the template that most have.
func TestHistogramTables(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		histogramTables(t, earlier)
	}
}

func histogramTables(t *testing.T, earlier bool) {
	t.Helper()
	var rows []profile.HistogramRow
	add := func(metric, c string, lo, hi, count int64) {
		rows = append(rows, profile.HistogramRow{Metric: metric, Category: c, Lo: lo, Hi: hi, Count: count})
	}
	// Ten requests have no category; the others are of all five.
	add(profile.MetricInput, "", 0, 1, 10)
	add(profile.MetricInput, "", 100, 101, 30)
	add(profile.MetricInput, "", 128, 130, 60)
	add(profile.MetricOutput, "", 7, 8, 100)
	add(profile.MetricInterArrival, "", 1024, 1040, 60)
	add(profile.MetricInterArrival, "", 0, 1, 39)
	add(profile.MetricTurns, "", 1, 2, 4)
	add(profile.MetricTurns, "", 3, 4, 2)
	add(profile.MetricTurns, "", 4, 5, 2)
	of := categoryNames[1:] // in the order of their numbers
	for i, c := range of {
		n := int64(i + 1)
		if c == trace.Template && earlier {
			c = trace.Global
		}
		add(profile.MetricInput, c, 100, 101, 2*n)
		add(profile.MetricInput, c, 128, 130, 4*n)
		add(profile.MetricOutput, c, 7, 8, 6*n)
		add(profile.MetricHitBlocks, c, 0, 1, n)
		add(profile.MetricHitBlocks, c, 3, 4, n)
		add(profile.MetricHitBlocks, c, 5, 6, 2*n)
		add(profile.MetricNewBlocks, c, 0, 1, n)
		add(profile.MetricNewBlocks, c, 2, 3, n)
		add(profile.MetricReuseDistance, c, 0, 1, n)
		add(profile.MetricReuseDistance, c, 256, 260, 3*n)
	}
	meta := trace.Meta{BlockSize: 16, Tier: "internal", Tokenizer: "o200k_base"}
	m := fitHistograms(t, histogramFile(t, rows, meta))
	var want []cellRow
	table := func(k tableKind, c string, cells ...int64) {
		for i := 0; i < len(cells); i += 3 {
			want = append(want, cellRow{Table: tableNames[k], Category: c, To: math.MaxInt64, Lo: cells[i], Hi: cells[i+1], Count: cells[i+2]})
		}
	}
	table(tableGap, "any", 0, 0, 39, 1024, 1039, 60)
	table(tableCategory, "any", 0, 0, 10, 1, 1, 6, 2, 2, 12, 3, 3, 18, 4, 4, 24, 5, 5, 30)
	table(tableInput, "none", 0, 0, 10)
	for i, c := range of {
		table(tableInput, c, 100, 100, 2*int64(i+1), 128, 129, 4*int64(i+1))
	}
	table(tableOutput, "none", 7, 7, 10)
	for i, c := range of {
		table(tableOutput, c, 7, 7, 6*int64(i+1))
	}
	table(tableHit, trace.Template, 3, 3, 2, 5, 5, 4)
	table(tableHit, trace.Branch, 3, 3, 5, 5, 5, 10)
	table(tableFresh, trace.Continuation, 2, 2, 4)
	if earlier { // global was what most have
		table(tableTrunk, "any", 5, 5, 1)
	}
	for i, c := range of[1:] {
		table(tableDistance, c, 256, 259, 3*int64(i+2))
	}
	// Two sessions of 3 turns and two of 4: four turns each build on one request and on
	// two, and two on three. That is eight parts in ten of 2^30, and two.
	table(tableTurn, "any", 1, 2, 858993459, 3, 3, 214748365)
	got := m.cells.rows()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d: %+v", len(got), len(want), got[min(len(want), len(got)):])
	}
	// The mean gap is (60·1031.5 + 39·0)/99 ns.
	if m.Requests() != 100 || m.span != 62515 || m.KSwap() != 1 || m.sourced {
		t.Errorf("%d requests in %d ns, k %d, of sessions %v", m.Requests(), m.span, m.KSwap(), m.sourced)
	}
	if got := m.Meta(); got.Tier != "internal" || got.Tokenizer != "o200k_base" || got.BlockSize != 16 || got.Digest != m.cellDigest() {
		t.Errorf("the metadata are %+v", got)
	}
}

// Without a block size there are no tables of blocks, and the block size is checked.
func TestHistogramsSayWhatIsWrong(t *testing.T) {
	row := func(metric, c string, lo, count int64) profile.HistogramRow {
		return profile.HistogramRow{Metric: metric, Category: c, Lo: lo, Hi: lo + 1, Count: count}
	}
	in, out, gap := row(profile.MetricInput, "", 5, 3), row(profile.MetricOutput, "", 5, 3), profile.HistogramRow{Metric: profile.MetricInterArrival, Lo: 512, Hi: 520, Count: 2}
	late := profile.HistogramRow{Metric: profile.MetricInterArrival, Lo: 1 << 59, Hi: 1<<59 + 1<<53, Count: 2}
	for name, c := range map[string]struct {
		rows []profile.HistogramRow
		meta map[string]string
		want string
	}{
		"good":            {[]profile.HistogramRow{in, out, gap}, nil, ""},
		"one request":     {[]profile.HistogramRow{row(profile.MetricInput, "", 5, 1), out, gap}, nil, "the histograms have fewer than two requests"},
		"two requests":    {[]profile.HistogramRow{row(profile.MetricInput, "", 5, 2), out, gap}, nil, ""},
		"no output":       {[]profile.HistogramRow{in, gap}, nil, "the histograms have no output lengths"},
		"no gaps":         {[]profile.HistogramRow{in, out}, nil, "the histograms have no gaps between requests, or some that are too long"},
		"short gaps":      {[]profile.HistogramRow{in, out, row(profile.MetricInterArrival, "", 99, 10)}, nil, "the histograms have no gaps between requests, or some that are too long"},
		"a microsecond":   {[]profile.HistogramRow{in, out, row(profile.MetricInterArrival, "", 100, 10)}, nil, ""},
		"long gaps":       {[]profile.HistogramRow{in, out, late}, nil, "the histograms have no gaps between requests, or some that are too long"},
		"hits of no size": {[]profile.HistogramRow{in, out, gap, row(profile.MetricHitBlocks, "", 1, 2)}, nil, "the histograms count blocks but have no block size: run profile on the trace again"},
		"new of no size":  {[]profile.HistogramRow{in, out, gap, row(profile.MetricNewBlocks, "", 1, 2)}, nil, "the histograms count blocks but have no block size: run profile on the trace again"},
		"blocks":          {[]profile.HistogramRow{in, out, gap, row(profile.MetricNewBlocks, "", 1, 2)}, map[string]string{keyBlock: "1"}, ""},
		"great blocks":    {[]profile.HistogramRow{in, out, gap}, map[string]string{keyBlock: "1048576"}, ""},
		"greater blocks":  {[]profile.HistogramRow{in, out, gap}, map[string]string{keyBlock: "1048577"}, "its block size is not a number from 1 to 1,048,576"},
		"blocks of 0":     {[]profile.HistogramRow{in, out, gap}, map[string]string{keyBlock: "0"}, "its block size is not a number from 1 to 1,048,576"},
		"blocks of x":     {[]profile.HistogramRow{in, out, gap}, map[string]string{keyBlock: "x"}, "its block size is not a number from 1 to 1,048,576"},
		"another schema":  {[]profile.HistogramRow{in, out, gap}, map[string]string{keySchema: "histograms/2"}, ErrNotHistograms.Error()},
	} {
		var b bytes.Buffer
		w := trace.NewRowsWriter[profile.HistogramRow](&b, nil)
		if _, err := w.Write(c.rows); err != nil {
			t.Fatal(err)
		}
		w.SetMetadata(keySchema, histogramSchema)
		for k, v := range c.meta {
			w.SetMetadata(k, v)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := FitHistograms(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
