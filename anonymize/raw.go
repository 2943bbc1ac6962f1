package anonymize

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// A rawRow is the text of a request: one row of a raw file. It is no row of a
// [trace.Writer], which takes none with text; only this package writes it.
type rawRow struct {
	Row        int64        `parquet:"row,delta"` // of the trace
	Messages   []rawMessage `parquet:"messages,list"`
	Tools      string       `parquet:"tools"`
	Reply      *string      `parquet:"reply,optional"`
	ReplyCalls string       `parquet:"reply_calls"`
	// other members of the request's body; files of earlier versions have none
	Fields string `parquet:"fields,optional"`
}

type rawMessage struct {
	Role    string `parquet:"role,dict"`
	Content string `parquet:"content"`
	Calls   string `parquet:"tool_calls"`
	CallID  string `parquet:"tool_call_id"`
	Name    string `parquet:"name"`
}

// appendText appends the text of an entry as rawRow.decode reads it: each string
// after its length. It is the form that waits in a private spill, and the one
// that the digest is of.
func appendText(b []byte, en *trace.Entry) []byte {
	row := rawRow{Tools: en.Tools.Reveal(), ReplyCalls: en.ReplyCalls.Reveal(), Fields: en.Fields.Reveal()}
	for i := range en.Messages {
		m := &en.Messages[i]
		row.Messages = append(row.Messages, rawMessage{m.Role.String(), m.Content.Reveal(), m.Calls.Reveal(),
			m.CallID.Reveal(), m.Name.Reveal()})
	}
	if en.Reply != nil {
		row.Reply = trace.Ptr(en.Reply.Reveal())
	}
	return row.append(b)
}

// append encodes all but the number.
func (r *rawRow) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Messages)))
	for _, m := range r.Messages {
		for _, s := range []string{m.Role, m.Content, m.Calls, m.CallID, m.Name} {
			b = appendField(b, s)
		}
	}
	b = appendField(appendField(b, r.Tools), r.ReplyCalls)
	if r.Reply == nil {
		b = append(b, 0)
	} else {
		b = appendField(append(b, 1), *r.Reply)
	}
	if r.Fields == "" { // so that the digest of a file without them stays what it was
		return b
	}
	return appendField(b, r.Fields)
}

func appendField(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errRawCode = errors.New("a temporary file with text is damaged")

// decode reads what append wrote.
func (r *rawRow) decode(b []byte) error {
	f := rawFields{rest: b}
	n := f.length()
	r.Messages = make([]rawMessage, 0, n)
	for range n {
		r.Messages = append(r.Messages, rawMessage{f.field(), f.field(), f.field(), f.field(), f.field()})
	}
	r.Tools, r.ReplyCalls, r.Reply = f.field(), f.field(), nil
	if len(f.rest) > 0 && f.rest[0] == 1 {
		f.rest = f.rest[1:]
		r.Reply = trace.Ptr(f.field())
	} else if len(f.rest) > 0 && f.rest[0] == 0 {
		f.rest = f.rest[1:]
	} else {
		f.short = true
	}
	if r.Fields = ""; len(f.rest) > 0 && !f.short {
		r.Fields = f.field()
	}
	if f.short || len(f.rest) > 0 {
		return errRawCode
	}
	return nil
}

// rawFields reads fields one after the other.
type rawFields struct {
	rest  []byte
	short bool
}

// length reads a number of things that take a byte or more each.
func (f *rawFields) length() int {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 || n > uint64(len(f.rest)-size) {
		f.rest, f.short = nil, true
		return 0
	}
	f.rest = f.rest[size:]
	return int(n)
}

func (f *rawFields) field() string {
	n := f.length()
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}

// Metadata of a raw file, beside reprise.schema, tier, card and card_sha256.
const (
	rawSchemaKey = "reprise.schema"
	rawTierKey   = "reprise.tier"
	rawCardKey   = "reprise.card"
	rawHashKey   = "reprise.card_sha256"
	rawRowsKey   = "reprise.rows_digest" // of the trace that it belongs to
	rawNonceKey  = "reprise.nonce"
	rawDigestKey = "reprise.digest"
)

const (
	rawBuffer = 1 << 20  // bytes that are written to the spill at once
	rawGroup  = 32 << 20 // bytes of text in a row group
)

// A rawKeeper takes text in the order of the source and writes it in that of the
// rows. Between the two it is in a private file without a name; 16 bytes a row
// stay in memory.
type rawKeeper struct {
	spill *trace.Spill
	buf   []byte
	at    []trace.Extent // by position in the source
}

func newRawKeeper(dir string) (*rawKeeper, error) {
	spill, err := trace.NewSpill(dir)
	return &rawKeeper{spill: spill}, err
}

func (k *rawKeeper) close() error { return k.spill.Close() }

// add takes the text of the next request of the source, encoded.
func (k *rawKeeper) addText(text []byte) error {
	k.at = append(k.at, trace.Extent{At: k.spill.Size() + int64(len(k.buf)), Len: int64(len(text))})
	k.buf = append(k.buf, text...)
	if len(k.buf) < rawBuffer {
		return nil
	}
	return k.flush()
}

func (k *rawKeeper) flush() error {
	_, err := k.spill.Append(k.buf)
	k.buf = k.buf[:0]
	return err
}

// textAt reads the text of a request by its position.
func (k *rawKeeper) textAt(i int64) ([]byte, error) {
	e := k.at[i]
	return k.spill.Reader(int(e.Len), e).Next(int(e.Len))
}

// write makes the raw file of rows with the given digest, and returns its own.
func (k *rawKeeper) write(w io.Writer, sorted *trace.Sorted, rows string) (digest string, err error) {
	if err := k.flush(); err != nil {
		return "", err
	}
	out := parquet.NewGenericWriter[rawRow](w, append(trace.WriterOptions(), trace.SkipBounds[rawRow]()...)...)
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails
	d := rawDigestOf(hex.EncodeToString(nonce[:]))
	group := 0
	var one [1]rawRow
	err = sorted.Order(func(row, written int64) error {
		text, err := k.textAt(written)
		if err != nil {
			return err
		}
		if err := one[0].decode(text); err != nil {
			return err
		}
		d.addText(text)
		one[0].Row = row
		if _, err := out.Write(one[:]); err != nil {
			return err
		}
		if group += len(text); group < rawGroup {
			return nil
		}
		group = 0
		return out.Flush()
	})
	if err != nil {
		return "", err
	}
	card, hash, err := rawCard.JSON()
	if err != nil {
		return "", err
	}
	for _, kv := range [][2]string{{rawSchemaKey, trace.RawSchema}, {rawTierKey, Raw}, {rawRowsKey, rows},
		{rawNonceKey, d.nonce}, {rawDigestKey, d.sum()}, {rawCardKey, card}, {rawHashKey, hash}} {
		out.SetKeyValueMetadata(kv[0], kv[1])
	}
	return d.sum(), out.Close()
}

// A rawDigest is of all text, after a random number: a digest of a few short
// prompts would else tell somebody who guesses them that they are right.
type rawDigest struct {
	nonce string
	h     hash.Hash
	size  [binary.MaxVarintLen64]byte
}

func rawDigestOf(nonce string) *rawDigest {
	d := &rawDigest{nonce: nonce, h: sha256.New()}
	fmt.Fprintf(d.h, "%s %s\n", trace.RawSchema, nonce)
	return d
}

// add takes the encoded text of the next row.
func (d *rawDigest) addText(text []byte) {
	d.h.Write(binary.AppendUvarint(d.size[:0], uint64(len(text))))
	d.h.Write(text)
}

func (d *rawDigest) sum() string { return "sha256:" + hex.EncodeToString(d.h.Sum(nil)) }

// rawCard is the card of a raw file.
var rawCard = Card{
	Schema: CardSchema, Tier: Raw, Unit: "none: the text of every request is in the file", Key: "none",
	Time: "none: it is in the trace",
	Columns: []Rule{
		{"row", "row of the trace that the file belongs to"},
		{"messages", "AS IN THE SOURCE: role, content, tool calls"},
		{"tools", "AS IN THE SOURCE: definitions offered by the request"},
		{"reply", "AS IN THE SOURCE"},
		{"reply_calls", "AS IN THE SOURCE"},
		{"fields", "AS IN THE SOURCE: the other members of the request's body"},
	},
	Risks: []string{
		"RAW TEXT: prompts and answers as people wrote and got them. Nothing was removed.",
		"Only replay --verbatim opens it. Do not share it outside your organisation. Delete it when the log it came " +
			"from is deleted.",
	},
}

// rawRisk is what the card of a trace says about its raw file.
const rawRisk = "The text of the requests is kept beside this trace, in a file of tier raw that belongs to it."

// A digestWriter takes the digest of rows on their way.
type digestWriter struct {
	dst trace.Writer[trace.Request]
	sum *trace.Digest
}

// Write implements [trace.Writer].
func (d *digestWriter) Write(rows []trace.Request) (int, error) {
	n, err := d.dst.Write(rows)
	d.sum.Add(rows[:n])
	return n, err
}
