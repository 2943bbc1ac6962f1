package anonymize

import (
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

	Partner *PartnerCard  `json:"partner,omitempty"` // of tier partner
	Public  *dp.Statement `json:"public,omitempty"`  // of tier public

	// Templates are the system prompts that were kept; nil for none. They are for
	// a file of their own and not part of the card.
	Templates *Templates `json:"-"`

	// Raw is the digest of the raw file that keeps the text; empty for none. It
	// goes into the metadata of the trace, beside the card, which has words alone.
	Raw string `json:"-"`

	// Change is for the operator's own eyes and not part of the card: what a
	// release did to the totals. Nil for tier internal.
	Change *Change `json:"-"`
	// Totals are for the operator's own eyes and not part of the card.
	Totals Totals `json:"-"`
	// Breakers are where near-identical prompts part; nil without text. They go
	// beside the card, into the metadata of the trace.
	Breakers *breaker.Set `json:"-"`
}

// SourceFields say which format's fields were read of a source, and count those
// beside them. The fields that were read are those of datasets.ReadFields: all that
// the format has, however often each occurs, so that the list tells of the format
// and of nobody. The others are counted and not named, since a name may tell
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
		return "What the source has beside these columns was not taken over, and is not named, since its names may tell something."
	}
	least, kinds := "", ""
	if f.More {
		least = "at least "
	}
	if len(f.Kinds) > 0 {
		var of []string
		for _, kind := range slices.Sorted(maps.Keys(f.Kinds)) {
			of = append(of, fmt.Sprintf("%s %d", kind, f.Kinds[kind]))
		}
		kinds = " (" + strings.Join(of, ", ") + ")"
	}
	return fmt.Sprintf("Of the fields of the source %s%d%s went into no column and were dropped. They are not named, since names may tell something.", least, f.Dropped, kinds)
}

// WP29 answers the three questions by which the Article 29 Working Party of the
// European Union (opinion 05/2014) judges whether data is anonymous, in words.
type WP29 struct {
	SinglingOut string `json:"singling_out"` // can records of one person be told from all others?
	Linkability string `json:"linkability"`  // can records of one person be joined, here or with other data?
	Inference   string `json:"inference"`    // can something be learnt of a person from the others?
}

// Totals count what Run read and wrote.
type Totals struct {
	Requests, Failed    int64
	InputTokens         int64
	OutputTokens        int64
	Blocks              int // distinct
	Sessions, Users     int // distinct; 0 when the source has none
	InferredSessions    bool
	InputGaps           Gaps             // requests whose prompts in the source cannot be what was sent
	OutputGaps          Gaps             // the same of replies; without a count of the source, their lengths are 0
	UnknownOutputs      int64            // of those, requests without such a count
	PartlyRedacted      int64            // requests whose length is that of what redaction left, as the source does not count
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

func newCard(p *Policy, t Totals) Card {
	c := Card{
		Schema: CardSchema, Tier: p.Tier, Unit: "none: every record is one request and stays in the file",
		Key:       "ephemeral, held in memory, dropped at the end; ids were renumbered and do not depend on it",
		BlockSize: p.blockSize(), Time: "exact, " + countedFrom(p.Capture), Lengths: "exact", Columns: rulesOf(p.Tier, nil),
		WP29: WP29{
			SinglingOut: "Possible: exact lengths and times are those of one request most of the time.",
			Linkability: "Possible: users and sessions keep a number each, and logs of the same traffic can be joined by times and lengths.",
			Inference:   "Possible: lengths and reuse tell of what kind a request was, and shared blocks who sent the same.",
		},
		Risks: []string{
			"Pseudonymous, not anonymous: exact lengths and times single out most records for anybody who saw some of the traffic.",
			"Equal block ids show which requests share a prefix; somebody who could place prompts of their own in the traffic may test guesses.",
			"For use inside the house that the traffic came from.",
		},
		Totals: t, Confined: p.Confined,
	}
	c.Dropped = droppedOf(c.Columns)
	if t.InputGaps.Total()+t.OutputGaps.Total() > 0 {
		c.Lengths = "exact; as the source counts them where its text is redacted, empty or not all that was sent"
	}
	if t.Texts > 0 {
		c.Tokenizer, c.Template = p.Tokenizer.Name(), p.Template.Name
		c.Risks = append(c.Risks, fmt.Sprintf("The metadata tell where near-identical prompts part: positions, lengths and counts, of at least %d requests each.", breaker.MinRequests))
	}
	return c
}

// countedFrom says what arrival 0 is.
func countedFrom(c trace.Capture) string {
	if c.Declared() {
		return "relative to the declared begin of the capture"
	}
	return "relative to the first arrival, which is one request's"
}

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
		return Card{}, fmt.Errorf("the privacy card does not match its hash")
	}
	var c Card
	if err := json.Unmarshal([]byte(card), &c); err != nil || c.Schema != CardSchema {
		return Card{}, fmt.Errorf("the privacy card is not of schema %s", CardSchema)
	}
	return c, nil
}

// PublicCard is the card of tier public, of a model and of the rows that are
// drawn from it. of describes the model: its block size and tokenizer.
func PublicCard(s dp.Statement, of trace.Meta) Card {
	c := Card{
		Schema: CardSchema, Tier: Public, Unit: s.Unit, BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template,
		Key:  "none: no id of the source is here; blocks of the rows are counted up as they are generated",
		Time: "synthetic: within periods, by noisy counts, that divide the declared capture window; the first arrival of the rows is 0",
		Lengths: fmt.Sprintf("synthetic: within cells of a quarter of an octave up to %d input and %d output tokens, whose edges depend on no data",
			s.MaxInput, s.MaxOutput),
		Columns: rulesOf(Public, nil), Public: &s,
		WP29: WP29{
			SinglingOut: "No: no record of the source is here, and each row is made up.",
			Linkability: "No: rows belong to nobody, and sessions are made up.",
			Inference:   inference(&s),
		},
		Risks: publicRisks(&s),
	}
	c.Dropped = droppedOf(c.Columns)
	return c
}

// weak is the ε above which a guarantee is more of a formality.
const weak = 4

// spent is ε with all releases of the source.
func spent(s *dp.Statement) float64 {
	if s.Ledger != nil {
		return s.Ledger.Epsilon
	}
	return s.Budget.Epsilon
}

func inference(s *dp.Statement) string {
	if spent(s) > weak {
		return fmt.Sprintf("To some degree: at ε = %.3g what one %s adds to the counts may show.", spent(s), s.Unit)
	}
	return fmt.Sprintf("Hardly: whatever is concluded from this file would be concluded about as well without any one %s. What holds of all of them can be learnt, as it is meant to.", s.Unit)
}

func publicRisks(s *dp.Statement) []string {
	risks := []string{
		fmt.Sprintf("The guarantee is for one %s. Several together, such as all users of one company, are protected less: k of them by k times ε.", s.Unit),
		"Every release of the same traffic adds to what can be learnt. The ledger adds up those that it knows; the same log imported in another way, or released by other means, it cannot know.",
		"What is listed as public is not protected. Who holds it for secret must not publish this.",
	}
	switch s.Unit {
	case UnitRequest:
		risks = append([]string{"ONE REQUEST IS PROTECTED, NOT A PERSON, since the source names nobody: of somebody with n requests n times as much may show."}, risks...)
	case UnitSession:
		risks = append(risks, "Sessions are protected, since the source names no users: of somebody with n sessions n times as much may show.")
	default:
		risks = append(risks, "Requests that name no user are protected as those of one user together; a person with several accounts is protected less.")
	}
	if spent(s) > weak {
		risks = append([]string{fmt.Sprintf("ε = %.3g PROTECTS LITTLE: 1 is usual, and above %d the guarantee hardly says anything of a single %s.", spent(s), weak, s.Unit)}, risks...)
	}
	if s.Ledger != nil && s.Ledger.Epsilon > s.Budget.Epsilon {
		risks = append(risks, fmt.Sprintf("This is not the only release: with those before, and refused attempts, ε is %.3g.", s.Ledger.Epsilon))
	}
	return risks
}
