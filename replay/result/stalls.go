package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// A Stall is a time in which the client stood still. Instants are nanoseconds from
// the start of the run.
type Stall struct {
	FromNS int64 `json:"from_ns"` // when the client asked to be woken
	ToNS   int64 `json:"to_ns"`   // when it was
}

// Stalls say when the client stood still, as its heartbeat noticed. What a server
// sent in a stall was read at its end, so that the stall is in the latencies.
type Stalls struct {
	AboveNS   int64 `json:"above_ns"` // a wake-up that is later than this is a stall
	Count     int64 `json:"count"`
	TotalNS   int64 `json:"total_ns"`
	LongestNS int64 `json:"longest_ns"`
	// Intervals are in order and apart, at most 4,096. Beyond that the closest
	// neighbours become one interval, the time between them included: Count, TotalNS
	// and LongestNS stay as they are, and the intervals cover more than TotalNS. Files
	// keep them beside the Run.
	Intervals []Stall `json:"-"`
}

// mostStalls bounds the intervals of a run: 64 KB of memory, three times a run
// at most, and some 160 KB of JSON in a results file. Without any joined they hold 20 s
// of stalls at least.
const mostStalls = 4096

// Add takes a stall that begins no sooner than the last one. A stall that begins
// within the last one is the same, which has gone on.
func (s *Stalls) Add(x Stall) {
	if n := len(s.Intervals); n > 0 && x.FromNS <= s.Intervals[n-1].ToNS {
		last := &s.Intervals[n-1]
		s.TotalNS += max(x.ToNS-last.ToNS, 0)
		last.ToNS = max(x.ToNS, last.ToNS)
		s.LongestNS = max(s.LongestNS, last.ToNS-last.FromNS)
		return
	}
	s.Count++
	s.TotalNS += x.ToNS - x.FromNS
	s.LongestNS = max(s.LongestNS, x.ToNS-x.FromNS)
	s.Intervals = append(s.Intervals, x)
	s.bound()
}

// join adds the stalls that were noticed later. The first of them may be the last one of s,
// which has gone on.
func (s *Stalls) join(later *Stalls) {
	longest := max(s.LongestNS, later.LongestNS)
	joined, between := later.Count-int64(len(later.Intervals)), -later.TotalNS
	for _, x := range later.Intervals {
		between += x.ToNS - x.FromNS
		s.Add(x)
	}
	if joined == 0 {
		longest = max(longest, s.LongestNS) // of one that has gone on
	}
	s.Count += joined
	s.TotalNS -= between
	s.LongestNS = longest
}

// SideBySide are the stalls of clients that sent one load together, each with the same clock: the
// times in which any of them stood still. A stall of one then counts for what all of them
// measured. Where one was not watched, nothing is known.
func SideBySide(all []*Stalls) *Stalls {
	var intervals []Stall
	out := new(Stalls)
	for _, s := range all {
		if s == nil {
			return nil
		}
		intervals = append(intervals, s.Intervals...)
		out.AboveNS = s.AboveNS
	}
	slices.SortFunc(intervals, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(a.FromNS, b.FromNS), cmp.Compare(a.ToNS, b.ToNS))
	})
	for _, x := range intervals {
		out.Add(x)
	}
	for _, s := range all { // of one whose neighbours were joined
		out.Count, out.LongestNS = max(out.Count, s.Count), max(out.LongestNS, s.LongestNS)
		if s.Count > int64(len(s.Intervals)) {
			out.TotalNS = max(out.TotalNS, s.TotalNS)
		}
	}
	return out
}

// bound joins the closest neighbours where there are too many intervals. The last
// one, which may go on, stays as it is.
func (s *Stalls) bound() {
	if len(s.Intervals) <= mostStalls {
		return
	}
	apart := make([]int64, len(s.Intervals)-2)
	for i := range apart {
		apart[i] = s.Intervals[i+1].FromNS - s.Intervals[i].ToNS
	}
	sorted := slices.Sorted(slices.Values(apart))
	joins := len(s.Intervals) - mostStalls*3/4
	closest := sorted[joins-1]
	below, _ := slices.BinarySearchFunc(sorted, closest, cmp.Compare[int64])
	equal := joins - below // to be joined of those that are just so far apart
	out := s.Intervals[:1]
	for i, x := range s.Intervals[1:] {
		join := false
		if i < len(apart) {
			join = apart[i] < closest || apart[i] == closest && equal > 0
			if apart[i] == closest {
				equal--
			}
		}
		if join {
			out[len(out)-1].ToNS = x.ToNS
		} else {
			out = append(out, x)
		}
	}
	s.Intervals = out
}

// sound says whether intervals that were read are in order and apart.
func (s *Stalls) sound() bool {
	at := int64(-1)
	for _, x := range s.Intervals {
		if x.FromNS <= at || x.ToNS < x.FromNS || x.ToNS > 1<<53 {
			return false
		}
		at = x.ToNS
	}
	return len(s.Intervals) <= mostStalls && s.Count >= int64(len(s.Intervals)) && s.TotalNS >= 0
}

// stallsKey is where files keep [Stalls] with their intervals, as JSON: a results file
// in its metadata, a journal in the metadata of a batch those that were noticed since
// the batch before. A batch comes after the stalls that its rows have met with: who
// reads the journal of a run that was killed judges the rows that are left as the run
// itself would have.
const stallsKey = "reprise.stalls"

// keptStalls are Stalls as files keep them.
type keptStalls struct {
	Stalls
	Intervals []Stall `json:"intervals"`
}

func (s *Stalls) encode() string {
	doc, _ := json.Marshal(keptStalls{*s, s.Intervals}) // integers: there is no error
	return string(doc)
}

func decodeStalls(doc string) (*Stalls, error) {
	var kept keptStalls
	if err := json.Unmarshal([]byte(doc), &kept); err != nil {
		return nil, fmt.Errorf("its %s was written by another version of Reprise", stallsKey)
	}
	s := &kept.Stalls
	if s.Intervals = kept.Intervals; !s.sound() {
		return nil, fmt.Errorf("the intervals of its %s are not in order", stallsKey)
	}
	return s, nil
}
