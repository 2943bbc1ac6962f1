package trace

import (
	"reflect"
	"slices"
	"testing"
)

// Rows are alike where no column but those of PlainRows is another one, whichever columns there are.
func TestAlike(t *testing.T) {
	plainColumns := []string{"ArrivalNS", "Session", "Turn", "Category", "InputTokens", "OutputTokens", "Blocks"}
	for i := range reflect.TypeFor[Request]().NumField() {
		var a, b Request
		f := reflect.ValueOf(&b).Elem().Field(i)
		name := reflect.TypeFor[Request]().Field(i).Name
		switch f.Kind() {
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.String:
			f.SetString("x")
		default:
			f.SetInt(1)
		}
		varies := slices.Contains(plainColumns, name)
		if alike(&a, &b) != varies {
			t.Errorf("%s: rows that differ in it are alike: %v", name, !varies)
		}
		if _, stride := new(PlainRows).column(reflect.TypeFor[Request]().Field(i).Offset); (stride > 0) != varies {
			t.Errorf("%s is a column of its own: %v", name, stride > 0)
		}
		if like, ok := plain(&b); ok && !alike(&like, &b) {
			t.Errorf("%s: a row is not like itself", name)
		}
	}
}
