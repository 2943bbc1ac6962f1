package trace

// NewSmallSorter is a Sorter that spills after limit bytes.
func NewSmallSorter(dir string, limit int64) *Sorter { return &Sorter{dir: dir, limit: limit} }

// ParseManifest reads a manifest.
var ParseManifest = parseManifest

// NewSpilledNumbers opens numbers of which so many pages are in memory.
var NewSpilledNumbers = newSpilledNumbers

// At is the place of a number.
func (n *spilledNumbers) At(i uint64, write bool) (*uint64, error) { return n.at(i, write) }
