package anonymize

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/breaker"
	"reprise/trace/shard"
	"reprise/trace/token"
)

// OpenSharedKey reads a key from a file that exists, such as a secret that is mounted into
// all shards of an import. A group may read it, since that is how a mounted secret reaches a
// process that is not its owner's. Errors name the file and quote nothing of it.
func OpenSharedKey(path string) (*SharedKey, error) { return readKeyFile(path, 0o037) }

// Check tells the key of an import in shards from others, in 8 bytes as hex. The key cannot
// be had from it.
func (k *SharedKey) Check() string { return k.keyed("check", "of the key of shards")[:16] }

// CaptureID is the id of an import in shards, of the source with this digest: it is the same
// in all shards, and however often they are merged.
func (k *SharedKey) CaptureID(digest string) string { return k.keyed("capture", digest) }

// keyed is an id of a name under the key, 16 bytes as hex; empty for no name.
func (k *SharedKey) keyed(kind, name string) string {
	if name == "" {
		return ""
	}
	return hex.EncodeToString(k.hash(kind, name)[:16])
}

func (k *SharedKey) hash(kind, name string) []byte {
	sum := hmac.New(sha256.New, k.key[:])
	fmt.Fprintf(sum, "reprise: shard, %s\x00%s", kind, name)
	return sum.Sum(nil)
}

// EncodeShard does the first step of [Run] for a part of a log, and writes the rows to dst in
// their order. src reads the part, and head the log from its beginning, whose first records
// tell something of all: all shards have the same. m gets what was found.
func EncodeShard(ctx context.Context, p Policy, key *SharedKey, head, src trace.EntryReader,
	dst trace.Writer[shard.Row], m *shard.Meta) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Raw != nil {
		return errors.New("a shard keeps no text")
	}
	s := &shardWriter{p: &p, key: key, dst: dst, ids: map[[2]string]string{}, domains: map[[3]string]uint64{}}
	if p.KTemplate > 0 {
		s.prompts = newTemplateCounter(p.KTemplate)
	}
	if err := encodeAll(ctx, &p, key.key, head, src, s.add); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	var err error
	if found := s.breakers.report(); found != nil {
		text, err := found.JSON()
		if err != nil {
			return err
		}
		m.Breakers = json.RawMessage(text)
	}
	if s.prompts != nil {
		if m.Prompts, err = s.prompts.seal(key); err != nil {
			return err
		}
	}
	if p.Confined != nil {
		if m.Confined, err = json.Marshal(p.Confined); err != nil {
			return err
		}
	}
	m.Tokenizer, m.Template = "", p.Template.Name
	if p.Tokenizer != nil {
		m.Tokenizer = p.Tokenizer.Name()
	}
	m.KeyCheck = key.Check()
	m.Settings.BlockSize, m.Settings.SourceBlock, m.Settings.KeepModel = p.BlockSize, p.SourceBlock, p.KeepModel
	m.Settings.Lengths, m.Settings.Capture, m.Settings.KTemplate = p.Lengths, p.Capture, p.KTemplate
	return nil
}

// A shardWriter takes the rows of a shard in their order.
type shardWriter struct {
	p        *Policy
	key      *SharedKey
	dst      trace.Writer[shard.Row]
	rows     []shard.Row
	breakers breakerFinder
	prompts  *templateCounter     // nil where no templates are kept
	ids      map[[2]string]string // of names, by kind and name: those of late
	domains  map[[3]string]uint64 // first halves of the keys of blocks that a source hashed
}

const (
	shardBatch = 256     // rows
	maxIDs     = 1 << 15 // of names that are remembered
)

// keyed is [SharedKey.keyed]; a name comes again and again.
func (s *shardWriter) keyed(kind, name string) string {
	if name == "" {
		return ""
	}
	id, ok := s.ids[[2]string{kind, name}]
	if !ok {
		if len(s.ids) >= maxIDs {
			clear(s.ids)
		}
		id = s.key.keyed(kind, name)
		s.ids[[2]string{kind, strings.Clone(name)}] = id
	}
	return id
}

func (s *shardWriter) add(x *encoded, tokens []uint32) error {
	if s.prompts != nil {
		s.prompts.add(x.system, x.user, x.session)
	}
	domain := [3]string{x.row.Model, x.row.Adapter, x.salt} // by the names of the source
	row := shard.Row{Recorded: x.recorded(s.p, s.keyed), Messages: x.messages, ByHash: x.hashed}
	s.breakers.addPrompt(x, tokens)
	row.Recorded.Request.Category = x.cluster
	if len(x.source) > 0 {
		hi, ok := s.domains[domain]
		if !ok {
			hi = binary.BigEndian.Uint64(s.key.hash("domain", fmt.Sprintf("%q", domain)))
			if len(s.domains) < maxHeads {
				s.domains[domain] = hi
			}
		}
		for _, id := range x.source {
			row.Recorded.Request.Blocks = append(row.Recorded.Request.Blocks, hi, id)
		}
		if rest := x.rest(s.p.blockSize()); rest > 0 {
			row.Recorded.Request.Blocks[2*len(x.source)-2] ^= uint64(rest)
		}
	}
	if s.rows = append(s.rows, row); len(s.rows) < shardBatch {
		return nil
	}
	return s.flush()
}

func (s *shardWriter) flush() error {
	_, err := s.dst.Write(s.rows)
	clear(s.rows)
	s.rows = s.rows[:0]
	return err
}

// A Crossing counts requests that go on from an answer in an earlier file, whose prompts a
// shard cannot put together.
type Crossing struct{ Requests int64 }

// MergeShards makes the rows of a trace of all shards of an import, as [Run] does of a log:
// sorted by arrival and, where that is the same, by their place in the source; annotated and
// renumbered. Shards are read one at a time, so that memory is bounded as that of Run is,
// whatever their number. Of the policy the progress, the place of private files and the lengths
// count, where the shards say none of these. key is needed where system prompts are kept, and else may be nil.
func MergeShards(ctx context.Context, p Policy, key *SharedKey, set *shard.Set,
	dst trace.Writer[trace.Request]) (Card, Crossing, error) {
	shards := set.Shards()
	m := shards[0]
	p.BlockSize, p.SourceBlock, p.KeepModel = m.Settings.BlockSize, m.Settings.SourceBlock, m.Settings.KeepModel
	p.Lengths, p.Capture, p.Tokenizer, p.Template = cmp.Or(p.Lengths, m.Settings.Lengths), m.Settings.Capture, nil,
		token.Template{Name: m.Template}
	var crossing Crossing
	if err := p.check(); err != nil {
		return Card{}, crossing, err
	}
	c := newCollector(&p)
	c.noTokens = true
	defer c.sorter.Close()
	if m.Settings.KTemplate > 0 {
		p.KTemplate = m.Settings.KTemplate
		var err error
		if c.prompts, err = openPrompts(set, key, p.KTemplate); err != nil {
			return Card{}, crossing, err
		}
	}
	for i := range shards {
		c.recorded = breaker.Join(c.recorded, shards[i].Breakers)
	}
	answers := answerFiles{}
	done, first, last := int64(0), int64(math.MaxInt64), int64(math.MinInt64)
	err := set.Rows(func(rows []shard.Row) error {
		for i := range rows {
			if answers.cross(&rows[i]) {
				crossing.Requests++
			}
			if r := &rows[i].Recorded; r.TextTokens != nil && r.Request.Status != trace.StatusFailed &&
				r.InputGap != gapNames[shortGap] {
				// as a breaker finder has it
				first, last = min(first, r.Request.ArrivalNS), max(last, r.Request.ArrivalNS)
			}
			if err := c.addShared(&rows[i]); err != nil {
				return err
			}
		}
		done += int64(len(rows))
		p.progress("merge", done)
		return ctx.Err()
	})
	if err != nil {
		return Card{}, crossing, err
	}
	if c.recorded != nil && first <= last {
		c.recorded.DurationS = float64(last-first) / 1e9
	}
	if err := c.checkLengths(&p); err != nil {
		return Card{}, crossing, err
	}
	card, err := c.finish(ctx, &p, nil, dst)
	card.Key, card.Risks, card.Confined = keyOfShards, append(card.Risks, shardsRisk), confinedShards(shards)
	if card.Totals.Texts > 0 {
		card.Tokenizer, card.Template = m.Tokenizer, m.Template
		card.Risks = append(card.Risks, breakersRisk)
	}
	return card, crossing, err
}

const (
	keyOfShards = "shared by the shards of one import, in a file; the ids here were renumbered and do not depend on it"
	shardsRisk  = "Imported in shards: whoever has these and their key can test guesses of prompts and names. Delete " +
		"both after the merge."
)

// confinedShards is how all processes that looked at the text were confined: as the one that
// lacked something, if there is one, and nil if one was not confined.
func confinedShards(shards []shard.Meta) (all *Confinement) {
	for i := range shards {
		var c *Confinement
		if json.Unmarshal(shards[i].Confined, &c) != nil || c == nil {
			return nil
		}
		if all == nil || len(all.Missing()) < len(c.Missing()) {
			all = c
		}
	}
	return all
}

// addShared takes a row of a shard.
func (c *collector) addShared(r *shard.Row) error {
	x := decodeRecorded(&r.Recorded)
	x.cluster, x.messages, x.hashed, x.response, x.previous = r.Recorded.Request.Category, r.Messages, r.ByHash,
		r.Recorded.ResponseID, r.Recorded.PreviousID
	return c.addRow(&x, nil)
}

// answerFiles know, for up to 1,048,576 answers, in which file of the source they are.
type answerFiles struct {
	ids  *block.IDs
	file []int32
}

// cross notes the answer of a row, and reports whether the row goes on from one in an earlier
// file.
func (a *answerFiles) cross(r *shard.Row) (crosses bool) {
	if r.Recorded.PreviousID == "" && r.Recorded.ResponseID == "" {
		return false
	}
	if a.ids == nil {
		a.ids = block.NewIDs(maxAnswers, 0)
	}
	number := func(id string) (int, bool) {
		sum := sha256.Sum256([]byte(id))
		return a.ids.ID(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:]))
	}
	grow := func(n int) {
		for len(a.file) <= n {
			a.file = append(a.file, -1)
		}
	}
	if r.Recorded.PreviousID != "" {
		if n, ok := number(r.Recorded.PreviousID); ok {
			grow(n)
			crosses = a.file[n] >= 0 && int(a.file[n]) != r.File
		}
	}
	if r.Recorded.ResponseID != "" && r.Recorded.Request.Status != trace.StatusFailed {
		if n, ok := number(r.Recorded.ResponseID); ok {
			grow(n)
			a.file[n] = int32(r.File)
		}
	}
	return crosses
}
