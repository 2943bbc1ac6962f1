package usage

// A Reader settles the usage objects of one file. Each record is settled by what it shows itself:
// by a total that is the sum of the counts with the cache parts or without them, and by cache
// parts that are more than the input. Without either, a relayed count is taken as inclusive, as
// OpenTelemetry's conventions want it, unless the user says otherwise.
//
// No record is read by what another one shows. One user's request would else change how those of
// all others are counted, which no noise of a release hides, and the order of the records would
// count.
type Reader struct {
	dialect Dialect
	gather  gatherer
}

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
	return &Reader{dialect: d}
}

// Gather takes the counts of a decoded JSON object: the usage object of any provider, or an
// object with such keys among others, such as the attributes of a span. Numbers are of type
// [json.Number], or text.
func (r *Reader) Gather(v any) Counts { return r.gather.gather(v) }

// Settle makes tokens of the counts of a record. It fails for a count above 2147483647.
func (r *Reader) Settle(c *Counts) (Tokens, Findings, error) { return c.Settle(r.dialect) }
