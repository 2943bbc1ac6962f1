package result

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSendLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	read := func() (ids []int64, found bool) {
		t.Helper()
		found, err := ReadSends(path, func(id int64) { ids = append(ids, id) })
		if err != nil {
			t.Fatal(err)
		}
		return ids, found
	}
	if ids, found := read(); found || ids != nil {
		t.Errorf("without a log: %v, %v", ids, found)
	}
	for _, part := range []struct {
		resumed bool
		ids     []int64
		want    []int64
	}{
		{false, []int64{1, 1 << 40}, []int64{1, 1 << 40}},
		{true, []int64{7}, []int64{1, 1 << 40, 7}},
		{false, []int64{3}, []int64{3}},
	} {
		l := NewSendLog(path, part.resumed)
		for _, id := range part.ids {
			l.Note(id)
		}
		if got, _ := read(); !slices.Equal(got, part.want) { // before it is closed
			t.Errorf("%v, want %v", got, part.want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		// A kill within a write leaves a part of a number.
		if err := os.WriteFile(SendsName(path), append(mustRead(t, SendsName(path)), 1, 2, 3), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := read(); !slices.Equal(got, part.want) {
			t.Errorf("with half a number: %v, want %v", got, part.want)
		}
	}
	var none *SendLog
	none.Note(1)
	if err := none.Close(); err != nil {
		t.Error(err)
	}
	lost := NewSendLog(filepath.Join(t.TempDir(), "no", "r.parquet"), false)
	lost.Note(1)
	if lost.Close() == nil {
		t.Error("a log that cannot be opened has no error")
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
