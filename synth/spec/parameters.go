package spec

import (
	"fmt"
	"reflect"
	"strings"
)

// A Parameter is a key of a specification that was set.
type Parameter struct {
	Key    string `json:"key"` // its path, such as mix[0].sessions.turns
	Value  string `json:"value"`
	Source string `json:"source,omitempty"` // where the value is from, if the specification says so
}

// Parameters lists the keys that are set, in their order, with their sources.
func (s *Spec) Parameters() []Parameter {
	var list []Parameter
	keysOf("", reflect.ValueOf(*s), func(key, value string) {
		if key != "name" && key != "about" {
			list = append(list, Parameter{key, value, s.Sources[key]})
		}
	})
	return list
}

// checkSources refuses a source of a key that is not set.
func (s *Spec) checkSources() error {
	set := map[string]bool{}
	for _, p := range s.Parameters() {
		set[p.Key] = true
	}
	var missing string
	for key := range s.Sources {
		if !set[key] && (missing == "" || key < missing) {
			missing = key
		}
	}
	if missing != "" {
		return at("sources", fmt.Errorf("%s is not set in this specification", missing))
	}
	return nil
}

// keysOf calls f for each key below v that is set.
func keysOf(path string, v reflect.Value, f func(key, value string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			keysOf(path, v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, inline, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			switch {
			case inline != "":
				keysOf(path, v.Field(i), f)
			case path == "":
				keysOf(name, v.Field(i), f)
			default:
				keysOf(path+"."+name, v.Field(i), f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			keysOf(fmt.Sprintf("%s[%d]", path, i), v.Index(i), f)
		}
	case reflect.Map: // the sources themselves
	default:
		if !v.IsZero() {
			f(path, fmt.Sprint(v.Interface()))
		}
	}
}
