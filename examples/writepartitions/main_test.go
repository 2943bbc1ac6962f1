package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace"
)

func TestWritePartitions(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "t.parquet"), t.TempDir()
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		var rows []trace.Request
		for i := range int64(10) {
			rows = append(rows, trace.Request{ArrivalNS: i / 3, InputTokens: 5, Parents: []int64{(i + 9) % 10}})
		}
		_, err := w.Write(rows)
		return trace.Meta{BlockSize: 16}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{2, 0} {
		if err := run(io.Discard, []string{path, dir, fmt.Sprint(i), "3"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(io.Discard, []string{path, dir, "finish"}); err == nil || !strings.Contains(err.Error(), "part-00001-of-00003.parquet is missing") {
		t.Errorf("without one: %v", err)
	}
	var said strings.Builder
	if err := run(io.Discard, []string{path, dir, "1", "3"}); err != nil {
		t.Fatal(err)
	}
	if err := run(&said, []string{path, dir, "finish"}); err != nil {
		t.Fatal(err)
	}
	one, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	folder, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if folder.Meta != one.Meta || !strings.Contains(said.String(), "10 rows in 3 partitions, "+one.Meta.Digest) {
		t.Errorf("%s: metadata %+v, want %+v", &said, folder.Meta, one.Meta)
	}
}
