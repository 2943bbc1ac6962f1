package datasets

import (
	"maps"
	"slices"
	"strings"
)

// A Mapping says where the fields of a generic source are: for each target the
// paths to look at, in order of preference.
type Mapping map[string][]string

// ParseMapping reads specifications of the form target=path, as --map takes
// them. In JSON a path is dotted keys and array indices, such as
// usage.prompt_tokens or choices[0].text (or choices.0.text); a key that itself
// has dots is found as well. In CSV it is the name of a column. Alternatives
// are separated by "|": the first that is present and not null counts.
//
// The targets are those of [Targets]. ParseMapping returns nil for no
// specifications; its errors match [ErrUsage].
func ParseMapping(specs []string) (Mapping, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	m := Mapping{}
	for _, spec := range specs {
		name, where, ok := strings.Cut(spec, "=")
		switch {
		case !ok || slices.Contains(strings.Split(where, "|"), ""):
			return nil, usage("--map %q: want target=path", spec)
		case !slices.ContainsFunc(targets, func(t target) bool { return t.name == name }):
			return nil, usage("--map %q: unknown target; want one of %s", spec, targetNames())
		case m.has(name):
			return nil, usage("--map %q: this target is mapped twice", spec)
		}
		m[name] = strings.Split(where, "|")
	}
	return m, nil
}

// has reports whether the target is mapped, if only in another unit.
func (m Mapping) has(name string) bool {
	for given := range m {
		if quantity(given) == quantity(name) {
			return true
		}
	}
	return false
}

// quantity is a target without its unit.
func quantity(name string) string {
	for _, q := range []string{"ttft", "e2e"} {
		if strings.HasPrefix(name, q) {
			return q
		}
	}
	return name
}

// over returns m with the targets of base that it lacks.
func (m Mapping) over(base Mapping) Mapping {
	out := maps.Clone(base)
	maps.DeleteFunc(out, func(name string, _ []string) bool { return m.has(name) })
	maps.Copy(out, m)
	return out
}

// dotted returns m with its paths as lookup takes them.
func (m Mapping) dotted() Mapping {
	out := maps.Clone(m)
	for name, paths := range m {
		out[name] = slices.Clone(paths)
		for i := range paths {
			out[name][i] = dotted(paths[i])
		}
	}
	return out
}
