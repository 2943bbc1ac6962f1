package datasets

import (
	"slices"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
)

// openMapped reads rows by a mapping. look yields the first of them once more: they show
// in which fields JSON is packed as a string, so that the mapping can name what is in it.
func openMapped(all, first, look row.Reader, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	packed := packedFields(look, m)
	if len(packed) == 0 {
		return newMappedDecoder(all, first, m, o, s)
	}
	for _, field := range packed {
		s.fields.KnowPacked(field)
	}
	return openView(all, first, func(r row.Row, _ *fault.Notes) (row.Row, error) {
		v := row.NewView(r)
		for _, field := range packed {
			v.Unpack(field) // what is no JSON has none of the fields
		}
		return v, nil
	}, m, o, s)
}

// packedFields are those above the paths of a mapping that hold JSON objects as strings.
func packedFields(in row.Reader, m Mapping) (packed []string) {
	above := map[string]bool{}
	for name := range m {
		for _, path := range m.places(name) {
			for at := range path {
				if path[at] == '.' {
					above[path[:at]] = true
				}
			}
		}
	}
	for n := 0; n < sniff.MaxRecords && len(above) > 0; n++ {
		r, err := in.Next()
		if f, ok := err.(*fault.Fault); ok && !f.Stop {
			continue
		}
		if err != nil {
			break
		}
		for field := range above {
			if v, ok := r.Value(field); ok && packedJSON(v) != nil {
				packed = append(packed, field)
				delete(above, field)
			}
		}
	}
	slices.Sort(packed)
	return packed
}

// packedJSON is the object or the list that is packed as JSON in a string; nil for none.
func packedJSON(v any) any {
	s, ok := v.(string)
	if start := strings.TrimLeft(s, " \t\r\n"); !ok || start == "" || start[0] != '{' && start[0] != '[' {
		return nil
	}
	value, _, ok := row.DecodeJSON([]byte(s))
	if !ok {
		return nil
	}
	return value
}

// inColumns returns m with the paths that are no column as they lead into one.
func (m Mapping) inColumns(columns []string) Mapping {
	out := Mapping{}
	for name, paths := range m {
		for _, path := range paths {
			inColumn := func(path string) string {
				if slices.Contains(columns, path) {
					return path
				}
				return row.Dotted(path)
			}
			if parts := sumParts(path); parts != nil && isCountTarget(name) && !slices.Contains(columns, path) {
				for i := range parts {
					parts[i] = inColumn(parts[i])
				}
				out[name] = append(out[name], strings.Join(parts, "+"))
				continue
			}
			out[name] = append(out[name], inColumn(path))
		}
	}
	return out
}
