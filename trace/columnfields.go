package trace

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A field fills one field of rows from its column.
type field[R any] interface {
	name() string
	find(*parquet.Schema) bool // tells whether a file has the column
	open(chunks []parquet.ColumnChunk)
	read(rows []R) error
	listed() int // elements of the lists in the rows that were read since it was last called
	close()
}

// fieldsOf are the columns of a row type: of its fields and those of the structs in it,
// whether it embeds them or they are groups of columns. Fields of a type that no row of ours
// has are a panic.
func fieldsOf[R any]() (list []field[R]) {
	eachField(reflect.TypeFor[R](), 0, nil, parquet.SchemaOf(new(R)).Columns(),
		func(path []string, t reflect.Type, offset uintptr) {
			list = append(list, fieldOf[R](path, t, offset))
		})
	return list
}

// eachField calls f for the fields of a type, with their columns and their places in it.
func eachField(t reflect.Type, offset uintptr, group []string, columns [][]string, do func([]string,
	reflect.Type, uintptr)) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, at := f.Tag.Get("parquet"), offset+f.Offset
		path := append(slices.Clone(group), columnName(f.Name, tag))
		switch {
		case tag == "-":
		case f.Anonymous && f.Type.Kind() == reflect.Struct && tag == "":
			eachField(f.Type, at, group, columns, do)
		case f.Type.Kind() == reflect.Struct:
			eachField(f.Type, at, path, columns, do)
		default:
			i := slices.IndexFunc(columns, func(c []string) bool {
				return len(c) >= len(path) && slices.Equal(c[:len(path)], path)
			})
			do(columns[i], f.Type, at)
		}
	}
}

// columnName is what the library calls the column of a field.
func columnName(field, tag string) string {
	for i := range tag {
		if tag[i] == ',' {
			tag = tag[:i]
			break
		}
	}
	if tag == "" {
		return field
	}
	return tag
}

// fieldOf is the column of the field of type t that lies offset bytes within a row. It panics
// where a row type of the program has another kind of field, which its first test shows.
func fieldOf[R any](path []string, t reflect.Type, offset uintptr) field[R] {
	kind := t.Kind()
	if kind == reflect.Pointer || kind == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int64:
		return typedField[R](kind, path, offset, longs)
	case reflect.Int32:
		return typedField[R](kind, path, offset, ints)
	case reflect.Uint64:
		return typedField[R](kind, path, offset, words)
	case reflect.Float64:
		return typedField[R](kind, path, offset, doubles)
	case reflect.Float32:
		return typedField[R](kind, path, offset, floats)
	case reflect.Bool:
		return typedField[R](kind, path, offset, bools)
	case reflect.String:
		return typedField[R](kind, path, offset, names)
	}
	panic(fmt.Sprintf("trace: the column %v has values of type %v", path, t))
}

// typedField is a column of values of type T: plain, by pointers or in lists, as its kind says.
func typedField[R, T any](kind reflect.Kind, path []string, offset uintptr, decode func(*encoding.Values,
	int) []T) field[R] {
	switch kind {
	case reflect.Pointer:
		return pointerField(path, decode, func(r *R) **T { return (**T)(unsafe.Add(unsafe.Pointer(r), offset)) })
	case reflect.Slice:
		return listField(path, decode, func(r *R) *[]T { return (*[]T)(unsafe.Add(unsafe.Pointer(r), offset)) })
	}
	return valueField(path, decode, func(r *R) *T { return (*T)(unsafe.Add(unsafe.Pointer(r), offset)) })
}

// What a page or a dictionary holds, as values of a type; n of them.

func longs(v *encoding.Values, _ int) []int64     { return v.Int64() }
func words(v *encoding.Values, _ int) []uint64    { return v.Uint64() }
func ints(v *encoding.Values, _ int) []int32      { return v.Int32() }
func floats(v *encoding.Values, _ int) []float32  { return v.Float() }
func doubles(v *encoding.Values, _ int) []float64 { return v.Double() }

func bools(v *encoding.Values, n int) []bool {
	bits, out := v.Boolean(), make([]bool, n)
	for i := range out {
		out[i] = bits[i/8]>>(i%8)&1 != 0
	}
	return out
}

func names(v *encoding.Values, n int) []string {
	data, offsets := v.ByteArray()
	out := make([]string, n)
	for i := range out {
		out[i] = string(data[offsets[i]:offsets[i+1]])
	}
	return out
}
