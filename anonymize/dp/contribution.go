package dp

// A Contribution bounds what one user adds to histograms: at most Records of
// the user's records, chosen uniformly, and of these at most PerCell in any one
// cell of each histogram. The histogram's sensitivities are then those of
// [Contribution.Measurement].
type Contribution struct {
	Records int `json:"records_per_user"`          // C
	PerCell int `json:"records_per_user_and_cell"` // m
}

// DefaultContribution keeps eight records of a user, two in a cell.
var DefaultContribution = Contribution{Records: 8, PerCell: 2}

// Measurement is a histogram of bounded contributions: L1 is C, and C records
// of which m fall in one cell change its squares by C·m at most.
func (c Contribution) Measurement(name string, cells int, weight float64) Measurement {
	return Measurement{Name: name, L1: int64(c.Records), L2Squared: int64(c.Records) * int64(c.PerCell), Cells: cells, Weight: weight}
}

// A Sample keeps a uniform sample of the records of one user, in one pass.
type Sample[T any] struct {
	Seen int64 // records offered
	Kept []T
}

// Offer takes the next record of the user (Vitter's algorithm R).
func (s *Sample[T]) Offer(n *Noise, c Contribution, record T) {
	s.Seen++
	if len(s.Kept) < c.Records {
		s.Kept = append(s.Kept, record)
		return
	}
	if at := n.below(wide{0, uint64(s.Seen)}); at.lo < uint64(c.Records) && n.err == nil {
		s.Kept[at.lo] = record
	}
}

// Bounded calls add for the kept records of one user until a cell has PerCell of
// them. Call it once for each user and histogram.
func Bounded[T any, K comparable](c Contribution, s *Sample[T], cell func(T) K, add func(K)) (dropped int) {
	in := make(map[K]int, len(s.Kept))
	for _, r := range s.Kept {
		k := cell(r)
		if in[k]++; in[k] <= c.PerCell {
			add(k)
		} else {
			dropped++
		}
	}
	return dropped
}
