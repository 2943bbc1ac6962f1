package calibrate

// A Design is the loads that the records lack for a good fit.
type Design struct{}

func (f *fitted) design() (Design, error) { return Design{}, nil }
