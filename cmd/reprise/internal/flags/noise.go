package flags

import "reprise/replay/engine"

// noise is the value of noise.
type noise struct{ to *engine.Noise }

// Set implements [pflag.Value].
func (n noise) Set(text string) (err error) {
	*n.to, err = engine.ParseNoise(text)
	return err
}

// String implements [pflag.Value].
func (n noise) String() string {
	if n.to == nil { // pflag makes a zero value to compare with
		return ""
	}
	return n.to.String()
}

// Type implements [pflag.Value].
func (n noise) Type() string { return "noise" }
