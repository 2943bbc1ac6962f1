package synth_test

import (
	"testing"

	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/trace"
)

func init() { synth.Compared = compared }

func compared(t testing.TB, refMeta trace.Meta, ref []trace.Request, gotMeta trace.Meta, got []trace.Request) synth.Closeness {
	t.Helper()
	a, b := fidelity.NewSignature(refMeta, fidelity.Options{}), fidelity.NewSignature(gotMeta, fidelity.Options{})
	if _, err := a.Write(ref); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(got); err != nil {
		t.Fatal(err)
	}
	f, err := fidelity.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	c := synth.Closeness{Distance: map[string]*float64{}, Warnings: f.Warnings}
	for _, m := range f.Measures {
		c.Distance[m.Name] = m.Distance
	}
	return c
}
