package datasets

import (
	"bufio"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

var basetenFields = Mapping{
	"time":          {"timestamp_start_unix_ms"},
	"prompt":        {"prompt"},
	"output":        {"output_text"},
	"input_tokens":  {"input_tokens"},
	"output_tokens": {"output_tokens"},
	"session":       {"provided_session_id", "poor_man_session_id"},
	"model":         {"model"},
	"e2e_ms":        {"duration_e2e_ms"},
	"ttft_ms":       {"duration_ttft_ms"},
}

func hasBaseten(has func(string) bool) bool {
	return has("timestamp_start_unix_ms") && has("input_tokens") && has("output_tokens")
}

// basetenFormat reads the completion traces that Baseten exports, as Parquet or
// as lines of JSON (AIPerf's baseten_trace). A session is the one that the
// client named, else the one that the exporter guessed ("poor man's").
//
// The ids of total_hashes are chained here, each hashed with those before it:
// where they are chained already that keeps what they tell, and where each
// names the content of its block alone it makes them ids of prefixes. An
// exporter may leave a last block that is not full without an id; it gets one
// that no other has.
func basetenFormat() Format {
	return Format{
		reads:  mappedFields(basetenFields, nil),
		timed:  true,
		detect: sniff.Lines(hasBaseten),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			if row.IsParquet(head) {
				p, err := row.SpoolParquet(in)
				if err != nil {
					return nil, err
				}
				return openBasetenParquet(p, o, s)
			}
			d, err := openJSONL(in, head, basetenFields, o, s)
			return &basetenDecoder{mapped: basetenMapped(d)}, err
		},
	}.described("baseten")
}

// basetenExtra are columns that are read beside the mapped ones.
var basetenExtra = Mapping{"hashes": {"total_hashes"}, "size": {"block_size"}, "cancelled": {"request_canceled"}}

func openBasetenParquet(p *row.Parquet, o Options, s *Source) (decoder, error) {
	d, err := openMappedParquet(p, basetenFields.over(basetenExtra), o, s)
	if err != nil {
		return nil, err
	}
	d.blockSize = 0
	columns := p.Columns()
	s.info.HasText = slices.Contains(columns, "prompt") || slices.Contains(columns, "output_text")
	return &basetenDecoder{mapped: basetenMapped(d)}, nil
}

func basetenMapped(d *mappedDecoder) *mappedDecoder {
	if d != nil {
		d.clock.Usual = time.Millisecond
		d.timing = withTimes
	}
	return d
}

type basetenDecoder struct {
	mapped *mappedDecoder
	size   int32 // tokens in a block; 0 until the first record with hashes
}

func (d *basetenDecoder) mapping() *mappedDecoder { return d.mapped }

func (d *basetenDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.mapped.rows.Next()
	if err != nil {
		return dst, err
	}
	before := len(dst)
	if dst, err = d.mapped.entry(dst, r); err != nil {
		return dst, err
	}
	e := &dst[before]
	if v, ok := r.Value("request_canceled"); ok {
		cancelled, isBool := v.(bool)
		if isBool && cancelled || row.Plain(v) == "true" || row.Plain(v) == "1" {
			e.Status = trace.StatusCancelled
		}
	}
	d.setBlocks(e, r)
	return dst, nil
}

// setBlocks sets the prefix blocks, if there is a hash for each of them.
func (d *basetenDecoder) setBlocks(e *trace.Entry, r row.Row) {
	v, _ := r.Value("total_hashes")
	hashes, _ := v.([]any)
	v, _ = r.Value("block_size")
	size, ok := countOf(row.Plain(v))
	if len(hashes) == 0 || e.InputTokens == nil {
		return
	}
	if d.size == 0 && ok && size > 0 && size <= 1<<16 {
		d.size = size
		d.mapped.s.info.BlockSize, d.mapped.s.info.BlocksHashed = int(size), true
	}
	if !ok || size != d.size || d.size == 0 {
		d.mapped.s.notes.Count("records whose block hashes were left out, since their block size is missing or " +
			"another than before")
		return
	}
	want := blocksOf(*e.InputTokens, int(size))
	if len(hashes) != want && len(hashes) != int(*e.InputTokens/size) {
		d.mapped.s.notes.Count("records whose block hashes were left out, since they are not one for each block of " +
			"the input")
		return
	}
	blocks := make([]uint64, 0, want)
	chain := uint64(0)
	for _, h := range hashes {
		chain = chained(chain, "h"+row.Plain(h))
		blocks = append(blocks, chain)
	}
	if len(blocks) < want {
		line, _ := r.Place("")
		blocks = append(blocks, chained(chain, "tail"+string(row.Integer(line))))
	}
	e.SourceBlocks = blocks
}

// chained is the id of a block after the block before it.
func chained(before uint64, block string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(append(binary.BigEndian.AppendUint64(nil, before), block...))
	return h.Sum64()
}
