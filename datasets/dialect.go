package datasets

import (
	"bufio"
	"cmp"
	"maps"
	"slices"
	"time"
)

// The values of Options.Rows.
const (
	rowsFull  = "full"  // a row is the whole context of its request
	rowsDelta = "delta" // a row is what is new since the turn before
)

var dynamoFields = Mapping{
	"time":          {"timestamp", "created_time"},
	"input_tokens":  {"input_length", "input_tokens"},
	"output_tokens": {"output_length", "output_tokens"},
	"blocks":        {"hash_ids"},
	"class":         {"priority"},
}

var aiperfFields = Mapping{
	"time":          {"timestamp"},
	"messages":      {"messages", "payload.messages"},
	"tools":         {"tools", "payload.tools", "payload.functions"},
	"prompt":        {"text_input", "payload.prompt"},
	"input_tokens":  {"input_length"},
	"output_tokens": {"output_length"},
	"model":         {"payload.model"},
	"max_tokens":    {"payload.max_completion_tokens", "payload.max_tokens"},
	"temperature":   {"payload.temperature"},
	"stream":        {"payload.stream"},
}

// agenticFields are those of the agentic rows of Dynamo.
var agenticFields = []string{"wait_for", "branches", "tool_wait_ms", "prefix_reset"}

// dialectReads is what is read of both formats beside their mappings.
var dialectReads = []SourceField{
	fieldAt("session_id", "session turn parents", ""),
	fieldAt("request_id", "parents", ""),
	fieldAt("wait_for", "parents", ""),
	fieldAt("delay|delay_ms", "think_ns arrival_ns", ""),
	fieldAt("tool_wait_ms", "tool_ns arrival_ns", ""),
	fieldAt("context_mode|message_mode|prefix_reset|branches", "", decides),
	fieldAt("output_token_ids|group_id|is_restart|type", "", passed),
}

// dynamoFormat reads the dialects of Mooncake's rows that add sessions, as
// NVIDIA's Dynamo and AIPerf write and replay them: JSON lines with lengths, ids
// of prefix blocks (which AIPerf may leave out), and milliseconds that may have
// a fraction.
//
//   - Rows of a session_id are its turns, in their order; each has the one
//     before it as its parent. A row without one is a request by itself.
//   - A first turn has a time. A later one has a time, or a delay after the end
//     of the turn before, or neither, which is a delay of 0. The delay is the
//     think time. Since no row tells how long its request took, a turn without
//     a time is given the earliest that is possible, the arrival of the turn
//     before and the delay; how many these are is noted.
//   - A source in which no row has a time has none: see [Timed], which keeps the
//     delays.
//   - Agentic rows name the requests that they wait for, which become their
//     parents, and a tool time beside the delay.
//
// Dynamo's rows hold the whole context of a request. Those that AIPerf makes up
// for coding agents have the same names and hold only what is new in each turn.
// Where the difference shows, it is asked for and never guessed: see [Options] Rows.
func dynamoFormat() Format {
	return Format{
		Name:    "dynamo",
		reads:   append(mappedFields(dynamoFields, nil), dialectReads...),
		About:   "Mooncake rows with sessions and delays, as Dynamo and AIPerf have them",
		Example: `{"session_id":"s1","timestamp":12.5,"input_length":1150,"output_length":500,"hash_ids":[0,1,2],"delay":0}`,
		timed:   true, sized: true, rows: true,
		detect: detectRow(isDynamo),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openLengths(in, head, o, s)
		},
	}
}

// aiperfFormat reads AIPerf's mooncake_trace rows that carry text: text_input,
// messages or a whole payload, with the sessions and times of dynamoFormat, and
// its rows of lengths as that does. Messages are the whole conversation unless
// message_mode says delta; texts of one session are asked for like lengths.
func aiperfFormat() Format {
	return Format{
		Name:    "aiperf",
		reads:   slices.Concat(mappedFields(aiperfFields, nil), mappedFields(dynamoFields, nil), dialectReads),
		About:   "AIPerf mooncake_trace rows with text: text_input, messages or payload",
		Example: `{"timestamp":0,"text_input":"Hello","output_length":40}`,
		timed:   true, sized: true, rows: true,
		detect: detectRow(isAIPerf),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			if !detectRow(func(keys []string) bool { return anyOf(keys, "text_input", "messages", "payload") })(head) {
				return openLengths(in, head, o, s)
			}
			if o.BlockSize != 0 {
				return nil, errNoBlocks
			}
			return openDialect(in, head, aiperfFields, o, s)
		},
	}
}

// detectRow makes a detector of JSON lines by all the keys of a row: the first
// rows are tried in turn.
func detectRow(match func(keys []string) bool) func(head []byte) bool {
	return func(head []byte) bool {
		lines := headLines(head)
		return slices.ContainsFunc(lines[:min(len(lines), 10)], func(line []byte) bool { return match(objectKeys(line)) })
	}
}

// anyOf reports whether one of some keys is among those of a row.
func anyOf(keys []string, some ...string) bool {
	return slices.ContainsFunc(some, func(key string) bool { return slices.Contains(keys, key) })
}

// isDynamo tells rows of lengths that have a field of the dialects, or no ids,
// from those of the release.
func isDynamo(keys []string) bool {
	lengths := anyOf(keys, "input_length") || anyOf(keys, "input_tokens") && anyOf(keys, "hash_ids")
	dialect := anyOf(keys, "session_id", "delay", "delay_ms", "created_time", "priority", "input_tokens", "output_tokens",
		"output_token_ids", "group_id") || anyOf(keys, agenticFields...)
	plain := !anyOf(keys, "hash_ids") && anyOf(keys, "output_length") && anyOf(keys, "timestamp")
	return lengths && (dialect || plain) && !anyOf(keys, "chat_id", "parent_chat_id", "text_input", "messages", "payload")
}

// isAIPerf tells rows of text from the logs of gateways, which have messages and
// payloads as well, by fields that only AIPerf has, or by a payload among no
// others.
func isAIPerf(keys []string) bool {
	others := slices.ContainsFunc(keys, func(key string) bool {
		return !slices.Contains([]string{"payload", "timestamp", "delay", "session_id", "output_length", "extra", "type"}, key)
	})
	return anyOf(keys, "text_input") || anyOf(keys, "payload") && !others ||
		anyOf(keys, "messages") && anyOf(keys, "output_length", "message_mode", "delay")
}

var errNoBlocks = usage("the rows have no block ids that --source-block-size could apply to")

// openLengths opens rows of lengths, of which some may have no block ids.
func openLengths(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	m := maps.Clone(dynamoFields)
	if !detectRow(func(keys []string) bool { return anyOf(keys, "hash_ids") })(head) {
		delete(m, "blocks")
		if o.BlockSize != 0 {
			return nil, errNoBlocks
		}
	}
	d, err := openDialect(in, head, m, o, s)
	if err != nil {
		return nil, err
	}
	for i := range d.fields {
		name := d.fields[i].name
		d.fields[i].required = name == "input_tokens" || name == "output_tokens"
	}
	if m["blocks"] != nil {
		d.setBlockSize(cmp.Or(o.BlockSize, MooncakeBlock))
	}
	return d, nil
}

func openDialect(in *bufio.Reader, head []byte, m Mapping, o Options, s *Source) (*dialectDecoder, error) {
	mapped, err := openJSONL(in, head, m, o, s)
	if err != nil {
		return nil, err
	}
	if mapped.clock.told == 0 {
		mapped.clock.told = time.Millisecond // also with a fraction
	}
	mapped.fields = append(mapped.fields,
		field{target: target{name: "delay", set: durationTo(time.Millisecond, func(b *builder) **time.Duration { return &b.e.Think })}, paths: []string{"delay", "delay_ms"}},
		field{target: target{name: "tool_wait_ms", set: durationTo(time.Millisecond, func(b *builder) **time.Duration { return &b.e.Tool })}, paths: []string{"tool_wait_ms"}})
	mapped.notices = []notice{{"output_token_ids", "records with the tokens of their outputs, which are not read"}}
	d := &dialectDecoder{rows: o.Rows, sessions: map[string]*turnState{}, requests: map[string]served{}}
	d.steppedDecoder = steppedDecoder{mappedDecoder: mapped, step: d, gives: true}
	return d, nil
}
