package release

import (
	"math/bits"
	"sort"
)

// unit is the weight that one unit of privacy adds to a table in all. It divides by
// 1 to 8, the numbers of turns that count.
const unit = 840

// turnsCounted is how many later turns of a session are counted.
const turnsCounted = 8

// turnsSummed is how many turns of a session, the first included, are in its sums.
const turnsSummed = 32

// The tables.
const (
	ofSessions  = iota // one cell: how many units there are
	ofPerUnit          // sessions of a user, by octave
	ofTrunks           // which public prefix the first request begins with
	ofInput            // first input, 4 cells an octave
	ofInputFine        // and 32
	ofOutput           // first output
	ofOutputFine
	ofTurns
	ofInputTurns // octave of the first input, by turns
	ofLengths    // first input by two octaves, and octave of the output
	ofStart      // when sessions begin, by octave of the first input
	ofRate       // arrivals, each session alike
	ofLoad       // arrivals, each turn alike
	ofKinds      // kinds of later turns
	ofKindAfter  // the same, by the kind and input of the turn before
	ofGap        // time since the turn before, by turns
	ofTyped      // tokens that a turn of a chat adds, by turns
	ofKept       // how much of the former prompt a branch keeps
	ofRatio      // input over former input, for branches that keep little of a short prompt, of a long one, and others
	ofLaterOutput
	ofLaterInput // tokens of all later turns together: those that were there, and new ones
	tables
)

// tableNames are those of model files and cards.
var tableNames = [tables]string{"sessions", "sessions_per_user", "trunks", "input", "input_fine", "output",
	"output_fine", "turns",
	"input_turns", "lengths", "start", "rate", "load", "kinds", "kind_after", "gap", "typed", "kept", "ratio",
	"later_output", "later_input"}

// shares divide ρ, in hundredths.
var shares = [tables]float64{1, 3, 2, 13, 7, 9, 4, 9, 8, 5, 7, 6, 2, 5, 6, 6, 8, 3, 3, 2, 8}

// Kinds of later turns.
const (
	chat   = iota // extends the former prompt and its reply
	branch        // leaves the former prompt part-way, or changes it
	again         // the whole prompt was sent before
	apart         // shares no more than a trunk
	first         // no later turn
)

// Edges of cells. The last is open.
var (
	turnEdges = []int64{1, 2, 3, 4, 5, 7, 9, 13, 17, 33}
	keptEdges = []int64{0, 50, 150, 350, 600, 800, 900, 950, 1000} // thousandths
	// input over former input, in 1/10000
	sizeEdges = []int64{0, 2500, 5000, 7071, 8706, 9593, 10000, 10425, 11487, 14142, 20000, 30314}
	kindEdges = []int64{0, 4096, 12288, 28672} // tokens of the turn before
	userEdges = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 65, 129, 257, 513, 1025}
)

const (
	fine       = 8 // fine cells in one coarse cell
	perOctave  = 4 * fine
	startCells = 16
	typedCells = 16
	ratioRows  = 3
	longPrompt = 12288 // tokens
	lengthRows = 5
	turnRows   = 4 // turns 1, 2, 3-4, 5 and more
)

// at is the cell of x among edges; what is below the first belongs to that.
func at(edges []int64, x int64) int {
	return max(0, sort.Search(len(edges), func(i int) bool { return edges[i] > x })-1)
}

// roots are 2^(j/32) times 2^31, by square roots of integers, so that edges are the
// same on every machine.
var roots = makeRoots()

func makeRoots() (out [perOctave]uint64) {
	var root [5]uint64 // 2^(1/2), 2^(1/4), … times 2^31
	x := uint64(1) << 32
	for i := range root {
		hi, lo := bits.Mul64(x, 1<<31)
		var r uint64
		for b := uint64(1) << 32; b > 0; b >>= 1 {
			if h, l := bits.Mul64(r|b, r|b); h < hi || h == hi && l <= lo {
				r |= b
			}
		}
		x, root[i] = r, r
	}
	for j := range out {
		out[j] = 1 << 31
		for i, r := range root {
			if j>>(4-i)&1 == 1 {
				hi, lo := bits.Mul64(out[j], r)
				out[j] = hi<<33 | lo>>31
			}
		}
	}
	return out
}

// ladder are edges scale·2^(i/per) for so many octaves, the end included.
func ladder(scale int64, per, octaves int) (edges []int64) {
	for i := 0; i <= per*octaves; i++ {
		hi, lo := bits.Mul64(uint64(scale)<<(i/per), roots[i%per*(perOctave/per)])
		edges = append(edges, int64(hi<<33|lo>>31))
	}
	return edges
}

// A layout is the cells of all tables. All of it is public: declared by the operator,
// or from noisy counts.
type layout struct {
	span    int64 // of the capture, ns
	size    int   // tokens of a block; 0 without blocks
	users   bool  // the unit is a user, who has sessions
	later   bool  // sessions can have later turns
	sourced bool  // sessions are the source's, so a turn can share nothing with those before
	depth   int   // blocks that a trunk may have; 0 for no trunks
	maxIn   int64
	maxOut  int64
	sums    int64 // limit of the tokens of all later turns of a session

	input, output []int64 // fine edges
	gap           []int64 // ns, half octaves from one second; before the first lie turns at the same time
	rate          int     // cells
	trunks        []trunk // selected
}

// A trunk is a prefix that many units share.
type trunk struct {
	depth  int   // blocks
	parent int32 // the trunk that it extends, or none
}

const none = -1

func (l *layout) edges() {
	l.input = ladder(1, perOctave, max(1, bits.Len64(uint64(l.maxIn-1))))
	l.output = ladder(1, perOctave, max(1, bits.Len64(uint64(l.maxOut-1))))
	l.gap = ladder(1e9, 2, max(1, bits.Len64(uint64(l.span/1e9))))
}

// shape is the number of rows and columns of a table; none where it is not measured.
func (l *layout) shape(table int) (rows, columns int) {
	in, out := (len(l.input)-1)/perOctave, (len(l.output)-1)/perOctave
	kinds := 3
	if l.sourced {
		kinds = 4
	}
	switch table {
	case ofSessions:
		return 1, 1
	case ofPerUnit:
		if l.users {
			return 1, len(userEdges)
		}
		return 0, 0
	case ofTrunks:
		if l.depth > 0 && len(l.trunks) > 0 {
			return 1, len(l.trunks) + 1
		}
		return 0, 0
	case ofInput:
		return 1, 4 * in
	case ofInputFine:
		return 1, perOctave * in
	case ofOutput:
		return 1, 4 * out
	case ofOutputFine:
		return 1, perOctave * out
	case ofLengths:
		return lengthRows, out
	case ofStart:
		return l.octaveRow(l.maxIn) + 1, startCells
	case ofRate:
		return 1, l.rate
	}
	if !l.later {
		return 0, 0
	}
	switch table {
	case ofTurns:
		return 1, len(turnEdges) - 1
	case ofInputTurns:
		return l.octaveRow(l.maxIn) + 1, turnRows
	case ofLoad:
		return 1, startCells
	case ofKinds:
		return 1, kinds
	case ofKindAfter:
		return 3 * len(kindEdges), kinds
	case ofGap:
		return turnRows - 1, len(l.gap)
	case ofTyped:
		return turnRows - 1, typedCells
	case ofKept:
		return 1, len(keptEdges) - 1
	case ofRatio:
		return ratioRows, len(sizeEdges) - 1
	case ofLaterOutput:
		return 1, out
	case ofLaterInput:
		return 1, 2
	}
	return 0, 0
}

// drawn is the same of the tables that sessions are drawn from, which others shape.
func (l *layout) drawn(table int) (rows, columns int) {
	switch {
	case table == ofPerUnit || table == ofInput || table == ofOutput || table == ofKinds || table == ofLaterInput:
		return 0, 0
	case table == ofLaterOutput && l.later:
		return l.shape(ofLengths)
	}
	return l.shape(table)
}

// octaveRow is the row of an input in the table by turns: octaves from 512 tokens to
// 65,536 and more.
func (l *layout) octaveRow(input int64) int {
	return min(6, max(0, bits.Len64(uint64(min(input, l.maxIn-1)))-10))
}

// lengthRow is the row of an input in the table of lengths: two octaves, from 1,024 on.
func lengthRow(input int64) int {
	return min(lengthRows-1, max(0, (bits.Len64(uint64(max(1, input)))-1)/2-4))
}

// turnRow is the row of a session of so many turns.
func turnRow(turns int64) int {
	switch {
	case turns <= 2:
		return int(turns) - 1
	case turns < 5:
		return 2
	}
	return 3
}

// ratioRow is the row of a turn that keeps a class of the blocks of one of an input.
func ratioRow(input int64, kept int) int {
	switch {
	case kept > 4:
		return 2
	case input >= longPrompt:
		return 1
	}
	return 0
}

// kindRow is the row of a turn after one of a kind and an input.
func kindRow(kind int, input int64) int {
	row := 0
	switch kind {
	case chat:
		row = 1
	case branch, again, apart:
		row = 2
	}
	return row*len(kindEdges) + at(kindEdges, input)
}
