package trace

// NewSmallSorter is a Sorter that spills after limit bytes.
func NewSmallSorter(dir string, limit int64) *Sorter { return &Sorter{dir: dir, limit: limit} }

// ParseManifest reads a manifest.
var ParseManifest = parseManifest
