package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Schema names the row layout that this package writes.
const Schema = "trace/2"

// schema1 names the layout before output lengths could be unknown. Its files stay readable:
// each of their rows has an output length.
const schema1 = "trace/1"

// RawSchema names the files that keep text for verbatim replay. Nothing reads
// them as a trace: package anonymize writes and reads them.
const RawSchema = "raw/1"

// Meta is what a trace file says about itself, kept as key-value metadata under
// "reprise." keys. Empty fields are not written.
type Meta struct {
	Schema       string  // always [Schema] in a file that Open returns
	BlockSize    int     // tokens in a full block; 0 when the trace has no blocks
	Convention   string  // what the last block id of a row stands for, see [PartialTail]
	Tokenizer    string  // empty when the source counted the tokens
	Template     string  // chat template counted into the lengths
	SourceFormat string  // such as mooncake, azure-2023, sharegpt
	TimeUnit     string  // detected unit of the source's times, such as ms
	Timing       string  // how times were made up, when the source has none
	Capture      Capture // when the source was recorded, as declared; its begin is arrival 0
	// ids of the captures that the rows come from, by commas: each is random and born with its import or recording
	Captures string
	Sessions string // source, inferred, or empty for none
	// version of the rule that gave categories, see [CategoryRule]; empty for the first, and several by commas
	Categories   string
	SessionDoubt string // of inferred ones: the share of their turns that may be chance, as estimated, decimal
	Tier         string // internal, partner, public
	Unit         string // unit of privacy, such as request or user
	Card         string // privacy card, JSON
	CardHash     string // hex SHA-256 of Card
	Breakers     string // where near-identical prompts of the source part, JSON: see profile.Breakers
	Seed         string // seed of generated rows and prompts, decimal
	Text         string // what prompts are written in, see [TextWords]; empty for words without meaning
	Corpus       string // digest of the corpus for [TextCorpus], as "sha256:" and hex
	SharedTails  string // [TailsShared] when a block that completes a partial one begins with its tokens
	// of what was recorded, by commas: the ids of the shared keys, and "ephemeral" for each other; empty for one such
	Keys string
	// SHA-256 of the file that all rows come from, hex after "sha256:", of a format in which data sets are published;
	// empty for a part of it
	Source string
	Raw    string // digest of the raw file that keeps the text of the rows; empty where none does
	Digest string // digest of the rows, see [Digest]
}

// PartialTail is the block convention of every trace so far: when the
// length is not a multiple of the block size, the last id of a row stands for
// the partial block, as in the Mooncake release. A completed partial block has
// another id.
const PartialTail = "partial-tail"

// Values of Text and SharedTails.
const (
	TextWords   = "words"  // common English words
	TextCorpus  = "corpus" // slices of a corpus, which is not in the file
	TailsShared = "true"
)

// fields lists the string fields with their keys, in the order they are written.
func (m *Meta) fields() []struct {
	key   string
	value *string
} {
	return []struct {
		key   string
		value *string
	}{
		{"schema", &m.Schema}, {"block_convention", &m.Convention},
		{"tokenizer", &m.Tokenizer}, {"template", &m.Template},
		{"source_format", &m.SourceFormat}, {"time_unit", &m.TimeUnit}, {"timing", &m.Timing},
		{"sessions", &m.Sessions}, {"session_doubt", &m.SessionDoubt}, {"categories", &m.Categories}, {"tier", &m.Tier},
		{"unit", &m.Unit},
		{"card", &m.Card}, {"card_sha256", &m.CardHash}, {"breakers", &m.Breakers}, {"seed", &m.Seed},
		{"prompt_text", &m.Text}, {"corpus_sha256", &m.Corpus}, {"shared_tails", &m.SharedTails},
		{"recording_keys", &m.Keys}, {"capture_ids", &m.Captures}, {"source_sha256", &m.Source}, {"raw_digest", &m.Raw},
		{"digest", &m.Digest},
	}
}

const (
	metaPrefix   = "reprise."
	blockSizeKey = metaPrefix + "block_size"
	beginKey     = metaPrefix + "capture_begin"
	endKey       = metaPrefix + "capture_end"
)

// IsWorkload reports whether rows were made to be replayed, so that the metadata say how their prompts
// are written; those of a trace say nothing of it.
func (m Meta) IsWorkload() bool { return m.Seed != "" }

// Each calls f with every key and value of m that is set.
func (m Meta) Each(f func(key, value string)) {
	for _, p := range m.fields() {
		if *p.value != "" {
			f(metaPrefix+p.key, *p.value)
		}
	}
	if m.BlockSize != 0 {
		f(blockSizeKey, strconv.Itoa(m.BlockSize))
	}
	if begin, end := m.Capture.Texts(); end != "" {
		f(beginKey, begin)
		f(endKey, end)
	}
}

// ErrRaw says that a file keeps text, for one purpose.
var ErrRaw = errors.New("it is the raw text of a trace, which only replay --verbatim opens: give the trace itself")

// parseMeta reads the metadata of a trace back; lookup is a file's key-value lookup.
func parseMeta(lookup func(string) (string, bool)) (Meta, error) {
	m, err := MetaOf(lookup)
	if m.Schema == RawSchema {
		return m, ErrRaw
	}
	if m.Schema == PartitionSchema {
		return m, ErrPartition
	}
	if m.Schema == schema1 {
		m.Schema = Schema
	}
	if m.Schema != Schema {
		if strings.HasPrefix(m.Schema, "trace/") {
			return m, fmt.Errorf("its schema has another version than %s", Schema)
		}
		return m, fmt.Errorf("it has no reprise.schema = %s, so it is not a trace", Schema)
	}
	return m, err
}

// MetaOf reads the metadata of a trace, or of what was made of one, such as histograms, whatever its
// schema; lookup is a file's key-value lookup.
func MetaOf(lookup func(string) (string, bool)) (Meta, error) {
	var m Meta
	for _, p := range m.fields() {
		*p.value, _ = lookup(metaPrefix + p.key)
	}
	if s, ok := lookup(blockSizeKey); ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1<<20 {
			return m, fmt.Errorf("its block size is not a number from 1 to %d", 1<<20)
		}
		m.BlockSize = n
	}
	begin, _ := lookup(beginKey)
	end, _ := lookup(endKey)
	var err error
	m.Capture, err = parseCapture(begin, end)
	return m, err
}

// tiers are those of Meta.Tier, the strictest first.
var tiers = []string{"raw", "internal", "partner", "public"}

// Stricter is the tier of what was made of two files, each of a tier of its own:
// raw before internal, partner and public. A file that states none, or one that is
// not known here, counts as internal.
func Stricter(a, b string) string {
	if strictness(b) < strictness(a) {
		return b
	}
	if strictness(a) == strictness(b) {
		return cmp.Or(a, b)
	}
	return a
}

// Strictest is the tier of what was made of several things, each of a tier of its own, see [Stricter].
// It is empty for none.
func Strictest[T any](things []T, tier func(*T) string) (strictest string) {
	for i := range things {
		if t := tier(&things[i]); i == 0 {
			strictest = t
		} else {
			strictest = Stricter(strictest, t)
		}
	}
	return strictest
}

func strictness(tier string) int {
	if i := slices.Index(tiers, tier); i >= 0 {
		return i
	}
	return slices.Index(tiers, "internal")
}

// Modes of files.
const (
	private os.FileMode = 0o600
	shared  os.FileMode = 0o644
)

// Mode is the mode of a file with such metadata. What was made of a source is its
// owner's alone, whatever its tier: a tier is what a file claims, and somebody is
// to look whether it holds before others read it. What was made of a specification,
// or of nothing, is for everybody.
func (m Meta) Mode() os.FileMode {
	if m.Tier == "public" && m.SourceFormat != "spec" {
		return private
	}
	return TierMode(m.Tier)
}

// TierMode is the mode of what was measured with a trace of a tier: its owner's
// alone where that has real records.
func TierMode(tier string) os.FileMode {
	if tier == "" || tier == "public" {
		return shared
	}
	return private
}

// Share lets everybody read a file.
func Share(path string) error { return os.Chmod(path, shared) }

// TierWords are what a command says of the tier of what it wrote.
func TierWords(tier string) string {
	return "tier " + tier + map[string]string{"public": ": may be published",
		"partner": ": for a partner under contract", "internal": ": pseudonymous, for use inside your organisation"}[tier]
}

// TierNote is what a page, table or the like, named by what, says on its face of
// the tier that it has from its trace. It is empty for what may be published.
func TierNote(what, tier string) string {
	switch tier {
	case "public":
		return ""
	case "partner":
		return "This " + what + " is of tier partner: for a partner under contract, not for publication."
	case "raw":
		return "This " + what + " is of tier raw, made of a trace whose text was kept: not for release."
	case "internal":
		return "This " + what + " is internal: not for release."
	case "":
		return "No tier is stated, so this " + what + " counts as internal: not for release."
	}
	return "Its tier is not known here, so this " + what + " counts as internal: not for release."
}
