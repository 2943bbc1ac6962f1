package stage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"
)

// minute is the width of the windows by which arrivals are grouped. It decides nothing but how
// many arrivals one worker orders at once, 8 bytes each.
const minute = int64(time.Minute)

// MinuteOf is the window of an arrival in nanoseconds.
func MinuteOf(arrival int64) int64 {
	m := arrival / minute
	if arrival%minute < 0 {
		m--
	}
	return m
}

// A Span is when the first and the last request of a window arrived, in nanoseconds.
type Span struct{ First, Last int64 }

var errChunk = errors.New("a group of arrivals or references that crossed the engine is damaged")

// appendArrival adds an arrival to those of its window.
func appendArrival(chunk []byte, arrival int64) []byte {
	return binary.AppendUvarint(chunk, uint64(arrival-MinuteOf(arrival)*minute))
}

// MeasureMinute orders the arrivals of a window, in groups as [Job.Read] makes them, and measures the
// gaps between them.
func MeasureMinute(window int64, chunks iter.Seq[[]byte]) (*Figures, error) {
	var at []int64
	for chunk := range chunks {
		for len(chunk) > 0 {
			offset, n := binary.Uvarint(chunk)
			if n <= 0 || offset >= uint64(minute) {
				return nil, errChunk
			}
			at, chunk = append(at, window*minute+int64(offset)), chunk[n:]
		}
	}
	f := new(Figures)
	if len(at) == 0 {
		return f, nil
	}
	slices.Sort(at)
	for i := 1; i < len(at); i++ {
		f.Gaps.Add(at[i] - at[i-1])
	}
	f.Spans = []Span{{at[0], at[len(at)-1]}}
	return f, nil
}

// closed are the gaps within windows and between them, and the time from the first to the last arrival.
func (f *Figures) closed() (gaps Values, whole Span) {
	gaps.Merge(&f.Gaps)
	spans := slices.Clone(f.Spans)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(spans); i++ {
		gaps.Add(spans[i].First - spans[i-1].Last)
	}
	if len(spans) > 0 {
		whole = Span{spans[0].First, spans[len(spans)-1].Last}
	}
	return gaps, whole
}
