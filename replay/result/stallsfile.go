package result

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

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
		return nil, fmt.Errorf("its %s is not what this version writes", stallsKey)
	}
	s := &kept.Stalls
	if s.Intervals = kept.Intervals; !s.sound() {
		return nil, fmt.Errorf("the intervals of its %s are not in order", stallsKey)
	}
	return s, nil
}

// Stalled has the next batch bring stalls. Nil are of a run that nobody watches.
func (j *Journal) Stalled(s *Stalls) {
	if j.stalls == nil {
		j.stalls = s
	} else if s != nil {
		j.stalls.join(s)
	}
}

// withStalls puts the stalls into the metadata of a batch, which it takes.
func (j *Journal) withStalls(rec arrow.RecordBatch) arrow.RecordBatch {
	if j.stalls == nil {
		return rec
	}
	defer rec.Release()
	meta := arrow.NewMetadata([]string{stallsKey}, []string{j.stalls.encode()})
	j.stalls = nil
	return array.NewRecordBatchWithMetadata(rec.Schema(), rec.Columns(), rec.NumRows(), meta)
}

// readStalls takes the stalls of a batch.
func (j *openJournal) readStalls(rec arrow.RecordBatch) error {
	with, ok := rec.(arrow.RecordBatchWithMetadata)
	if !ok {
		return nil
	}
	doc, ok := with.Metadata().GetValue(stallsKey)
	if !ok {
		return nil
	}
	s, err := decodeStalls(doc)
	if err != nil {
		return errJournal
	}
	if j.stalls == nil {
		j.stalls = &Stalls{AboveNS: s.AboveNS}
	}
	j.stalls.join(s)
	return nil
}

// stallsThrough are the stalls of a run up to the end of its next part. A part that
// was killed before it had a row says nothing of stalls, and nothing can be said of it.
func (f *File) stallsThrough(next *File) *Stalls {
	at := next.Run.Resumed[len(next.Run.Resumed)-1].AtNS
	switch before, later := f.Run.Stalls, next.Run.Stalls; {
	case f.count == 0:
		return later
	case next.count == 0:
		return before.Resumed(at, &Stalls{})
	default:
		return before.Resumed(at, later)
	}
}
