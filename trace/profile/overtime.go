package profile

// timeBins is how many bins a series over time has at most.
const timeBins = 60

// OverTime is the traffic and its reuse over the trace, in bins of equal width
// from the first arrival on. There are up to 60, and no fewer than 55 of a trace
// that is not of a few instants: bins are made of the spans of 2^k ns that sums
// are kept apart by.
type OverTime struct {
	BinS float64   `json:"bin_s"`
	Bins []TimeBin `json:"bins"`
}

// A TimeBin is one bin: the requests that arrive from its start up to but
// without its end. The last one ends with the trace and holds its last arrival.
type TimeBin struct {
	StartS float64 `json:"start_s"` // since the first arrival
	EndS   float64 `json:"end_s"`
	TrafficReuse
}

// overTime makes the series of a trail that has every request of the epoch, so
// that its spans are as long; or nil without requests.
func (t *trail) overTime(e *epoch) *OverTime {
	if t.whole.load == 0 {
		return nil
	}
	n := int(e.elapsed()>>e.shift) + 1
	each := (n + timeBins - 1) / timeBins
	bins := make([]traffic, (n+each-1)/each)
	for _, s := range t.spans {
		bins[int(s.number)/each].add(&s.traffic)
	}
	width := float64(uint64(each)<<e.shift) / second
	series := &OverTime{BinS: width}
	for i := range bins {
		series.Bins = append(series.Bins, TimeBin{StartS: float64(i) * width, EndS: float64(i+1) * width, TrafficReuse: bins[i].summary()})
	}
	series.Bins[len(bins)-1].EndS = float64(e.elapsed()) / second
	return series
}
