package dp

// A Measured is all that a model keeps of a trace: what noisy counts chose, and tables
// with noise. Everything else of the model follows from it.
type Measured struct {
	Chosen string // which cells there are, as noisy counts say
	Tables []Noisy
}

// A Noisy is a table with its noise, and how much that is.
type Noisy struct {
	Spec  NoiseSpec
	Cells []int64
}
