package datasets

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// MooncakeBlock is the block size of the Mooncake release, in tokens.
const MooncakeBlock = 512

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
	{"delay", "dynamo"}, {"delay_ms", "dynamo"}, {"session_id", "dynamo"}, {"wait_for", "dynamo"},
	{"branches", "dynamo"},
	{"tool_wait_ms", "dynamo"}, {"prefix_reset", "dynamo"}, {"chat_id", "bailian"}, {"parent_chat_id", "bailian"},
	{"text_input", "aiperf"}, {"messages", "aiperf"},
}

// mooncakeFormat reads the traces of the Mooncake release (FAST'25;
// github.com/kvcache-ai/Mooncake): JSON lines of relative milliseconds, lengths
// and chained ids of 512-token prefix blocks, the last of which may be partial.
// Other tools write the same lines with blocks of another size, and say it nowhere: the
// only size that fits all of the first rows is taken, or that of Options.BlockSize. The
// release's milliseconds are whole: times that are written with a fraction are seconds, as
// vLLM's timed_trace and GuideLLM have them. Where that would make a minute of the usual time
// between two requests, the unit is asked for.
func mooncakeFormat() Format {
	return Format{
		reads: mappedFields(mooncakeFields, nil),
		timed: true, sized: true, adds: true, labels: true,
		detect: sniff.Lines(func(has func(string) bool) bool {
			return has("timestamp") && has("input_length") && has("hash_ids")
		}),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			before := s.info.BlockSize // of the files before
			mapped, err := openJSONL(in, head, mooncakeFields, o, s)
			if err != nil {
				return nil, err
			}
			mapped.timing = withTimes
			require(mapped.fields, "input_tokens", "blocks")
			size := cmp.Or(o.BlockSize, before, mooncakeBlocks(head))
			noteBlocks(size, o, s)
			mapped.setBlockSize(size)
			mapped.clock.Usual, mapped.clock.Always = time.Millisecond, true
			seconds, err := inSeconds(head, o, s)
			if err != nil {
				return nil, err
			}
			if seconds {
				mapped.clock.Usual = time.Second
			}
			lines := mapped.rows.(row.JSON).Records.(*record.Finite)
			return &mooncakeDecoder{mapped: mapped, size: size, lines: lines}, nil
		},
	}.described("mooncake")
}

// noteBlocks says which size of blocks was taken, unless it was told or is the release's.
func noteBlocks(size int, o Options, s *Source) {
	if size != MooncakeBlock && o.BlockSize == 0 {
		s.notes.SayOnce(fmt.Sprintf("blocks of %d tokens fit the lengths of the first rows, and blocks of %d do not",
			size, MooncakeBlock))
	}
}

// maxMooncakeGap is the longest usual time between requests, in seconds.
const maxMooncakeGap = 60

// inSeconds reports whether the times of rows with Mooncake's names are seconds, which nothing but
// their fractions tells. It is an error where that would be too far apart.
func inSeconds(head []byte, o Options, s *Source) (bool, error) {
	earliest, latest, rows, fractions := math.Inf(1), math.Inf(-1), 0, false
	for _, line := range record.HeadLines(head) {
		v, _, _ := row.DecodeJSON(line)
		at, _ := row.Lookup(v, "timestamp")
		t, err := strconv.ParseFloat(row.Plain(at), 64)
		if err != nil {
			continue
		}
		earliest, latest, rows = min(earliest, t), max(latest, t), rows+1
		fractions = fractions || strings.Contains(row.Plain(at), ".")
	}
	switch {
	case !fractions || o.TimeUnit != "":
		return false, nil
	case latest-earliest > maxMooncakeGap*float64(rows):
		return false, fault.Refuse(1, 1,
			"the times have fractions, as seconds have, and their gaps are too long for seconds: "+stamp.SayUnit)
	}
	s.notes.SayOnce(noteFractions)
	return true, nil
}

const noteFractions = "times were taken as seconds, since they have fractions: say --time-unit ms if they are " +
	"milliseconds"

// mooncakeBlocks tells the size of the blocks by the lengths of the first rows and the
// numbers of their ids: the only usual one that fits them all, or that of the release.
func mooncakeBlocks(head []byte) int {
	sizes := []int{MooncakeBlock, 16, 32, 64, 128, 256, 1024, 2048}
	rows := 0
	for _, line := range record.HeadLines(head) {
		v, _, _ := row.DecodeJSON(line)
		length, _ := row.Lookup(v, "input_length")
		n, ok := countOf(row.Plain(length))
		ids, _ := row.Lookup(v, "hash_ids")
		list, ok2 := ids.([]any)
		if !ok || !ok2 {
			continue
		}
		rows++
		sizes = slices.DeleteFunc(sizes, func(size int) bool { return blocksOf(n, size) != len(list) })
	}
	if len(sizes) == 1 && rows > 1 {
		return sizes[0]
	}
	return MooncakeBlock
}

// A mooncakeDecoder parses the lines of the release by hand, at some ten times
// the speed of encoding/json, and leaves every line that is unusual in any way,
// or at fault, to the general decoder.
type mooncakeDecoder struct {
	mapped *mappedDecoder
	size   int // of a block
	lines  *record.Finite
	held   *heldLine          // the next line, where that was looked at
	room   trace.PlainEntries // for what the next entries point to
	slow   bool               // never parse by hand, for tests
}

type heldLine struct {
	raw []byte
	err error
}

func (d *mooncakeDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *mooncakeDecoder) { d.lines, d.mapped.rows = n.lines, n.mapped.rows })
}

func (d *mooncakeDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.next()
	if err == nil {
		if d.room.Len() == roomItems/8 {
			d.room = trace.PlainEntries{IDs: make([]uint64, 0, roomItems)}
		}
		if i := d.room.Len(); d.parse(raw, &d.room) {
			return append(dst, d.room.Entry(i)), nil
		}
		raw, err = d.lines.Null(raw)
	}
	if err != nil {
		return dst, err
	}
	object, err := row.DecodeObject(raw, d.lines)
	if err != nil {
		return dst, err
	}
	r := row.JSONRow{Root: object, Raw: raw, Records: d.lines, Fields: d.mapped.s.fields, Unread: false}
	for _, f := range dialectFields {
		if _, ok := object[f[0]]; ok {
			line, col := r.Place(f[0])
			return dst, fault.Refuse(line, col, "the field "+f[0]+" changes what the others mean: say --format "+f[1])
		}
	}
	n := len(dst)
	unread := r.Fields.Admit(object)
	dst, err = d.mapped.entry(dst, r)
	if len(dst) > n && unread {
		d.mapped.s.notes.Count("records with fields that are not read")
	}
	return dst, err
}

// next reads the next line, as it stands there.
func (d *mooncakeDecoder) next() ([]byte, error) {
	if h := d.held; h != nil {
		d.held = nil
		return h.raw, h.err
	}
	return d.lines.Reader.Next()
}

// decodePlain implements [plainDecoder].
func (d *mooncakeDecoder) decodePlain(p *trace.PlainEntries) bool {
	raw, err := d.next()
	if err == nil && d.parse(raw, p) {
		return true
	}
	d.held = &heldLine{raw, err}
	return false
}

// parse appends a line of the release; ok is false for any other.
func (d *mooncakeDecoder) parse(raw []byte, to *trace.PlainEntries) (ok bool) {
	if d.slow {
		return false
	}
	from := len(to.IDs)
	p := mooncakeParser{rest: raw, ids: to.IDs}
	at := p.key(`{"timestamp": `).integer(1e15)
	input := p.key(`, "input_length": `).integer(1 << 31)
	output := p.key(`, "output_length": `).integer(1 << 31)
	p.key(`, "hash_ids": [`).list()
	p.key(`}`)
	to.IDs = p.ids[:from]
	n := len(p.ids) - from
	if p.failed || len(p.rest) > 0 || n == 0 || n >= record.MaxValues || n != blocksOf(int32(input), d.size) {
		return false
	}
	if int(input)%d.size != 0 {
		if d.mapped.s.rest == withoutRest {
			return false
		}
		d.mapped.s.rest = withRest
	}
	t, ok := d.mapped.clock.Number(int64(at))
	if ok {
		to.UnixNS, to.IDs, to.Ends = append(to.UnixNS, t.UnixNano()), p.ids, append(to.Ends, len(p.ids))
		to.Input, to.Output = append(to.Input, int32(input)), append(to.Output, int32(output))
	}
	return ok
}

// roomItems is how many ids of entries share an allocation.
const roomItems = 4096

// A mooncakeParser reads a line with known keys in a known order. After the first thing
// that it does not know it has failed and does nothing.
type mooncakeParser struct {
	rest   []byte
	ids    []uint64
	failed bool
}

// key reads the bytes of want, which has the spaces of the release; any others
// outside quotes will do as well.
func (p *mooncakeParser) key(want string) *mooncakeParser {
	if len(p.rest) >= len(want) && string(p.rest[:len(want)]) == want && !p.failed {
		p.rest = p.rest[len(want):]
		p.spaces()
		return p
	}
	inString := false
	for i := 0; i < len(want) && !p.failed; i++ {
		if !inString {
			if p.spaces(); want[i] == ' ' {
				continue
			}
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

func (p *mooncakeParser) spaces() { p.rest = p.rest[afterSpaces(p.rest, 0):] }

// integer reads a JSON integer from 0 to below limit.
func (p *mooncakeParser) integer(limit uint64) uint64 {
	if p.failed {
		return 0
	}
	n, i := digits(p.rest, 0)
	if n >= limit {
		i = 0
	}
	p.failed, p.rest = i == 0, p.rest[i:]
	return n
}

// digits reads the JSON integer from 0 to below 1e19 that begins at b[from], and
// returns what is after it; 0 when there is none. Eight digits at a time, by
// multiplications in a word, was rejected: it is no faster, as the ids of a line
// have one length and so are well predicted.
func digits(b []byte, from int) (n uint64, end int) {
	i := from
	for i < len(b) && b[i]-'0' < 10 {
		n = 10*n + uint64(b[i]-'0')
		i++
	}
	// A leading zero is not JSON.
	if i == from || i-from > 19 || i-from > 1 && b[from] == '0' {
		return 0, 0
	}
	return n, i
}

// list reads integers up to the closing bracket.
func (p *mooncakeParser) list() {
	if p.failed {
		return
	}
	b, i := p.rest, 0
	if len(b) > 0 && b[0] == ']' {
		p.rest = b[1:]
		return
	}
	for {
		id, end := digits(b, i)
		if end == 0 {
			break
		}
		p.ids = append(p.ids, id)
		i = p.countUp(b, i, end)
		if i+1 < len(b) && b[i] == ',' && b[i+1]-'0' < 10 {
			i++ // written close
			continue
		}
		if i = afterSpaces(b, i); i == len(b) {
			break
		}
		c := b[i]
		i++
		if c == ']' {
			p.rest = b[i:]
			return
		}
		if c != ',' {
			break
		}
		i = afterSpaces(b, i)
	}
	p.failed = true
}

// countUp reads the ids behind that of b[from:end] as long as each is the one before it plus one, by the last digit
// alone, and returns what is after them. Most of a prompt is, and eight digits are compared at once.
func (p *mooncakeParser) countUp(b []byte, from, end int) int {
	n := end - from
	if n > 8 || from+8 > len(b) {
		return end
	}
	last := 8 * (n - 1)
	mask, id := ^uint64(0)>>(56-last), p.ids[len(p.ids)-1]
	for text := binary.LittleEndian.Uint64(b[from:]) & mask; text>>last < '9'; end += 2 + n {
		text += 1 << last
		if end+2+8 >= len(b) || b[end] != ',' || b[end+1] != ' ' || b[end+2+n]-'0' < 10 ||
			binary.LittleEndian.Uint64(b[end+2:])&mask != text {
			break
		}
		id++
		p.ids = append(p.ids, id)
	}
	return end
}

func afterSpaces(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}
