package main

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace"
)

// imagesWorkload has 8 requests: two without images, and two that are the same prompt.
func imagesWorkload(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		for i, n := range []int32{0, 0, 64, 65, 100, 300, 300, 301} {
			row := trace.Request{ArrivalNS: int64(i) * 1e6, Kind: "chat", Status: trace.StatusOK, InputTokens: 60 + n, OutputTokens: trace.Ptr[int32](2)}
			if n > 0 {
				row.ImageTokens, row.Images = trace.Ptr(n), trace.Ptr(int32(1+i/7*2)) // three in the last
			}
			for b := range (60 + n + 15) / 16 {
				row.Blocks = append(row.Blocks, uint64(min(i, 5+i/7))<<10+uint64(b)) // 5 and 6 are the same
			}
			if _, err := w.Write([]trace.Request{row}); err != nil {
				return trace.Meta{}, err
			}
		}
		return trace.Meta{BlockSize: 16}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Images are not sent, and that is said. Results of a version that sent them are read.
func TestImagesSaid(t *testing.T) {
	w, url, file := imagesWorkload(t), simulate(t), filepath.Join(t.TempDir(), "r.parquet")
	const said = "images: 6 of 8 requests have images, which are not sent: text stands for their 1,130 tokens"
	out, errs, _ := reprise(t, "replay", w, "--url", url, "--dry-run")
	if !strings.Contains(errs, said) || !strings.Contains(out, "image tokens        1130 of 6 requests, sent as text") {
		t.Errorf("%s%s", out, errs)
	}
	_, errs, _ = reprise(t, "replay", w, "--url", url, "-o", file)
	run, rows := targetResults(t, file)
	if !strings.Contains(errs, said) || run.Images == nil || run.Images.Tokens != 1130 {
		t.Errorf("%+v\n%s", run.Images, errs)
	}
	for _, r := range rows {
		if r.Error != "" || r.Input == nil || *r.Input != r.WantInput {
			t.Errorf("row %d: %s, %v tokens, want %d", r.Row, r.Error, r.Input, r.WantInput)
		}
	}
}
