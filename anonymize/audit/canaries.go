package audit

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
)

// canaries looks for planted strings in the output.
func canaries(_ context.Context, c *Case) Finding { return c.scan(false) }

// numeric looks for planted numbers in the output. Tier internal keeps exact
// lengths and times.
func numeric(_ context.Context, c *Case) Finding { return c.scan(true) }

func (c *Case) scan(numbers bool) Finding {
	what := "strings"
	if numbers {
		what = "numbers"
	}
	var planted []string
	for _, p := range c.Canaries {
		if _, is := number(p); is == numbers {
			planted = append(planted, p)
		}
	}
	if len(planted) == 0 {
		return skipped("no %s were planted", what)
	}
	s, err := NewScanner(planted)
	if err != nil {
		return broken(err)
	}
	var h Hits
	if c.Output.Parquet == nil {
		err = s.File(&h, c.Output.file, c.Output.size)
	}
	if err == nil {
		err = c.Output.eachFile(func(f *parquet.File) error { return s.Parquet(&h, f) })
	}
	if err != nil {
		return broken(err)
	}
	fig := Figures{"planted": len(planted), "found": len(h.Strings), "bytes_scanned": h.Bytes,
		"values_compared": h.Values}
	if len(h.Where) > 0 {
		fig["found_in"] = h.Where
	}
	if !numbers {
		fig["expected_false_alarms"] = s.FalseAlarms(h.Bytes)
	}
	switch {
	case len(h.Strings) == 0:
		return passed(fig, "none of %d planted %s is in the output", len(planted), what)
	case numbers && c.Output.Tier() == anonymize.Internal:
		return passed(fig, "%d of %d planted numbers are in the output, as tier internal keeps exact lengths and "+
			"times: report only", len(h.Strings), len(planted))
	}
	return failed(fig, "%d of %d planted %s are in the output", len(h.Strings), len(planted), what)
}

// Planted reads the file of --canaries: one string or number a line; empty lines
// are none.
func Planted(r io.Reader) ([]string, error) {
	b, err := io.ReadAll(io.LimitReader(r, 1<<20+1))
	if err != nil {
		return nil, err
	}
	if len(b) > 1<<20 {
		return nil, fmt.Errorf("more than a megabyte of canaries")
	}
	var out []string
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, string(line))
		}
	}
	if _, err := NewScanner(out); err != nil {
		return nil, err
	}
	return out, nil
}

// File looks through a file of any kind, what is decoded of Parquet and what is
// unpacked of gzip and zstd beside its bytes.
func (s *Scanner) File(h *Hits, r io.ReaderAt, size int64) error {
	if f, err := trace.OpenParquet(r, size); err == nil {
		return s.Parquet(h, f)
	}
	all := func() io.Reader { return io.NewSectionReader(r, 0, size) }
	if err := s.Bytes(h, "bytes of the file", all()); err != nil {
		return err
	}
	head := make([]byte, 4)
	n, _ := r.ReadAt(head, 0)
	switch {
	case bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}):
		if z, err := gzip.NewReader(all()); err == nil {
			return s.Bytes(h, "unpacked bytes", z)
		}
	case bytes.HasPrefix(head[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		if z, err := zstd.NewReader(all()); err == nil {
			defer z.Close()
			return s.Bytes(h, "unpacked bytes", z)
		}
	}
	return nil
}
