package trace

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A file of an earlier version, without the columns that were added, is read as ever.
func TestEarlierColumns(t *testing.T) {
	full := reflect.TypeFor[Request]()
	var fields []reflect.StructField
	for i := range full.NumField() - len(addedColumns) {
		fields = append(fields, full.Field(i))
	}
	earlier := reflect.New(reflect.StructOf(fields)).Elem()
	want := Request{ArrivalNS: 5, Model: "m", InputTokens: 7, OutputTokens: Ptr[int32](3), Blocks: []uint64{1, 2}, Status: StatusOK, FinishReason: "stop"}
	for i := range fields {
		earlier.Field(i).Set(reflect.ValueOf(want).Field(i))
	}
	var file bytes.Buffer
	w := parquet.NewWriter(&file, parquet.SchemaOf(earlier.Interface()), parquet.KeyValueMetadata("reprise.schema", Schema))
	if err := w.Write(earlier.Addr().Interface()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := OpenParquet(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newColumnReader[Request](f)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]Request, 2)
	rows[0].LengthSource = "left from before"
	n, _ := r.Read(rows)
	rows[0].Parents = nil
	if n != 1 || !reflect.DeepEqual(rows[0], want) {
		t.Errorf("%d rows, %+v, want %+v", n, rows[0], want)
	}
	before, after := NewDigest(), NewDigest()
	before.Add(rows[:1])
	rows[0].LengthSource = LengthUsage
	if after.Add(rows[:1]); before.Sum() == after.Sum() {
		t.Error("the digest does not hold the added columns")
	}
}
