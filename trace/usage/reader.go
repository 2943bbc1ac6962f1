package usage

import (
	"errors"
	"strings"
)

// A Reader settles the usage objects of one file. Each file has a reader of its own, and the
// rows of its head go through the same one as all rows.
//
// What a relayed count holds is told by the records of its model: by a total that is the sum
// of the counts with the cache parts or without them, and by cache parts that are more than
// the input. Without either, the count is taken as inclusive, as OpenTelemetry's conventions
// want it. A record that shows the contrary after others were read so stops the reading, with
// [ErrDoubt]. So nothing depends on which record comes first.
//
// Whether the output count holds the reasoning is told in the same way, by record, or where a
// record does not show it, by the records of its model so far.
type Reader struct {
	dialect Dialect
	models  map[string]*model
	gather  gatherer
}

// A model is what the records of a model have shown so far.
type model struct {
	shown [parts]evidence
	taken int64 // records whose cache parts were taken as within the input before any showed it
}

// ErrDoubt is returned of a record whose cached tokens stand beside its input count, where
// those of its model before were taken as part of it.
var ErrDoubt = errors.New("its cached tokens stand beside its input count, and those of its model's records before were taken as part of it: " +
	"say --cached-in-input no, or yes if they are part of it after all")

// NewReader makes the reader of a file. cachedInInput is what the user says of relayed counts:
// "yes", "no", or "" for nothing.
func NewReader(d Dialect, cachedInInput string) *Reader {
	if d == Relayed || d == Body {
		switch cachedInInput {
		case "yes":
			d = Inclusive
		case "no":
			d = Exclusive
		}
	}
	return &Reader{dialect: d, models: map[string]*model{}}
}

// Gather takes the counts of a decoded JSON object: the usage object of any provider, or an
// object with such keys among others, such as the attributes of a span. Numbers are of type
// [json.Number], or text.
func (r *Reader) Gather(v any) Counts { return r.gather.gather(v) }

// Read settles the counts of a record of a model. ahead says that the record is read once
// more later: what it shows counts, and nothing is decided by it. The errors are [ErrDoubt]
// and one of a count above 2147483647.
func (r *Reader) Read(c *Counts, name string, ahead bool) (Tokens, Findings, error) {
	m := r.models[name]
	if m == nil {
		m = &model{}
		r.models[strings.Clone(name)] = m
	}
	d := r.dialect.resolve(c)
	by, explained := c.shown(d)
	for part := range parts {
		m.shown[part].beside += by[part].beside
		m.shown[part].within += by[part].within
	}

	t, found, err := c.settle(d, by, m.shown, explained)
	switch {
	case err != nil || ahead:
	case found.Has(CacheAdded) && m.taken > 0:
		return Tokens{}, 0, ErrDoubt
	case d == Relayed && c.amounts()[cachePart] > 0 && !found.Has(CacheAdded) && !m.shown[cachePart].shows():
		m.taken++
	}
	return t, found, err
}
