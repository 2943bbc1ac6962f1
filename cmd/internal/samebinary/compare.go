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
		total, unstable, differences := compareParts(parts[0], parts[1], parts[2], strings.HasSuffix(n, ".parquet"))
		compared, volatile = compared+total, volatile+unstable
		for _, d := range differences {
			differ("%s: %.400s", n, d)
		}
	}
	fmt.Printf("%d files, %d parts compared, %d of them volatile\n", len(names), compared, volatile)
	return same, nil
}

// A part is what is compared at once: a line of text, or a column or a key of the
// metadata of a Parquet file, which have names.
type part struct{ name, value string }

// compareParts lists the parts of a file that differ. Parts in which the two old runs differ are
// volatile, and the new run may have as many parts of its own in their place.
func compareParts(old1, old2, after []part, columns bool) (compared, volatile int, differences []string) {
	stable := common(old1, old2)
	volatile = len(old1) - len(stable)
	if columns && volatile > 0 { // the rows were drawn at random: only the names must agree
		stable, after = namesOf(old1), namesOf(after)
		volatile = 0
	}
	kept := common(stable, after)
	for _, p := range without(stable, kept) {
		differences = append(differences, "only old: "+p.name+p.value)
	}
	if added := without(after, kept); len(added) > volatile {
		for _, p := range added {
			differences = append(differences, "only new: "+p.name+p.value)
		}
	}
	return len(old1), volatile, differences
}

// common returns the longest sequence of parts that begins both lists, and then those
// that both have in the same order, found greedily.
func common(a, b []part) (both []part) {
	next := map[part][]int{}
	for i, p := range b {
		next[p] = append(next[p], i)
	}
	from := 0
	for _, p := range a {
		at := next[p]
		for len(at) > 0 && at[0] < from {
			at = at[1:]
		}
		next[p] = at
		// A line far ahead would leave out all between: it is taken for moved.
		if len(at) > 0 && at[0]-from <= maxMove {
			both = append(both, p)
			from = at[0] + 1
		}
	}
	return both
}

// maxMove is how many parts ahead an equal one is looked for.
const maxMove = 50

// without returns the parts of all that are not in some, a subsequence of it.
func without(all, some []part) (rest []part) {
	for _, p := range all {
		if len(some) > 0 && p == some[0] {
			some = some[1:]
			continue
		}
		rest = append(rest, p)
	}
	return rest
}

func namesOf(parts []part) (names []part) {
	for _, p := range parts {
		names = append(names, part{name: p.name})
	}
	return names
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

// partsOf takes a file apart: a text into its lines, a Parquet file into its columns,
// each with all its values, and the keys of its metadata.
func partsOf(name string) ([]part, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var parts []part
	if !strings.HasSuffix(name, ".parquet") {
		for _, line := range strings.Split(string(data), "\n") {
			parts = append(parts, part{"", line})
		}
		return parts, nil
	}
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
	for i, path := range f.Schema().Columns() {
		parts = append(parts, part{"column " + strings.Join(path, ".") + " ", columns[i].String()})
	}
	for _, kv := range f.Metadata().KeyValueMetadata {
		parts = append(parts, part{"metadata " + kv.Key + " ", kv.Value})
	}
	return parts, nil
}
