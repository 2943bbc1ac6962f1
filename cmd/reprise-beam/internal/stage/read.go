package stage

import (
	"errors"
	"fmt"
	"io"
	"os"

	"reprise/trace"
	"reprise/trace/shard"
)

// sentBytes is how much is held of a shard before it is sent on.
const sentBytes = 8 << 20

// A Sink takes what is sent on of a shard.
type Sink struct {
	Figures    func(*Figures)
	Arrivals   func(window int64, arrivals []byte) // for [MeasureMinute]
	References func(part int, references []byte)   // for [MeasurePart]
}

// Read reads a shard and sends on what a profile needs of its rows.
func (j *Job) Read(s Shard, to Sink) (err error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	src, err := trace.NewRowsReader[shard.Row](f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	r := &reader{oneIn: j.OneIn, to: to, minutes: map[int64][]byte{}}
	file, left := -1, int64(0)
	batch := make([]shard.Row, 256)
	for {
		n, end := src.Read(batch)
		for i := range batch[:n] {
			for ; left == 0; left = s.Rows[file] {
				if file++; file == len(s.Rows) {
					return fmt.Errorf("%s: it has more rows than its files", s.Path)
				}
			}
			r.add(&batch[i].Recorded.Request, int64(s.First+file), s.Rows[file]-left)
			left--
		}
		if r.held > sentBytes || end == io.EOF {
			r.send()
		}
		switch {
		case end == io.EOF:
			to.Figures(&r.figures)
			return nil
		case end != nil:
			return fmt.Errorf("%s: %w", s.Path, end)
		}
	}
}

// A reader groups what is sent on of a shard.
type reader struct {
	oneIn   int
	to      Sink
	figures Figures
	minutes map[int64][]byte
	parts   [curveParts]chunk
	blocks  [curveParts][]uint64 // of the row at hand
	held    int
}

func (r *reader) add(q *trace.Request, file, row int64) {
	f := &r.figures
	f.Rows++
	if q.Status == trace.StatusFailed {
		f.Failed++
		return
	}
	f.Input.Add(int64(q.InputTokens))
	if q.OutputTokens != nil {
		f.Output.Add(int64(*q.OutputTokens))
	}
	window := MinuteOf(q.ArrivalNS)
	before := r.minutes[window]
	now := appendArrival(before, q.ArrivalNS)
	r.minutes[window], r.held = now, r.held+len(now)-len(before)
	if len(q.Blocks) == 0 {
		f.Blockless++
		return
	}
	f.References += int64(len(q.Blocks) / 2)
	for i := range r.blocks {
		r.blocks[i] = r.blocks[i][:0]
	}
	for i := 0; i+1 < len(q.Blocks); i += 2 {
		hi, lo := q.Blocks[i], q.Blocks[i+1]
		if part, ok := partOf(hashOf(hi, lo), r.oneIn); ok {
			r.blocks[part] = append(r.blocks[part], hi, lo)
		}
	}
	for i, blocks := range r.blocks {
		if len(blocks) > 0 {
			c := &r.parts[i]
			had := len(c.bytes)
			c.add(place{q.ArrivalNS, file, row}, blocks)
			r.held += len(c.bytes) - had
		}
	}
}

// send sends what is held.
func (r *reader) send() {
	for window, arrivals := range r.minutes {
		r.to.Arrivals(window, arrivals)
	}
	for i, c := range r.parts {
		if len(c.bytes) > 0 {
			r.to.References(i, c.bytes)
		}
	}
	r.minutes, r.parts, r.held = map[int64][]byte{}, [curveParts]chunk{}, 0
}
