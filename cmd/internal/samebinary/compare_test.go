package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	N    int64  `parquet:"n"`
	Name string `parquet:"name"`
}

func parquetFile(t *testing.T, rows ...row) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompareFolders(t *testing.T) {
	text := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		name            string
		file            string
		old1, old2, new []byte
		same            bool
	}{
		{"alike", "a.txt", text("x\ny\n"), text("x\ny\n"), text("x\ny\n"), true},
		{"a line differs", "a.txt", text("x\ny\n"), text("x\ny\n"), text("x\nz\n"), false},
		{"a volatile line differs", "a.txt", text("x\n1\n"), text("x\n2\n"), text("x\n3\n"), true},
		{"a line more", "a.txt", text("x"), text("x"), text("x\ny"), false},
		{"not written", "a.txt", text("x"), text("x"), nil, false},
		{"a value differs", "a.parquet", parquetFile(t, row{1, "a"}), parquetFile(t, row{1, "a"}), parquetFile(t, row{2, "a"}), false},
		{"drawn at random", "a.parquet", parquetFile(t, row{1, "a"}), parquetFile(t, row{2, "a"}), parquetFile(t, row{1, "b"}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range map[string][]byte{"old1": c.old1, "old2": c.old2, "new": c.new} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				if data == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name, c.file), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			same, err := compareFolders(filepath.Join(dir, "old1"), filepath.Join(dir, "old2"), filepath.Join(dir, "new"))
			if err != nil || same != c.same {
				t.Errorf("same %v, error %v; want %v", same, err, c.same)
			}
		})
	}
}
