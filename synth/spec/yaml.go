package spec

import (
	"errors"
	"math"
	"strings"

	"reprise/trace/quantity"
	"reprise/trace/strictyaml"
)

// MaxText is the largest text that [Parse] reads, in bytes. Text is cheap; what
// YAML makes from it is not: the parser takes some 200 bytes of memory for each.
const MaxText = 1 << 20

// Parse reads a specification. Errors name the line and column at fault, or
// those of the nearest key that is there when one is missing.
func Parse(name string, text []byte) (*Spec, error) {
	s := new(Spec)
	doc, err := strictyaml.Parse(text, strictyaml.Bounds{What: "a specification", Bytes: MaxText})
	if err == nil {
		err = doc.Walk(refused)
	}
	if err == nil {
		err = doc.Decode(s)
	}
	if err == nil {
		err = placed(doc, s.Check())
	}
	if err != nil {
		return nil, strictyaml.Named(name, err)
	}
	return s, nil
}

// refused tells why a value does not fit its key: numbers with a fraction, which
// decoding would cut off, and times.
func refused(key string, n strictyaml.Node) error {
	switch key {
	case "block", "global", "count", "window", "above":
		if v, err := n.Number(); err == nil && v != math.Trunc(v) {
			return n.Faultf("%s: want a whole number", key)
		}
	case "requests", "users":
		_, err := strictyaml.Parsed(quantity.Count)(n)
		return err
	case "duration":
		_, err := strictyaml.Parsed(quantity.Duration)(n)
		return err
	}
	return nil
}

// placed is the fault of a key at its place. What a part of a mix takes from the
// top level is there, and the place of a key that is missing is that of the one
// above it.
func placed(doc strictyaml.Node, err error) error {
	var key *keyFault
	if !errors.As(err, &key) {
		return err
	}
	for p := key.path; ; {
		if at, ok := doc.Find(p); ok {
			return at.Faultf("%v", err)
		}
		if inPart, ok := strings.CutPrefix(p, "mix["); ok {
			_, below, _ := strings.Cut(inPart, "]")
			if below = strings.TrimPrefix(below, "."); below != "" {
				if at, ok := doc.Find(below); ok {
					return at.Faultf("%v", err)
				}
			}
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			return err
		}
		p = p[:cut]
	}
}
