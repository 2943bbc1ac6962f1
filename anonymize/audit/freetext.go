package audit

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
)

// freeText looks for strings that the tool did not choose itself. In Parquet all
// of them must be words of its own, labels or numbers: the default is to refuse.
// Prose of pages and JSON is looked through for what has the form of an address,
// a number of a person or a secret.
func freeText(ctx context.Context, c *Case) Finding {
	o := c.Output
	if !o.isParquet() {
		const most = 256 << 20
		if o.size > most {
			return inconclusive(nil, "the output has more than %d MiB of prose", most>>20)
		}
		b, err := io.ReadAll(o.reader())
		if err != nil {
			return broken(err)
		}
		found := suspicious(string(b))
		fig := Figures{"bytes": len(b)}
		if len(found) > 0 {
			fig["looks_like"] = found
			return failed(fig, "there is what looks like %s", strings.Join(found, ", "))
		}
		return passed(fig, "nothing looks like an address, a person's number or a secret; prose of a %s cannot be "+
			"held against closed lists", o.Kind)
	}
	v, err := ownVocabulary()
	if err != nil {
		return broken(err)
	}
	t := &textScan{own: v, tier: o.Tier(), seen: map[string]map[string]bool{}}
	if o.Parquet == nil { // what the manifest says of a partitioned trace
		o.Trace.Meta.Each(t.metadata)
	}
	if err := o.eachFile(func(f *parquet.File) error { return t.file(o.Kind, f) }); err != nil {
		return broken(err)
	}
	return t.finding()
}

// file judges all strings of a file of Parquet.
func (t *textScan) file(kind string, f *parquet.File) error {
	for _, kv := range f.Metadata().KeyValueMetadata {
		t.metadata(kv.Key, kv.Value)
	}
	if f.Metadata().CreatedBy != createdBy {
		t.refuse("created by")
	}
	for _, e := range f.Metadata().Schema {
		if !t.own.has(e.Name) {
			t.refuse("names of columns")
		}
	}
	columns, n := f.Schema().Columns(), 0
	return eachChunk(f, func(chunk parquet.ColumnChunk) error {
		column := n % len(columns)
		if n++; column != chunk.Column() {
			return fmt.Errorf("%w: columns are out of order", errDecode)
		}
		if chunk.Type().Kind() != parquet.ByteArray && chunk.Type().Kind() != parquet.FixedLenByteArray {
			return nil
		}
		name := strings.Join(columns[column], ".")
		return eachValue(chunk, func(_ bool, v parquet.Value) {
			if !v.IsNull() {
				t.value(kind, name, string(v.ByteArray()))
			}
		})
	})
}

// A textScan gathers where strings are that are not the tool's own. It keeps no
// such string but to count it once.
type textScan struct {
	own     vocabulary
	tier    string
	strings int
	kept    int // names that an import of tier internal was told to keep
	seen    map[string]map[string]bool
	bad     []string // where, each once
	count   int
}

// mostSeen bounds the values that are remembered of a place: what comes again
// beyond it is judged again.
const mostSeen = 100_000

// once reports whether a value of a place is new.
func (t *textScan) once(where, value string) bool {
	if t.seen[where] == nil {
		t.seen[where] = map[string]bool{}
	}
	if t.seen[where][value] {
		return false
	}
	if t.strings++; len(t.seen[where]) < mostSeen {
		t.seen[where][value] = true
	}
	return true
}

func (t *textScan) refuse(where string) {
	t.count++
	if !slices.Contains(t.bad, where) {
		t.bad = append(t.bad, where)
	}
}

func (t *textScan) finding() Finding {
	fig := Figures{"distinct_strings": t.strings, "not_our_own": t.count}
	if t.kept > 0 {
		fig["model_names_kept"] = t.kept
	}
	switch {
	case t.count > 0:
		fig["found_in"] = t.bad
		return failed(fig, "%d strings are not from closed lists, labels or the tool's own words", t.count)
	case t.kept > 0:
		return passed(fig, "all strings are closed words, labels and the tool's own, but for %d names of models that "+
			"were kept on request", t.kept)
	}
	return passed(fig, "all %d strings are closed words, labels and the tool's own", t.strings)
}

var (
	labelled = map[string]*regexp.Regexp{
		"model": regexp.MustCompile(`^model-[0-9]+$`), "adapter": regexp.MustCompile(`^adapter-[0-9]+$`),
		"class": regexp.MustCompile(`^class-[0-9]+$`), "replica": regexp.MustCompile(`^replica-[0-9]+$`),
	}
	anyLabel = regexp.MustCompile(`^(model|adapter|class|replica|client|user|session)-[0-9]+$`)
)

// value judges a string of a column.
func (t *textScan) value(kind, column, s string) {
	if !t.once("column "+column, s) || t.allowed(kind, column, s) {
		return
	}
	if column == "model" && t.tier == anonymize.Internal {
		t.kept++
		return
	}
	t.refuse("column " + column)
}

func (t *textScan) allowed(kind, column, s string) bool {
	label := labelled[column]
	switch {
	case s == "":
		return true
	case label != nil:
		return label.MatchString(s) || s == "other"
	case kind != kindTrace:
		return anyLabel.MatchString(s) || t.own.has(s)
	case column == "kind":
		return trace.ClosedKind(s) == s
	case column == "status":
		return trace.ClosedStatus(s) == s
	case column == "finish_reason":
		return trace.ClosedFinish(s) == s
	case column == "length_source" || column == "reuse_source":
		return trace.ClosedSource(s) == s
	case column == "category":
		return slices.Contains(trace.AllCategories(), s)
	}
	return false
}

// What metadata that are no words look like.
var shapes = map[string]*regexp.Regexp{
	"digest": digestShape, "source_digest": digestsShape, "source_sha256": digestShape, "corpus_sha256": digestShape,
	"workload_digest": digestShape, "raw_digest": digestShape,
	"card_sha256":   regexp.MustCompile(`^[0-9a-f]{64}$`),
	"tokenizer":     regexp.MustCompile(`^([a-z0-9_]{1,24}|tokenizer\.json:[0-9a-f]{16})$`),
	"template":      regexp.MustCompile(`^[a-z0-9.-]{1,24}(:[0-9a-f]{16})?$`),
	"categories":    regexp.MustCompile(`^[12](,[12])?$`),
	"session_doubt": regexp.MustCompile(`^[01](\.[0-9]{1,20})?$`),
	"schema":        regexp.MustCompile(`^[a-z-]{1,24}/[0-9]{1,4}$`),
	"capture_begin": captureShape, "capture_end": captureShape,
	"capture_ids":    regexp.MustCompile(`^[0-9a-f]{32}(,[0-9a-f]{32})*$`),
	"recording_keys": regexp.MustCompile(`^([0-9a-f]{32}|ephemeral)(,([0-9a-f]{32}|ephemeral))*$`),
}

var (
	digestShape  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	digestsShape = regexp.MustCompile(`^sha256:[0-9a-f]{64}(,sha256:[0-9a-f]{64})*$`)
	// an instant in RFC 3339, or a duration
	captureShape = regexp.MustCompile(
		`^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}Z|([0-9.]{1,20}(h|m|s|ms|µs|ns)){1,3})$`)
	madeBy   = regexp.MustCompile(`"tool": "reprise [0-9A-Za-z.+_-]{1,64}"`) // and its version
	ofModel  = regexp.MustCompile(`model [0-9a-f]{12}\b`)
	keyShape = regexp.MustCompile(`^reprise\.[a-z_0-9]{1,40}$`)
)

// metadata judges a key and its value.
func (t *textScan) metadata(key, value string) {
	if !keyShape.MatchString(key) || !t.own.has(key) {
		t.refuse("names of metadata")
		key = "a key of its own"
	}
	where := "metadata " + key
	if !t.once(where, value) {
		return
	}
	name := strings.TrimPrefix(key, keyPrefix)
	switch shape := shapes[name]; {
	case shape != nil:
		if !shape.MatchString(value) {
			t.refuse(where)
		}
	case name == "run": // of results: it names a server and its model, and is judged as prose
		if len(suspicious(value)) > 0 {
			t.refuse(where)
		}
	default:
		switch name {
		case "source_format":
			value = ofModel.ReplaceAllString(value, "model")
		case "card":
			value = madeBy.ReplaceAllString(value, "")
		}
		if !t.own.has(value) {
			t.refuse(where)
		}
	}
}

// A form is what something that must not be in prose looks like. The forms are
// those that can be told without a list of names; names of people cannot.
type form struct {
	name  string
	shape *regexp.Regexp
	ok    func(string) bool // nil, or what a match must be beside
}

var forms = []form{
	{"an e-mail address", regexp.MustCompile(
		`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,12}\b`), nil},
	{"a card number", regexp.MustCompile(
		`(?:^|[^0-9.-])[3-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}(?:[^0-9.]|$)`), cardNumber},
	{"an IBAN", regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b`), iban},
	{"a telephone number", regexp.MustCompile(`\+[1-9][0-9]{0,2}[ .-][0-9]{2,4}[ .-][0-9]{3,4}[ .-]?[0-9]{2,4}\b`),
		nil},
	{"a hardware address", regexp.MustCompile(`\b[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}\b`), nil},
	{"a signed token (JWT)", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`), nil},
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----`), nil},
	{"a key of a service", regexp.MustCompile(
		`\b(sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[0-9A-Za-z-]{10,}|hf_[A-Za-z0-9]{30,})`), nil},
	{"a password in a URL", regexp.MustCompile(
		`\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@"'<>]{1,64}:[^/\s@"'<>]{1,64}@[A-Za-z0-9]`), nil},
}

// suspicious names the forms that s has somewhere.
func suspicious(s string) []string {
	var out []string
	for _, f := range forms {
		if slices.ContainsFunc(f.shape.FindAllString(s, 10_000),
			func(m string) bool { return f.ok == nil || f.ok(m) }) {
			out = append(out, f.name)
		}
	}
	return out
}

// cardNumber checks the digit that Luhn's formula gives (ISO/IEC 7812-1). What
// stands around the digits is part of s, as a figure with a point is no card.
func cardNumber(s string) bool {
	s = strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// iban checks the two digits of ISO 13616: the number, its first four characters
// put after the rest and letters read as 10 to 35, is 1 modulo 97.
func iban(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	rest := 0
	for _, c := range []byte(s[4:] + s[:4]) {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}
