package shard

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/recording"
)

// writeShards writes shards of files with so many rows, cut at these files. change may change
// what one says of itself, and returns the name of its file.
func writeShards(t testing.TB, dir string, rows []int64, cuts []int, change func(m *Meta) string) {
	t.Helper()
	all := make([]File, len(rows))
	for i, n := range rows {
		all[i] = File{fmt.Sprint("log", i), 100 + int64(i), n}
	}
	from := 0
	for i, to := range cuts {
		m := Meta{Index: i, Of: len(cuts), KeyCheck: "0011223344556677", Tool: "reprise 1", Tokenizer: "o200k_base", Template: "none",
			Settings: Settings{BlockSize: 512}, Options: map[string]string{"tz": "UTC"}, Inputs: InputsOf(all), First: from, Files: slices.Clone(all[from:to])}
		name := Name(i, len(cuts))
		if change != nil {
			if other := change(&m); other != "" {
				name = other
			}
		}
		err := Write(filepath.Join(dir, name), func(dst trace.Writer[Row]) (Meta, error) {
			for f := from; f < to; f++ {
				for k := range rows[f] {
					row := Row{Recorded: recording.Row{Request: trace.Request{ArrivalNS: int64(f)*1000 + k, InputTokens: int32(f)}}, Messages: int32(k)}
					if k > 0 {
						row.Recorded.Request.Parents = []int64{k - 1}
					}
					if _, err := dst.Write([]Row{row}); err != nil {
						return m, err
					}
				}
			}
			return m, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		from = to
	}
}

// The rows of all shards come in the order of the source, with parents as it numbers them,
// and absent values stay absent.
func TestRowsOfShards(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 30 {
		var rows []int64
		for range 1 + r.IntN(9) {
			rows = append(rows, int64(r.IntN(3)*r.IntN(300)))
		}
		cuts := []int{len(rows)}
		for range r.IntN(12) {
			cuts = append(cuts, r.IntN(len(rows)+1))
		}
		slices.Sort(cuts)
		dir := t.TempDir()
		writeShards(t, dir, rows, cuts, nil)
		set, err := Open([]string{dir})
		if err != nil {
			t.Fatalf("%v cut at %v: %v", rows, cuts, err)
		}
		var got, want []string
		err = set.Rows(func(batch []Row) error {
			for _, x := range batch {
				q := x.Recorded.Request
				if x.Recorded.TextTokens != nil || x.Recorded.UsageTokens != nil || q.CachedTokens != nil || q.OutputBlocks != nil {
					t.Fatal("an absent value is there")
				}
				got = append(got, fmt.Sprint(q.ArrivalNS, x.File, x.Messages, q.Parents))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		before := int64(0)
		for f, n := range rows {
			for k := range n {
				parents := "[]"
				if k > 0 {
					parents = fmt.Sprint([]int64{before + k - 1})
				}
				want = append(want, fmt.Sprintf("%d %d %d %s", int64(f)*1000+k, f, k, parents))
			}
			before += n
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v cut at %v: %d rows, want %d", rows, cuts, len(got), len(want))
		}
	}
}

// Open names the shard that does not belong to the others, and why.
func TestOpenRefuses(t *testing.T) {
	second := func(f func(m *Meta)) func(*Meta) string {
		return func(m *Meta) string {
			if m.Index == 1 {
				f(m)
			}
			return ""
		}
	}
	for want, change := range map[string]func(m *Meta) string{
		"": nil,
		"import-1-of-4.shard.parquet was imported under another key (key check 8899aabbccddeeff, not 0011223344556677)": second(func(m *Meta) { m.KeyCheck = "8899aabbccddeeff" }),
		"import-1-of-4.shard.parquet was imported with the tokenizer cl100k_base, not o200k_base":                       second(func(m *Meta) { m.Tokenizer = "cl100k_base" }),
		"import-1-of-4.shard.parquet was imported with the chat template qwen3, not none":                               second(func(m *Meta) { m.Template = "qwen3" }),
		"import-1-of-4.shard.parquet was imported with another block_size (16, not 512)":                                second(func(m *Meta) { m.Settings.BlockSize = 16 }),
		"import-1-of-4.shard.parquet was imported with another k_template (20, not 0)":                                  second(func(m *Meta) { m.Settings.KTemplate = 20 }),
		"import-1-of-4.shard.parquet was imported with another --tz (none, not UTC)":                                    second(func(m *Meta) { m.Options = nil }),
		"import-1-of-4.shard.parquet was imported with another --decimal (comma, not none)":                             second(func(m *Meta) { m.Options = map[string]string{"tz": "UTC", "decimal": "comma"} }),
		"import-1-of-4.shard.parquet was imported by reprise 2, not reprise 1":                                          second(func(m *Meta) { m.Tool = "reprise 2" }),
		"import-1-of-4.shard.parquet is foreign: it is of other files":                                                  second(func(m *Meta) { m.Inputs.Digest = "sha256:00" }),
		"import-1-of-4.shard.parquet is one of 5 shards, not of 4":                                                      second(func(m *Meta) { m.Of = 5 }),
		"import-0-of-4.shard.parquet and %/import-1-of-4.shard.parquet are both shard 0 of 4":                           second(func(m *Meta) { m.Index = 0 }),
		"begins with file 4 of the source, where the shards before it end with 2": second(func(m *Meta) {
			m.First = 3
		}),
		"the files of all shards together are not the files of the source": second(func(m *Meta) { m.Files[0].Size = 7 }),
		"it has 7 rows, and says that it has 9":                            second(func(m *Meta) { m.Files[0].Rows += 2 }),
		"contradicts itself":                                               second(func(m *Meta) { m.Index = 4 }),
		"a file in it has a negative size":                                 second(func(m *Meta) { m.Files[0].Size = -1 }),
		"of 4 shards number 2 is missing: run import --shard I/4": func(m *Meta) string {
			if m.Index == 2 {
				return "elsewhere"
			}
			return ""
		},
		"of 4 shards numbers 0, 2, 3 are missing": func(m *Meta) string {
			if m.Index != 1 {
				return fmt.Sprint("elsewhere", m.Index)
			}
			return ""
		},
	} {
		dir := t.TempDir()
		writeShards(t, dir, []int64{3, 2, 7, 4, 1}, []int{2, 3, 4, 5}, change)
		_, err := Open([]string{dir})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, strings.ReplaceAll(want, "%", dir)) {
			t.Errorf("want %s\n got %s", want, got)
		}
	}
	// A copy under another name is a second one, the same file named twice is not.
	dir := t.TempDir()
	writeShards(t, dir, []int64{3}, []int{1}, nil)
	one := filepath.Join(dir, Name(0, 1))
	if _, err := Open([]string{dir, one}); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"copy": b, "cut off": b[:len(b)-9], "of rows": rowsFile(t)} {
		path := filepath.Join(t.TempDir(), name+Ext)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"copy": "are both shard 0 of 1", "cut off": "it is not a whole Parquet file", "of rows": "it is not a shard of an import"}[name]
		if _, err := Open([]string{one, path}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "it holds no shards") {
		t.Error(err)
	}
}

// rowsFile is a Parquet file of rows without what a shard says of itself.
func rowsFile(t testing.TB) []byte {
	var b bytes.Buffer
	w := trace.NewRowsWriter(&b, func(*Row) int64 { return 1 })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	writeShards(f, dir, []int64{3, 0, 2}, []int{3}, nil)
	b, err := os.ReadFile(filepath.Join(dir, Name(0, 1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(rowsFile(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), Name(0, 1))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := Open([]string{path})
		if err != nil {
			return
		}
		rows := int64(0)
		if err := set.Rows(func(batch []Row) error { rows += int64(len(batch)); return nil }); err != nil {
			return
		}
		said := int64(0)
		for _, file := range set.Shards()[0].Files {
			said += file.Rows
		}
		if rows != said {
			t.Errorf("%d rows, and it says %d", rows, said)
		}
	})
}
