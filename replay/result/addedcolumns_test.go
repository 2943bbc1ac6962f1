package result

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A file of an earlier version lacks the added columns, which are then null. One that lacks
// any other is refused.
func TestFilesWithoutAddedColumns(t *testing.T) {
	rows := randomResults(5, 40)
	write := func(without ...string) string {
		var fields []reflect.StructField
		for _, f := range reflect.VisibleFields(reflect.TypeFor[Result]()) {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			if f.Anonymous || name == "-" || slices.Contains(without, name) {
				continue
			}
			f.Index, f.Offset = nil, 0
			fields = append(fields, f)
		}
		old := reflect.StructOf(fields)
		path := filepath.Join(t.TempDir(), "old.parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := someRun.encode()
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewWriter(f, parquet.SchemaOf(reflect.New(old).Interface()), parquet.KeyValueMetadata(runKey, doc))
		for i := range rows {
			x := reflect.New(old).Elem()
			for k, field := range fields {
				x.Field(k).Set(reflect.ValueOf(rows[i]).FieldByName(field.Name))
			}
			if err := w.Write(x.Addr().Interface()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, got := readAll(t, write(Result{}.AddedColumns()...))
	for i := range rows {
		r := &rows[i]
		r.Thread, r.Turn, r.Parents, r.ThinkNS, r.ToolNS, r.Play, r.ArrivalNS, r.RecordedE2ENS = nil, nil, nil, nil, nil, nil, nil, nil
		r.User, r.Model, r.Adapter = nil, "", ""
		r.Refuted, r.ClaimedInput, r.ClaimedCached, r.ClaimedOutput, r.TextBytes = "", nil, nil, nil, nil
		r.recheck()
	}
	for i := range got {
		if !sameResults(got[i:i+1], rows[i:i+1]) {
			t.Fatalf("%+v\n%+v", got[i], rows[i])
		}
	}
	if !sameResults(got, rows) {
		t.Error("the rows of an old file are not what they were")
	}
	if _, err := Open(write("due_ns")); err == nil || !strings.Contains(err.Error(), `"due_ns"`) {
		t.Errorf("a file without due times: %v", err)
	}
}
