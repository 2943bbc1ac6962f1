package shard

import (
	"encoding/json"
	"io"

	"reprise/trace"
	"reprise/trace/recording"
)

// A Row is one request of a shard: what a recorder keeps of one, and what only a whole log
// tells. Of the recorded Request, Parents are positions among the rows of its own file, from 0, and
// Category is what the prompt begins with, keyed, where it has no blocks.
type Row struct {
	trace.Row `parquet:"-"`

	// Recorded is a field of its own: the Parquet library makes absent values of an embedded
	// struct zeros.
	Recorded recording.Row `parquet:"recorded"`

	Messages int32 `parquet:"messages"` // of the text
	ByHash   bool  `parquet:"by_hash"`  // some messages are known by their length and hash

	// File is the index of the file among all of the source. A [Reader] sets it.
	File int `parquet:"-"`
}

// Write writes a shard to a path, where it appears whole, for its owner alone, or not at all:
// rows writes the rows, and returns what the file says of itself.
func Write(path string, rows func(trace.Writer[Row]) (Meta, error)) error {
	return trace.WriteFile(path, 0o600, func(out io.Writer) error {
		w := trace.NewRowsWriter(out, func(r *Row) int64 {
			return 1000 + 8*int64(len(r.Recorded.Request.Blocks)+len(r.Recorded.Request.OutputBlocks))
		})
		m, err := rows(w)
		if err != nil {
			return err
		}
		m.Schema = Schema
		prompts := m.Prompts
		m.Prompts = nil // they may be long, and have a place of their own
		all, err := json.Marshal(m)
		if err != nil {
			return err
		}
		for _, p := range [][2]string{{"reprise.schema", Schema}, {metaKey, string(all)}, {promptsKey, string(prompts)},
			{"reprise.tier", "internal"}} {
			if p[1] != "" {
				w.SetMetadata(p[0], p[1])
			}
		}
		return w.Close()
	})
}
