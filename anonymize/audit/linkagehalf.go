package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// A halfResult says how well somebody who knows a few requests of a session, or of whatever
// else the unit is, tells whether it was in the source of a release. Of the source two
// releases are made anew, each of one half of the units. Everybody asked about is a member
// of one and no member of the other.
type halfResult struct {
	Known    int     `json:"requests_known"` // of each
	Sessions int     `json:"units_asked_about"`
	AUC      float64 `json:"auc"` // of telling members from others by how near rows are; 0.5 is chance
	Error    float64 `json:"auc_standard_error"`
	// share that exactly one released session matches in half octaves of the lengths
	Members float64 `json:"members_singled_out"`
	Others  float64 `json:"others_singled_out"` // of those who were not in the source: chance
}

const (
	leastTargets  = 50
	mostTargets   = 2000
	mostAUC       = 0.05 // away from 0.5
	mostUnicity   = 0.05 // more of the members than of others that may be singled out
	surelyErrors  = 3    // standard errors that are no chance
	minuteOctaves = 4    // a quarter octave is as far as a minute
)

// Found reports whether members can be told from others, beyond doubt.
func (h *halfResult) Found() bool {
	n := float64(max(1, h.Sessions))
	off, more := math.Abs(h.AUC-0.5), h.Members-h.Others
	sd := math.Sqrt((h.Members*(1-h.Members) + h.Others*(1-h.Others)) / n)
	return off > mostAUC && off > surelyErrors*h.Error || more > mostUnicity && more > surelyErrors*sd
}

// String is a line for people.
func (h halfResult) String() string {
	return fmt.Sprintf("who knows %d requests of one of %d in the source or not in it tells which with an AUC of "+
		"%.3f (± %.3f; 0.5 is chance), and singles out %.1f %% of its requests and %.1f %% of other requests",
		h.Known, h.Sessions, h.AUC, 2*h.Error, 100*h.Members, 100*h.Others)
}

// drawnOptions are the settings of a release by its card. A release of a part of the source
// may be of any size.
func drawnOptions(s *dp.SessionStatement) release.Options {
	o := release.Options{Unit: s.Unit, Budget: s.Budget, MaxInput: int32(s.MaxInput), MaxOutput: int32(s.MaxOutput),
		Unchecked: true, TrunkBlocks: -1}
	if s.Trunks != nil {
		o.TrunkBlocks = s.Trunks.Blocks
	}
	return o
}

// unitKey tells the unit of a row, as the release does.
func unitKey(unit string, meta trace.Meta, trunk int) func(row int64, r *trace.Request) (int64, bool) {
	prefix := unit == synth.UnitSession && meta.Sessions != "source"
	return func(row int64, r *trace.Request) (int64, bool) {
		switch {
		case prefix && len(r.Blocks) > max(0, trunk):
			return int64(r.Blocks[max(0, trunk)]), true
		case prefix:
			return -1 - row, true
		}
		return rowUnit(unit, row, r)
	}
}

// rowUnit is the unit of a row, or false where it names none.
func rowUnit(unit string, row int64, r *trace.Request) (int64, bool) {
	id := &row
	switch unit {
	case anonymize.UnitUser:
		id = r.User
	case anonymize.UnitSession:
		id = r.Session
	}
	if id == nil {
		return 0, false
	}
	return *id, true
}

// A knownRow is what somebody may know of a request, and what is compared of a row.
type knownRow struct {
	at      int64
	in, out int32
	session int64
}

// octaves is the distance of two rows but for the time, in minutes' worth.
func (k *knownRow) octaves(o *knownRow) float64 {
	a, b := placeOf(k.in, k.out), placeOf(o.in, o.out)
	return minuteOctaves * (math.Abs(a.x-b.x) + math.Abs(a.y-b.y))
}

// key is of the half octaves of both lengths.
func (k *knownRow) key() uint64 {
	return mixKey(mixKey(1, halfOctave(k.in)), halfOctave(k.out))
}

func halfOctave(n int32) uint64 { return uint64(2 * math.Log2(1+float64(max(n, 0)))) }

// A target is a unit that is asked about: some rows of it are known.
type target struct {
	half int
	seen int64
	rows []knownRow
}

// halfTest plays the test with a release of each half.
func (c *Case) halfTest(ctx context.Context, src anonymize.Source, o release.Options) (h halfResult, err error) {
	key := unitKey(o.Unit, src.Meta, o.TrunkBlocks)
	rng := rand.New(rand.NewPCG(c.Seed, 0x4a1f))
	salt, salt2 := rng.Uint64(), rng.Uint64()
	half := func(unit int64) int { return int(mixKey(salt, uint64(unit)) & 1) }
	count := map[int64]int64{}
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		if unit, ok := key(row, r); ok && r.Status != trace.StatusFailed {
			count[unit]++
		}
		return nil
	})
	if err != nil {
		return h, err
	}

	units, known := mostKnown(count)
	h.Known, count = known, nil
	slices.SortFunc(units, func(a, b int64) int {
		return cmp.Compare(mixKey(salt2, uint64(a)), mixKey(salt2, uint64(b)))
	})
	targets := map[int64]*target{}
	for _, unit := range units[:min(len(units), mostTargets)] {
		targets[unit] = &target{half: half(unit)}
	}
	if h.Sessions = len(targets); h.Sessions < leastTargets {
		return h, nil
	}
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		if unit, ok := key(row, r); ok && targets[unit] != nil && r.Status != trace.StatusFailed {
			targets[unit].learn(knownRow{at: r.ArrivalNS, in: r.InputTokens, out: r.OutputOr(-1)}, h.Known, rng)
		}
		return nil
	})
	if err != nil {
		return h, err
	}

	near := [2][]float64{} // members, others
	alone := [2]int{}
	for side := range 2 {
		rows, err := c.drawHalf(ctx, src, o, func(row int64, r *trace.Request) bool {
			unit, ok := key(row, r)
			return ok && half(unit) == side
		}, byte(side))
		if err != nil {
			return h, err
		}

		points := make([]sessionPoint, 0, len(rows))
		for i := range rows {
			points = append(points, sessionPoint{rows[i].key(), uint32(rows[i].session)})
		}
		sortPoints(points)
		for _, unit := range units[:len(targets)] {
			if err := ctx.Err(); err != nil {
				return h, err
			}
			t := targets[unit]
			of, sum := t.half^side, 0.0
			var keys []uint64
			for i := range t.rows {
				sum += nearestRow(rows, &t.rows[i])
				keys = append(keys, t.rows[i].key())
			}
			near[of] = append(near[of], sum)
			if matches(points, keys) == 1 {
				alone[of]++
			}
		}
	}
	n := float64(h.Sessions)
	h.AUC, h.Error = nearer(near[0], near[1]), math.Sqrt((2*n+1)/(12*n*n))
	h.Members, h.Others = float64(alone[0])/n, float64(alone[1])/n
	return h, nil
}

// learn offers a request of the target to the sample that the attacker knows: so many requests, drawn evenly.
func (t *target) learn(one knownRow, known int, rng *rand.Rand) {
	t.seen++
	if len(t.rows) < known {
		t.rows = append(t.rows, one)
	} else if i := rng.Int64N(t.seen); i < int64(known) {
		t.rows[i] = one
	}
}

// mostKnown returns the most requests that an attacker can know of each unit while enough units have as many, and
// the units that have.
func mostKnown(count map[int64]int64) (units []int64, known int) {
	for known = mostPoints; known > 0 && len(units) < 2*leastTargets; known-- {
		units = units[:0]
		for unit, n := range count {
			if n >= int64(known) {
				units = append(units, unit)
			}
		}
	}
	return units, known + 1
}

// drawHalf releases some rows of a source, and draws as many, in order of time.
func (c *Case) drawHalf(ctx context.Context, src anonymize.Source, o release.Options, keep func(row int64,
	r *trace.Request) bool, number byte) (out []knownRow, err error) {
	part := src
	part.Open = func() (trace.Reader[trace.Request], error) {
		rows, err := src.Open()
		return &keptRows{rows: rows, keep: keep}, err
	}
	o.Noise = dp.NewNoiseFrom(rand.NewChaCha8([32]byte{byte(c.Seed), byte(c.Seed >> 8), number}))
	rows, err := c.make().draw(ctx, part, o, c.Seed)
	if err != nil {
		return nil, err
	}
	err = trace.Each(rows, func(row int64, r *trace.Request) error {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		one := knownRow{r.ArrivalNS, r.InputTokens, r.OutputOr(-1), row}
		if r.Session != nil {
			one.session = *r.Session
		}
		out = append(out, one)
		return nil
	})
	return out, err
}

// drawSessions is the maker of a release for a partner.
func drawSessions(ctx context.Context, src anonymize.Source, o release.Options,
	seed uint64) (trace.Reader[trace.Request], error) {
	rows, err := src.Open()
	if err != nil {
		return nil, err
	}
	m, _, err := release.Fit(ctx, rows, src.Meta, o)
	if err != nil {
		return nil, err
	}
	w, err := m.Generate(release.Drawing{Seed: seed})
	if err != nil {
		return nil, err
	}
	return w.Reader(), nil
}

// nearestRow is the least distance of a row to others, which are in order of time, in
// minutes and quarter octaves.
func nearestRow(rows []knownRow, k *knownRow) float64 {
	const minute = 60e9
	best := math.Inf(1)
	at := sort.Search(len(rows), func(i int) bool { return rows[i].at >= k.at })
	for i := at; i < len(rows) && float64(rows[i].at-k.at)/minute < best; i++ {
		best = min(best, float64(rows[i].at-k.at)/minute+k.octaves(&rows[i]))
	}
	for i := at - 1; i >= 0 && float64(k.at-rows[i].at)/minute < best; i-- {
		best = min(best, float64(k.at-rows[i].at)/minute+k.octaves(&rows[i]))
	}
	return best
}

// nearer is how often one of members is nearer than one of others: the area under the curve
// of telling them apart.
func nearer(members, others []float64) float64 {
	slices.Sort(others)
	sum := 0.0
	for _, m := range members {
		at, _ := slices.BinarySearch(others, m)
		after := at + sort.Search(len(others)-at, func(i int) bool { return others[at+i] > m })
		sum += float64(len(others)-after) + float64(after-at)/2
	}
	return sum / float64(len(members)) / float64(len(others))
}

// keptRows leaves rows out.
type keptRows struct {
	rows trace.Reader[trace.Request]
	keep func(row int64, r *trace.Request) bool
	at   int64
}

// Read implements [trace.Reader].
func (k *keptRows) Read(rows []trace.Request) (int, error) {
	for {
		n, err := k.rows.Read(rows)
		kept := 0
		for i := range rows[:n] {
			if k.keep(k.at, &rows[i]) {
				rows[kept], rows[i] = rows[i], rows[kept]
				kept++
			}
			k.at++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}
