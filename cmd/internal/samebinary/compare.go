package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// compareFolders compares every file of the new run with that of the first old run,
// but for what the two old runs do not agree on. Where they do not agree on one
// column of a Parquet file, its rows were drawn at random, and only the names of its
// columns are compared.
func compareFolders(old1, old2, after string) (same bool, err error) {
	names, err := filesBelow(old1)
	if err != nil {
		return false, err
	}
	others, err := filesBelow(after)
	if err != nil {
		return false, err
	}
	same = true
	differ := func(format string, args ...any) {
		same = false
		fmt.Printf(format+"\n", args...)
	}
	for _, n := range others {
		if !slices.Contains(names, n) {
			differ("%s: only the new build writes it", n)
		}
	}
	compared, volatile := 0, 0
	for _, n := range names {
		if !slices.Contains(others, n) {
			differ("%s: only the old build writes it", n)
			continue
		}
		var parts [3][]part
		for i, dir := range []string{old1, old2, after} {
			if parts[i], err = partsOf(filepath.Join(dir, n)); err != nil {
				return false, err
			}
		}
		drawn := strings.HasSuffix(n, ".parquet") && !slices.Equal(parts[0], parts[1])
		for i := range max(len(parts[0]), len(parts[2])) {
			a, b, c := at(parts[0], i), at(parts[1], i), at(parts[2], i)
			compared++
			switch {
			case a == c:
			case a != b, drawn && a.name == c.name:
				volatile++
			default:
				differ("%s: %s\n  old: %.300s\n  new: %.300s", n, a.name, a.value, c.value)
			}
		}
	}
	fmt.Printf("%d files, %d parts compared, %d of them volatile\n", len(names), compared, volatile)
	return same, nil
}

// A part is what is compared at once: a line of text, or a column or a key of the
// metadata of a Parquet file.
type part struct{ name, value string }

// at returns a part, or one that is empty behind the last.
func at(parts []part, i int) part {
	if i < len(parts) {
		return parts[i]
	}
	return part{}
}

func filesBelow(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, relErr := filepath.Rel(dir, path)
			names = append(names, rel)
			err = relErr
		}
		return err
	})
	return names, err
}

// partsOf takes a file apart.
func partsOf(name string) ([]part, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".parquet") {
		return parquetParts(data)
	}
	var parts []part
	for i, line := range strings.Split(string(data), "\n") {
		parts = append(parts, part{fmt.Sprintf("line %d", i+1), line})
	}
	return parts, nil
}

// parquetParts returns the columns of a Parquet file, each with all its values, and
// the keys of its metadata.
func parquetParts(data []byte) ([]part, error) {
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	columns := make([]strings.Builder, len(f.Schema().Columns()))
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 256)
		for {
			n, readErr := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					fmt.Fprintf(&columns[v.Column()], "%d/%d %v;", v.RepetitionLevel(), v.DefinitionLevel(), v)
				}
			}
			if n == 0 || readErr != nil {
				break
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	var parts []part
	for i, path := range f.Schema().Columns() {
		parts = append(parts, part{"column " + strings.Join(path, "."), columns[i].String()})
	}
	for _, kv := range f.Metadata().KeyValueMetadata {
		parts = append(parts, part{"metadata " + kv.Key, kv.Value})
	}
	return parts, nil
}
