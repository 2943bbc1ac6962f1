package anonymize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/profile"
)

// CardSchema names the layout of a [Card].
const CardSchema = "card/1"

// A Card says what was done to a source, in words that can be read by whoever
// must answer for it. It names no path, host, user, wall-clock time or count.
type Card struct {
	Schema    string   `json:"schema"`
	Tool      string   `json:"tool,omitempty"` // and its version; whoever writes the file sets it
	Tier      string   `json:"tier"`
	Unit      string   `json:"unit_of_privacy"`
	Key       string   `json:"block_id_key"`
	BlockSize int      `json:"block_size_tokens"`
	Tokenizer string   `json:"tokenizer,omitempty"`
	Template  string   `json:"template,omitempty"`
	Time      string   `json:"time"`
	Lengths   string   `json:"lengths"` // how they are cut into buckets or cells, if they are
	Columns   []Rule   `json:"columns"`
	Dropped   []string `json:"dropped_columns"`

	// Decided lists by whose records the rules were decided by which the source was read. It is
	// not there in files of earlier versions.
	Decided []Decision `json:"decided,omitempty"`

	// SourceFields say what the source was read as, and what it had beside; nil
	// where no log was read. Whoever reads the source sets it. It is in no public
	// card: one person's record may have a field that no other one has, and no
	// noise hides it.
	SourceFields *SourceFields `json:"source_fields,omitempty"`

	WP29  WP29     `json:"wp29"`
	Risks []string `json:"residual_risks"`

	// Confined is how the process that made the rows was confined; nil where it
	// was not.
	Confined *Confinement `json:"confined,omitempty"`

	Sessions *dp.SessionStatement `json:"sessions,omitempty"` // of tiers partner and public
	// FormerPublic is what tier public of earlier versions measured. It is read and never written.
	FormerPublic *FormerStatement `json:"public,omitempty"`
	// Rows is of tier partner as earlier versions made it: rows of the source, coarser.
	// It is read and never written.
	Rows json.RawMessage `json:"partner,omitempty"`

	// Templates are the system prompts that were kept; nil for none. They are for
	// a file of their own and not part of the card.
	Templates *Templates `json:"-"`

	// Raw is the digest of the raw file that keeps the text; empty for none. It
	// goes into the metadata of the trace, beside the card, which has words alone.
	Raw string `json:"-"`

	// Totals are for the operator's own eyes and not part of the card.
	Totals Totals `json:"-"`
	// Breakers are where near-identical prompts part; nil without text. They go
	// beside the card, into the metadata of the trace.
	Breakers *breaker.Set `json:"-"`
}

// A FormerStatement is that of a model of tier public of earlier versions: what is still
// of use of it, and all of it as it was written.
type FormerStatement struct {
	Protects  string    `json:"protects"`
	Budget    dp.Budget `json:"budget"`
	CaptureNS int64     `json:"capture_ns"`

	text []byte
}

// UnmarshalJSON implements [json.Unmarshaler]: other fields are kept as text.
func (s *FormerStatement) UnmarshalJSON(b []byte) error {
	type fields FormerStatement
	if err := json.Unmarshal(b, (*fields)(s)); err != nil {
		return err
	}
	s.text = bytes.Clone(b)
	return nil
}

// MarshalJSON implements [json.Marshaler] with what was read.
func (s *FormerStatement) MarshalJSON() ([]byte, error) {
	if s.text == nil {
		type fields FormerStatement
		return json.Marshal((*fields)(s))
	}
	return s.text, nil
}

// SourceFields say which format's fields were read of a source, and count those
// beside them. The fields that were read are those of datasets.ReadFields: all that
// the format has, however often each occurs, so that the list describes the format
// and nobody's data. The others are counted and not named, since a name may tell
// something.
type SourceFields struct {
	Format  string         `json:"format,omitempty"`
	Mapped  []string       `json:"mapped,omitempty"` // targets whose fields --map named, in ways of its own
	Dropped int            `json:"dropped"`
	Kinds   map[string]int `json:"kinds,omitempty"` // of them by what they hold: text, number, flag, list
	More    bool           `json:"more,omitempty"`  // there may be more
}

// Words say how many fields of a source were dropped.
func (f *SourceFields) Words() string {
	if f == nil {
		return "Other fields of the source were dropped, and are not named here, since names can be telling."
	}
	least, kinds := "", ""
	if f.More {
		least = "At least "
	}
	if len(f.Kinds) > 0 {
		var of []string
		for _, kind := range slices.Sorted(maps.Keys(f.Kinds)) {
			of = append(of, fmt.Sprintf("%s %d", kind, f.Kinds[kind]))
		}
		kinds = ": " + strings.Join(of, ", ")
	}
	plural := "s"
	if f.Dropped == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s%d source field%s dropped%s (names withheld).", least, f.Dropped, plural, kinds)
}

// WP29 answers the three questions by which the Article 29 Working Party of the
// European Union (opinion 05/2014) judges whether data is anonymous, in words.
type WP29 struct {
	SinglingOut string `json:"singling_out"` // can records of one person be told from all others?
	Linkability string `json:"linkability"`  // can records of one person be joined, here or with other data?
	Inference   string `json:"inference"`    // can something be learnt of a person from the others?
}

// KnownOutput is the number of output tokens of the requests whose output length is known, or
// nil if it is known of none.
func (t *Totals) KnownOutput() *int64 {
	if t.UnknownOutputs > 0 && t.UnknownOutputs == t.Requests-t.Failed && t.OutputTokens == 0 {
		return nil
	}
	return &t.OutputTokens
}

// Totals count what Run read and wrote.
type Totals struct {
	Requests, Failed int64
	InputTokens      int64
	OutputTokens     int64
	Blocks           int // distinct
	Sessions, Users  int // distinct; 0 when the source has none
	// requests that name an earlier answer, after more answers than import keeps apart: they have no session
	Unchained      int64
	Inferred       profile.InferredSessions
	InputGaps      Gaps    // requests whose prompts in the source cannot be what was sent
	OutputGaps     Gaps    // likewise for replies that the source counts
	UnknownOutputs int64   // requests, other than failed ones, whose output length nothing tells
	Sources        Sources // what lengths and blocks are made of
	// requests with blocks made from hashes of messages: how long shared prefixes are is an estimate
	MessageHashes int64
	// requests whose length is that of what redaction left, as the source does not count
	PartlyRedacted      int64
	Texts               int64            // requests with a length or blocks from the tokenizer
	TextInput           int64            // their input tokens as counted
	TextInputSource     int64            // their input tokens as the source says, over rows that say
	TextInputComparable int64            // their input tokens as counted, over the same rows
	Refused             int64            // requests whose chat the template refuses: counted without it
	Templates           map[string]int64 // chats whose text was tokenised, by their template
	SpillBytes          int64            // that went to private files; 0 when memory was enough

	// Models compare the counts for each model whose requests have both, those
	// with the most requests first.
	Models []ModelCount
}

// A ModelCount says how the count of the text of a model's requests compares
// with that of the source.
type ModelCount struct {
	Model    string // as it goes out: a label, unless the Policy keeps names
	Template string // that its chats were rendered with
	Others   bool   // all models beyond the first [maxModels] together
	Requests int64  // that have both
	Counted  int64  // their input tokens by text
	Source   int64  // their input tokens as the source says
	template int64  // what a template may add to their texts
}

// Sources count requests by what their lengths and their blocks are made of.
type Sources struct {
	Usage, Text                     int64 // input lengths
	FromText, FromHashes, Estimated int64 // blocks; estimated ones are inferred
}

func (s *Sources) add(r *trace.Request) {
	switch r.LengthSource {
	case trace.LengthUsage:
		s.Usage++
	case trace.LengthText:
		s.Text++
	}
	switch r.ReuseSource {
	case trace.ReuseText:
		s.FromText++
	case trace.ReuseHashes:
		s.FromHashes++
	case trace.ReuseInferred:
		s.Estimated++
	}
}

// maxModels is how many models are compared one by one.
const maxModels = 100

// Warn is the difference in percent above which counts do not agree.
const Warn = 1.0

// Percent is how much more the text counts than the source says, in percent of
// that; false where the source says 0.
func (m ModelCount) Percent() (float64, bool) {
	if m.Source == 0 {
		return 0, false
	}
	return 100 * float64(m.Counted-m.Source) / float64(m.Source), true
}

// Apart reports whether the counts differ by more than [Warn] percent.
func (m ModelCount) Apart() bool {
	p, ok := m.Percent()
	return ok && (p > Warn || p < -Warn) || !ok && m.Counted > 0
}

// Former reports whether a card is of a release of rows to a partner, which earlier
// versions made.
func (c Card) Former() bool { return c.Tier == Partner && c.Sessions == nil }

// JSON returns the card as it goes into a file, and its SHA-256 in hex. It is
// indented, and ends in a line's end, so that the same bytes can stand in a file
// beside the trace for people to read.
func (c Card) JSON() (card, hash string, err error) {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", "", err
	}
	b = append(b, '\n')
	sum := sha256.Sum256(b)
	return string(b), hex.EncodeToString(sum[:]), nil
}

// ParseCard reads a card back and checks it against its hash.
func ParseCard(card, hash string) (Card, error) {
	sum := sha256.Sum256([]byte(card))
	if hex.EncodeToString(sum[:]) != hash {
		return Card{}, fmt.Errorf("the privacy card does not match its hash: the file was changed")
	}
	var c Card
	if err := json.Unmarshal([]byte(card), &c); err != nil || c.Schema != CardSchema {
		return Card{}, fmt.Errorf("the privacy card does not have the schema %s", CardSchema)
	}
	return c, nil
}
