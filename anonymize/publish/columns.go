package publish

import (
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"reprise/anonymize"
	"reprise/trace"
)

// A column is one of the file.
type column struct {
	name, about string
	kind        string // as people call it, such as int64
	schemaOrg   string // as Croissant calls it
	list        bool
	optional    bool
	rule        string // what the release did with it, by its privacy card; empty without one
	dropped     bool   // it is null in every row
}

// columnWords say what the columns are.
var columnWords = map[string]string{
	"arrival_ns":       "arrival, nanoseconds since the begin of the trace",
	"session":          "session, numbered from 0 in order of appearance",
	"turn":             "turn within the thread, or the session, from 0",
	"parents":          "numbers of the rows that were done before this one was sent",
	"think_ns":         "human time from the completion of the last parent, nanoseconds",
	"tool_ns":          "tool time from the completion of the last parent, nanoseconds",
	"user":             "pseudonymous user, numbered from 0",
	"model":            "model, by a label",
	"adapter":          "adapter such as LoRA, by a label",
	"kind":             "chat, completion, embedding or responses",
	"class":            "priority class, by a label",
	"replica":          "server that answered, by a label",
	"category":         "prefix reuse: cold, duplicate, continuation, template or branch",
	"input_tokens":     "length of the prompt, tokens",
	"output_tokens":    "length of the answer, tokens",
	"reasoning_tokens": "reasoning tokens in the answer",
	"cached_tokens":    "prompt tokens that the server had in its prefix cache",
	"image_tokens":     "image tokens in the prompt",
	"images":           "images in the prompt",
	"max_tokens":       "limit of the answer that was asked for, tokens",
	"temperature":      "temperature that was asked for",
	"stream":           "whether the answer was streamed",
	"blocks": "chained ids of the prompt's prefix blocks: requests with a common beginning have the same " +
		"first ids",
	"output_blocks": "the chain continued over the answer",
	"status":        "ok, failed, cancelled or other",
	"finish_reason": "why the answer ended",
	"ttft_ns":       "time to first token as recorded, nanoseconds",
	"e2e_ns":        "time to the last token as recorded, nanoseconds",
	"length_source": "what the lengths are of: usage or text",
	"reuse_source":  "what the blocks are made of: text, hashes or inferred",
	"thread":        "conversation within the session, 0 the root",
}

// columnsOf reads which columns a file has. card may be nil.
func columnsOf(r io.ReaderAt, size int64, card *anonymize.Card) (columns []column, err error) {
	f, err := trace.OpenParquet(r, size)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Root().Columns() {
		out := column{name: c.Name(), about: columnWords[c.Name()], optional: c.Optional()}
		if out.about == "" {
			return nil, fmt.Errorf("the column %q is none of a trace", c.Name())
		}
		if card != nil {
			out.dropped = slices.Contains(card.Dropped, out.name)
			for _, r := range card.Columns {
				if r.Column == out.name {
					out.rule = r.Rule
				}
			}
		}
		leaf := c
		for !leaf.Leaf() {
			out.list = true
			leaf = leaf.Columns()[0]
		}
		signed := true
		if logical := leaf.Type().LogicalType(); logical != nil {
			if of, ok := logical.Value.(*format.IntType); ok {
				signed = of.IsSigned
			}
		}
		switch kind := leaf.Type().Kind(); {
		case kind == parquet.Boolean:
			out.kind, out.schemaOrg = "bool", "sc:Boolean"
		case kind == parquet.Int32:
			out.kind, out.schemaOrg = "int32", "sc:Integer"
		case kind == parquet.Int64 && !signed:
			out.kind, out.schemaOrg = "uint64", "sc:Integer"
		case kind == parquet.Int64:
			out.kind, out.schemaOrg = "int64", "sc:Integer"
		case kind == parquet.Float, kind == parquet.Double:
			out.kind, out.schemaOrg = "float32", "sc:Float"
		default:
			out.kind, out.schemaOrg = "string", "sc:Text"
		}
		if out.list {
			out.kind = "list of " + out.kind
		}
		columns = append(columns, out)
	}
	return columns, nil
}
