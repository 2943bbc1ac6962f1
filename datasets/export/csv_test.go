package export

import (
	"io"
	"reprise/datasets"
	"slices"
	"strings"
	"testing"
)

// What this project writes for BLIS, in two files, is what it reads.
func TestBLISReadsBack(t *testing.T) {
	rows := sampleRows()
	table, header, _ := write(t, "blis", Options{BlockSize: 512}, rows)
	var files []datasets.File
	for name, text := range map[string]string{"t.yaml": header, "t.csv": table} {
		files = append(files, datasets.File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
	}
	slices.SortFunc(files, func(a, b datasets.File) int { return -strings.Compare(a.Name, b.Name) })
	src, err := datasets.OpenFiles(files, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, info := drain(t, src)
	if info.Format != "blis" || len(all) != len(rows) || info.Bad != 0 || len(info.Notes) != 0 {
		t.Fatalf("%d entries, %+v", len(all), info)
	}
	for i := range all {
		e := &all[i]
		sameOutput := e.OutputTokens == nil && *rows[i].OutputTokens == 0 || e.OutputTokens != nil && *e.OutputTokens == *rows[i].OutputTokens
		if e.InputTokens == nil || *e.InputTokens != rows[i].InputTokens || !sameOutput || e.Time.Sub(datasets.Epoch).Microseconds() != (rows[i].ArrivalNS+500)/1000 {
			t.Errorf("row %d is read as %s", i, facts(e))
		}
	}
}
