package datasets

import (
	"bufio"
	"time"

	"reprise/trace"
)

// mooncakeBlock is the block size of the Mooncake release, in tokens.
const mooncakeBlock = 512

var mooncakeFields = Mapping{
	"time":          {"timestamp"},
	"input_tokens":  {"input_length"},
	"output_tokens": {"output_length"},
	"blocks":        {"hash_ids"},
}

// dialectFields are fields of formats that share Mooncake's names and give them
// another meaning, such as delays in place of times, lengths and ids of one turn
// only, or blocks of another size; each with the format that reads them. They
// tell a source by its first rows; here they are those of a later one.
var dialectFields = [][2]string{
	{"delay", "dynamo"}, {"delay_ms", "dynamo"}, {"session_id", "dynamo"}, {"wait_for", "dynamo"}, {"branches", "dynamo"},
	{"tool_wait_ms", "dynamo"}, {"prefix_reset", "dynamo"}, {"chat_id", "bailian"}, {"parent_chat_id", "bailian"},
	{"text_input", "aiperf"}, {"messages", "aiperf"},
}

// mooncakeFormat reads the traces of the Mooncake release (FAST'25;
// github.com/kvcache-ai/Mooncake): JSON lines of relative milliseconds, lengths
// and chained ids of 512-token prefix blocks, of which the last may be partial.
func mooncakeFormat() Format {
	return Format{
		Name:    "mooncake",
		About:   "Mooncake FAST'25 traces: JSON lines of times, lengths and ids of 512-token prefix blocks",
		Example: `{"timestamp": 27482, "input_length": 1150, "output_length": 500, "hash_ids": [0, 1, 2]}`,
		timed:   true,
		detect: detectKeys(func(has func(string) bool) bool {
			return has("timestamp") && has("input_length") && has("hash_ids")
		}),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			mapped, err := openJSONL(in, head, mooncakeFields, o, s)
			if err != nil {
				return nil, err
			}
			mapped.require()
			mapped.setBlockSize(mooncakeBlock)
			mapped.clock.usual = time.Millisecond
			return &mooncakeDecoder{mapped: mapped, lines: mapped.rows.(jsonRows).records}, nil
		},
	}
}

// A mooncakeDecoder parses the lines of the release by hand, at some ten times
// the speed of encoding/json, and leaves every line that is unusual in any way,
// or at fault, to the general decoder.
type mooncakeDecoder struct {
	mapped *mappedDecoder
	lines  records
	ids    []uint64 // reused
	slow   bool     // never parse by hand, for tests
}

func (d *mooncakeDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.lines.next()
	if err != nil {
		return dst, err
	}
	if e, ok := d.fast(raw); ok {
		return append(dst, e), nil
	}
	object, err := decodeObject(raw, d.lines)
	if err != nil {
		return dst, err
	}
	r := jsonRow{object, raw, d.lines}
	for _, f := range dialectFields {
		if _, ok := object[f[0]]; ok {
			line, col := r.place(f[0])
			return dst, refuse(line, col, "the field "+f[0]+" changes what the others mean: say --format "+f[1])
		}
	}
	n := len(dst)
	dst, err = d.mapped.entry(dst, r)
	if len(dst) > n && len(object) > len(mooncakeFields) {
		d.mapped.s.notes.count("records with fields that are not read")
	}
	return dst, err
}

// fast parses a line of the release; ok is false for any other.
func (d *mooncakeDecoder) fast(raw []byte) (e trace.Entry, ok bool) {
	if d.slow {
		return e, false
	}
	p := parser{rest: raw, ids: d.ids[:0]}
	at := p.key(`{"timestamp":`).integer(1e15)
	input := p.key(`,"input_length":`).integer(1 << 31)
	output := p.key(`,"output_length":`).integer(1 << 31)
	p.key(`,"hash_ids":[`).list()
	p.key(`}`)
	d.ids = p.ids
	if p.failed || len(p.rest) > 0 || len(p.ids) != blocksOf(int32(input), mooncakeBlock) {
		return e, false
	}
	if d.mapped.stampTime(&e, stamp{style: numeric, whole: int64(at)}) != nil {
		return e, false
	}
	lengths := &[2]int32{int32(input), int32(output)}
	e.InputTokens, e.OutputTokens = &lengths[0], &lengths[1]
	e.SourceBlocks = append(make([]uint64, 0, len(p.ids)), p.ids...)
	return e, true
}

// A parser reads a line with known keys in a known order. After the first thing
// that it does not know it has failed and does nothing.
type parser struct {
	rest   []byte
	ids    []uint64
	failed bool
}

// key reads the bytes of want, with spaces anywhere outside quotes.
func (p *parser) key(want string) *parser {
	inString := false
	for i := 0; i < len(want) && !p.failed; i++ {
		if !inString {
			p.spaces()
		}
		if len(p.rest) == 0 || p.rest[0] != want[i] {
			p.failed = true
			return p
		}
		p.rest = p.rest[1:]
		inString = inString != (want[i] == '"')
	}
	p.spaces()
	return p
}

func (p *parser) spaces() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t') {
		p.rest = p.rest[1:]
	}
}

// integer reads a JSON integer from 0 to below limit.
func (p *parser) integer(limit uint64) uint64 {
	if p.failed {
		return 0
	}
	n, i := uint64(0), 0
	for i < len(p.rest) && i < 18 && p.rest[i]-'0' < 10 {
		n = 10*n + uint64(p.rest[i]-'0')
		i++
	}
	// A leading zero is not JSON, and what follows must end the number.
	if i == 0 || i == 18 || n >= limit || i > 1 && p.rest[0] == '0' {
		p.failed = true
		return 0
	}
	p.rest = p.rest[i:]
	return n
}

// list reads integers up to the closing bracket.
func (p *parser) list() {
	if p.failed {
		return
	}
	if len(p.rest) > 0 && p.rest[0] == ']' {
		p.rest = p.rest[1:]
		return
	}
	for !p.failed {
		p.ids = append(p.ids, p.integer(1<<63))
		p.spaces()
		if len(p.rest) == 0 {
			p.failed = true
			return
		}
		c := p.rest[0]
		p.rest = p.rest[1:]
		if c == ']' {
			return
		}
		p.failed = p.failed || c != ','
		p.spaces()
	}
}
