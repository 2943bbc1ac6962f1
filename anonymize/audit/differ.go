package audit

import (
	"errors"
	"reflect"
	"strings"

	"reprise/trace"
)

var errEnough = errors.New("enough was read")

// differing names the columns in which two rows differ.
func differing(a, b *trace.Request) []string {
	var out []string
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		if f, g := x.Field(i), y.Field(i); !reflect.DeepEqual(f.Interface(), g.Interface()) && !(f.Kind() == reflect.Slice && f.Len()+g.Len() == 0) {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("parquet"), ",")
			out = append(out, name)
		}
	}
	return out
}
