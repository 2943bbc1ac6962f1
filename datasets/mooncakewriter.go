package datasets

import (
	"fmt"
	"strconv"

	"reprise/trace"
)

// mooncakeOutput is one line for each row, spelled as in the release.
func mooncakeOutput() Output {
	return Output{
		Name:    "mooncake",
		About:   "JSON lines of the Mooncake release: integer milliseconds, lengths, ids of prefix blocks",
		Example: `{"timestamp": 1500, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}`,
		Loses: []string{
			"times below the millisecond", "sessions, parents and think times", "all columns but arrival, lengths and blocks",
			"the block size, which readers take to be 512",
		},
		NeedsBlocks: true,
		says:        []string{"blocks"},
		open: func(o WriteOptions, l *losses) (encoder, error) {
			l.sum(func() string { return otherBlockSize(o.BlockSize) })
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				l.count(roundedToMS, r.ArrivalNS%1e6 != 0)
				return appendMooncake(b, r), wantBlocks(r, o.BlockSize, "Mooncake")
			}, nil
		},
	}
}

func otherBlockSize(size int) string {
	if size == mooncakeBlock || size == 0 {
		return ""
	}
	return fmt.Sprintf("readers of the format take a block to be %d tokens; here it is %d", mooncakeBlock, size)
}

func appendMooncake(b []byte, r *trace.Request) []byte {
	b = append(b, `{"timestamp": `...)
	b = strconv.AppendInt(b, milliseconds(r.ArrivalNS), 10)
	b = appendLengths(b, r)
	b = append(b, `, "hash_ids": `...)
	b = appendIDs(b, r.Blocks, ", ")
	return append(b, "}\n"...)
}

// appendLengths appends the lengths by their names in the Mooncake release,
// which most formats share, behind another member.
func appendLengths(b []byte, r *trace.Request) []byte {
	b = append(b, `, "input_length": `...)
	b = strconv.AppendInt(b, int64(r.InputTokens), 10)
	b = append(b, `, "output_length": `...)
	return strconv.AppendInt(b, int64(r.OutputTokens), 10)
}
