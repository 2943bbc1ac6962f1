package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// unmeasured is why an engine of one frontier has no curve in a class of another.
const unmeasured = "not measured"

// ReadFrontier reads the JSON of a frontier. Errors begin with the name, and with the line and the column at fault.
func ReadFrontier(name string, in io.Reader) (FrontierResult, error) {
	var r FrontierResult
	if err := readResult(name, "the result of a frontier", in, frontierSchema, &r, &r.Schema); err != nil {
		return r, err
	}
	return r, r.check(name)
}

// check refuses curves that no frontier has.
func (r *FrontierResult) check(name string) error {
	engines := map[string]bool{}
	for _, e := range r.Engines {
		if engines[e.Name] {
			return fmt.Errorf("%s: %s is there twice", name, printable(e.Name))
		}
		if engines[e.Name] = true; e.GPUs < 1 {
			return fmt.Errorf("%s: %s has no GPU", name, printable(e.Name))
		}
	}
	for _, c := range r.Classes {
		for _, curve := range c.Curves {
			if !engines[curve.Engine] {
				return fmt.Errorf("%s: a curve is of %s, which is no engine of it", name, printable(curve.Engine))
			}
			for _, p := range curve.Points {
				if !(p.PerUser > 0) || !(p.OutputPerGPU > 0) {
					return fmt.Errorf("%s: %s has a level without throughput", name, printable(curve.Engine))
				}
			}
		}
	}
	return nil
}

// Overlay lays the curves of another frontier over these. An engine of the same name is called
// after as as well. Classes are the same where their lengths are.
func (r *FrontierResult) Overlay(other FrontierResult, as string) error {
	names := map[string]string{}
	for _, e := range other.Engines {
		name := e.Name
		if r.has(name) {
			name = as + ": " + name
		}
		if r.has(name) {
			return fmt.Errorf("%s is there twice", name)
		}
		names[e.Name] = name
		e.Name = name
		r.Engines = append(r.Engines, e)
	}
	for _, c := range other.Classes {
		at := slices.IndexFunc(r.Classes, func(o FrontierClass) bool { return o.LengthClass == c.LengthClass })
		if at < 0 {
			if slices.ContainsFunc(r.Classes, func(o FrontierClass) bool { return o.Name == c.Name }) {
				return fmt.Errorf("%s has other lengths than here: %s and %s", printable(c.Name),
					printable(c.Prompt), printable(c.Output))
			}
			at = len(r.Classes)
			r.Classes = append(r.Classes, FrontierClass{LengthClass: c.LengthClass})
		}
		for _, curve := range c.Curves {
			curve.Engine = names[curve.Engine]
			r.Classes[at].Curves = append(r.Classes[at].Curves, curve)
		}
	}
	r.Schema = frontierSchema
	for i := range r.Classes {
		r.Classes[i].complete(r.Engines)
		r.Classes[i].rank()
	}
	if len(r.Engines) == 0 || len(r.Classes) == 0 {
		return errors.New("it has no curves")
	}
	return nil
}

func (r *FrontierResult) has(name string) bool {
	return slices.ContainsFunc(r.Engines, func(e FrontierEngine) bool { return e.Name == name })
}

// complete gives every engine a curve, in their order.
func (c *FrontierClass) complete(engines []FrontierEngine) {
	curves := make([]FrontierCurve, 0, len(engines))
	for _, e := range engines {
		at := slices.IndexFunc(c.Curves, func(o FrontierCurve) bool { return o.Engine == e.Name })
		if at < 0 {
			curves = append(curves, FrontierCurve{Engine: e.Name, Points: []FrontierPoint{}, Unserved: unmeasured})
			continue
		}
		curves = append(curves, c.Curves[at])
	}
	c.Curves = curves
}

// Reprice computes what tokens cost and take by other prices: those of an engine where price
// says some.
func (r *FrontierResult) Reprice(price func(gpu string) Prices) {
	for i := range r.Engines {
		e, given := &r.Engines[i], price(r.Engines[i].GPU)
		if given.PerGPUHour > 0 {
			e.PerGPUHour = given.PerGPUHour
		}
		if given.Watts > 0 {
			e.Watts, e.DataSheet, e.Metered = given.Watts, false, false
		}
		for j := range r.Classes {
			c := &r.Classes[j]
			points := slices.Clone(c.Curves[i].Points)
			for k := range points {
				points[k].price(e)
			}
			c.Curves[i].Points = points
			c.rank()
		}
	}
}

// Untrusted is what a server's client was the limit of, "" where it was of nothing.
func (r *FrontierResult) Untrusted() string {
	for _, c := range r.Classes {
		for _, curve := range c.Curves {
			if curve.Untrusted != "" {
				return curve.Engine + ", " + c.Name + ": " + curve.Untrusted
			}
		}
	}
	return ""
}
