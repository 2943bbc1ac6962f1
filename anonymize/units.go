package anonymize

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"reprise/trace"
)

// Units are the users, sessions or requests of a source log, by number in the order in
// which they come. They tell what a release owes to one of them: leave one out, and
// import again.
type Units struct {
	unit    string
	numbers map[string]int
	names   []string // of each unit; none of requests
	of      []int    // unit of each entry; -1 for one that names none
	entries []int    // of each unit
	extreme [4]int
}

// SurveyUnits reads a source log. The unit is one of [UnitUser], [UnitSession] and [UnitRequest].
func SurveyUnits(src trace.EntryReader, unit string) (*Units, error) {
	u := &Units{unit: unit, numbers: map[string]int{}}
	batch := make([]trace.Entry, 256)
	var first, last *trace.Entry
	longest, mostCached := -1, -1.
	for {
		n, err := src.Read(batch)
		for i := range batch[:n] {
			en := batch[i]
			key := u.add(&en)
			if key < 0 {
				continue
			}
			if first == nil || en.Time.Before(first.Time) {
				first, u.extreme[0] = &en, key
			}
			if last == nil || !en.Time.Before(last.Time) {
				last, u.extreme[1] = &en, key
			}
			length := 0
			if en.InputTokens != nil {
				length = int(*en.InputTokens)
			}
			for _, m := range en.Messages {
				length += m.Content.Len()
			}
			if length > longest {
				longest, u.extreme[2] = length, key
			}
			if en.Cached != nil && en.InputTokens != nil {
				if share := float64(*en.Cached) / float64(max(1, *en.InputTokens)); share > mostCached {
					mostCached, u.extreme[3] = share, key
				}
			}
		}
		if err == io.EOF {
			return u, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (u *Units) add(en *trace.Entry) int {
	name := ""
	switch u.unit {
	case UnitUser:
		name = en.User.Reveal()
	case UnitSession:
		name = en.Session.Reveal()
	default:
		u.of, u.entries = append(u.of, len(u.entries)), append(u.entries, 1)
		return len(u.entries) - 1
	}
	if name == "" {
		u.of = append(u.of, -1)
		return -1
	}
	n, ok := u.numbers[name]
	if !ok {
		n = len(u.entries)
		u.numbers[name], u.entries, u.names = n, append(u.entries, 0), append(u.names, strings.Clone(name))
	}
	u.entries[n]++
	u.of = append(u.of, n)
	return n
}

// Extreme names the units by which a release is told best that they were there: the one
// with the first request, with the last, with the longest, with the largest cached share, and
// with the most. Some of them may be one.
func (u *Units) Extreme() []int {
	if len(u.entries) == 0 {
		return nil
	}
	heaviest := slices.Index(u.entries, slices.Max(u.entries))
	out := append(u.extreme[:len(u.extreme):len(u.extreme)], heaviest)
	slices.Sort(out)
	return slices.Compact(out)
}

// Some are the extreme units, and others at random, n in all; or all where there are no more.
func (u *Units) Some(n int, r *rand.Rand) []int {
	out := u.Extreme()
	for _, i := range r.Perm(len(u.entries)) {
		if len(out) >= n {
			break
		}
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// Name is the name of a unit in the log; empty for a request.
func (u *Units) Name(unit int) string {
	if u.unit == UnitRequest {
		return ""
	}
	return u.names[unit]
}

// Entries are how many entries a unit has, and how many there are in all.
func (u *Units) Entries(unit int) (n, all int) { return u.entries[unit], len(u.of) }

// Without is the source log without one unit. src is the log that was surveyed, opened
// again.
func (u *Units) Without(src trace.EntryReader, unit int) trace.EntryReader {
	w := &withoutUnit{src: src, of: u.of, leave: unit, moved: make([]int64, len(u.of))}
	left := int64(0)
	for i, of := range u.of {
		w.moved[i] = left
		if of == unit {
			w.moved[i] = -1
		} else {
			left++
		}
	}
	return w
}

type withoutUnit struct {
	src   trace.EntryReader
	of    []int
	leave int
	moved []int64 // new positions
	at    int
}

func (w *withoutUnit) Read(batch []trace.Entry) (int, error) {
	for {
		n, err := w.src.Read(batch)
		kept := 0
		for i := range batch[:n] {
			if w.at >= len(w.of) {
				return kept, io.ErrUnexpectedEOF // not what was surveyed
			}
			if w.of[w.at] != w.leave {
				batch[kept] = batch[i]
				e := &batch[kept]
				var parents []int64
				for _, p := range e.Parents {
					if p >= 0 && p < int64(len(w.moved)) && w.moved[p] >= 0 {
						parents = append(parents, w.moved[p])
					}
				}
				e.Parents = parents
				kept++
			}
			w.at++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}
