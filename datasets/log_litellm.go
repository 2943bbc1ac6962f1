package datasets

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/talk"
	tokenusage "reprise/trace/usage"
)

// litellmFields is where LiteLLM's two logs have what an entry needs, most of it
// after a [litellmView] has unpacked it. What they hold of keys, addresses and
// headers is not read.
var litellmFields = Mapping{
	"time":          {"startTime"},
	"input_tokens":  {"prompt_tokens"},
	"output_tokens": {"completion_tokens"},
	"total_tokens":  {"total_tokens"},
	"user":          {"end_user", "user", "metadata.user_api_key_user_id"},
	"session":       {"session_id", "trace_id"},
	"model":         {"model"},
	"kind":          {"kind"},
	"replica":       {"model_id", "api_base"},
	"max_tokens":    {"asked.max_completion_tokens", "asked.max_tokens"},
	"temperature":   {"asked.temperature"},
	"stream":        {"stream", "asked.stream"},
	"status":        {"status", "metadata.status"},
	"finish_reason": {"response.choices.0.finish_reason"},
	"ttft_ns":       {"ttft"},
	"e2e_ns":        {"e2e"},
	"blocks":        {"blocks"},
	"messages":      {"text.messages"},
	"tools":         {"asked.tools", "asked.functions"},
	"prompt":        {"text.prompt"},
	"output":        {"text.reply"},
	bodyAt:          {"asked", knownMembers},
}

// litellmUsage are the usage objects beside the counts that stand alone.
var litellmUsage = []string{"metadata.usage_object", "response.usage", "metadata.additional_usage_values"}

var litellmTimes = row.Latencies{Start: []string{"startTime"}, First: []string{"completionStartTime"},
	End: []string{"endTime"}}

// litellmMade is where a [litellmView] takes what it makes from, and litellmReads
// what it reads beside that.
var (
	litellmMade = map[string]string{
		"kind": "call_type", "asked": "proxy_server_request|model_parameters",
		"ttft": "completionStartTime", "e2e": "endTime",
		"text.messages": "messages|proxy_server_request.messages|proxy_server_request.input",
		"text.prompt":   "proxy_server_request.prompt",
		"text.reply":    "response.choices[].message|response.choices[].text",
		"blocks":        "metadata.prefix_block_hashes|metadata.spend_logs_metadata.prefix_block_hashes|metadata.requester_metadata.prefix_block_hashes",
	}
	litellmBodies = func() (paths []string) {
		for _, name := range bodyMembers {
			paths = append(paths, "proxy_server_request."+name, "model_parameters."+name)
		}
		return paths
	}()
	litellmReads = append(usageReads(litellmFields, litellmUsage),
		fieldAt("metadata.prefix_block_size|metadata.spend_logs_metadata.prefix_block_size|metadata.requester_metadata.prefix_block_size|"+
			"metadata.block_size|metadata.spend_logs_metadata.block_size|metadata.requester_metadata.block_size",
			"blocks", ""),
		fieldAt("metadata|response|proxy_server_request|model_parameters", "", packed),
		fieldAt("cache_hit", "", decides),
	)
)

// litellmSpendFormat reads LiteLLM's table of spend logs, exported as CSV by
// [LiteLLMQuery]. Its dates name no zone and are UTC. The rules:
//
//   - LiteLLM passes on the counts of the provider, for some calls Anthropic's: see
//     [usageReader].
//   - Calls that LiteLLM answered from its own cache reached no engine and are
//     left out; so are calls of other kinds than text.
//   - The prompt stands in proxy_server_request or, in older versions, in
//     messages, both {} unless store_prompts_in_spend_logs is set. Long texts are
//     cut there, and a cut or redacted text is not used.
//   - Ids of prefix blocks, when a callback logged prefix_block_hashes and
//     prefix_block_size to the metadata, are used rather than the text: they are
//     what the engine's cache saw.
//   - When completionStartTime is endTime the answer was not streamed, and the
//     time to first token is not known.
func litellmSpendFormat() Format {
	return Format{
		reads:  append(mappedFields(litellmFields, litellmMade), litellmReads...),
		dated:  true,
		csv:    true,
		labels: true,
		bodies: litellmBodies,
		detect: sniff.Columns("call_type", "startTime", "prompt_tokens"),
		open:   rowsOpener(openLiteLLM).csv,
	}.described("litellm-spend")
}

// litellmLogFormat reads LiteLLM's StandardLoggingPayload, which its logging
// callbacks write: one object a line, or one or more in a file of their own.
func litellmLogFormat() Format {
	return Format{
		reads:  append(mappedFields(litellmFields, litellmMade), litellmReads...),
		dated:  true,
		labels: true,
		bodies: litellmBodies,
		detect: sniff.Objects(func(has func(string) bool) bool { return has("call_type") && has("startTime") }),
		open:   rowsOpener(openLiteLLM).json,
	}.described("litellm-log")
}

// LiteLLMQuery returns the psql command that exports the last day of LiteLLM's
// spend logs for the format litellm-spend, in lines of at most 78 characters. It
// leaves out keys, addresses and headers.
func LiteLLMQuery() string {
	metadata := []string{"status", "usage_object", "additional_usage_values", "spend_logs_metadata",
		"prefix_block_hashes", "prefix_block_size"}
	request := []string{"messages", "prompt", "input", "max_tokens", "max_completion_tokens", "temperature", "stream",
		"tools", "functions"}
	return `COPY (SELECT request_id, call_type, "startTime", "endTime",
  "completionStartTime", prompt_tokens, completion_tokens, total_tokens,
  model, model_id, api_base, end_user, "user", cache_hit, session_id,
  status, messages, response, ` + picked("metadata", metadata) + `,
  ` + picked("proxy_server_request", request) + `
  FROM "LiteLLM_SpendLogs"
  WHERE "startTime" >= now() AT TIME ZONE 'UTC' - interval '1 day'
  ORDER BY "startTime") TO STDOUT CSV HEADER \g spend.csv`
}

// picked is a column of JSON with some of its keys.
func picked(column string, keys []string) string {
	var parts []string
	for _, k := range keys {
		parts = append(parts, "'"+k+"', "+column+"->'"+k+"'")
	}
	return "jsonb_build_object(\n    " + strings.Join(parts, ",\n    ") + ") AS " + column
}

func openLiteLLM(all, first row.Reader, o Options, s *Source) (decoder, error) {
	_, strict := all.(*row.CSV)
	hashed := s.info.BlocksHashed // by a file before
	counts := newUsageReader(tokenusage.Relayed, litellmUsage, litellmFields, o)
	ahead, l := &litellmView{strict: strict, counts: counts, s: s}, &litellmView{strict: strict, counts: counts, s: s}
	d, err := newMappedDecoder(row.Views{In: all, Show: l.show, Tell: &s.notes},
		row.Views{In: first, Show: ahead.show, Tell: new(fault.Notes)},
		litellmFields.withUsage(), o, s)
	if err != nil {
		return nil, err
	}
	d.timing = withTimes
	l.blockSize, l.settled = ahead.blockSize, true
	d.setBlockSize(l.blockSize)
	s.info.BlocksHashed = s.info.BlocksHashed || hashed
	return d, nil
}

// A litellmView shows the records of either log.
type litellmView struct {
	strict    bool // JSON in strings must be JSON: columns of a database
	blockSize int  // of the source's ids
	settled   bool // the block size is that of the first records, or there is none
	counts    *usageReader
	s         *Source
}

const (
	noteGatewayCache = "calls that the gateway answered from its own cache were left out, since no engine saw them"
	noteOtherCalls   = "calls of other kinds than chat, completion, responses and embedding were left out"
	noteUnknownCalls = "calls of type %s were taken as generations, since they have output tokens"
	noteNoPrefix     = "records with neither a whole prompt nor ids of prefix blocks, so that their prefix reuse is " +
		"not known: " +
		"set general_settings.store_prompts_in_spend_logs and a large MAX_STRING_LENGTH_PROMPT_IN_DB, or log " +
		"prefix_block_hashes and prefix_block_size as spend_logs_metadata"
	noteCutText = "prompts or answers that LiteLLM cut or redacted: only their lengths were read"
)

func (l *litellmView) show(r row.Row, tell *fault.Notes) (row.Row, error) {
	if hit, _ := r.Value("cache_hit"); hit == true || strings.EqualFold(row.Plain(hit), "true") {
		tell.Count(noteGatewayCache)
		return nil, nil
	}
	call, _ := r.Value("call_type")
	kind, known := litellmKind(row.Plain(call))
	if !known && !isGeneration(r, row.Plain(call)) {
		tell.Count(noteOtherCalls)
		return nil, nil
	}
	v := row.NewView(r)
	if v.Made["kind"] = kind; !known {
		tell.CountNamed(noteUnknownCalls, row.Plain(call))
	}
	for _, name := range []string{"metadata", "messages", "response", "proxy_server_request", "model_parameters"} {
		if !v.Unpack(name) && l.strict {
			return nil, row.BadAt(r, name, name+": want JSON")
		}
	}
	if err := l.counts.show(v, tell); err != nil {
		return nil, err
	}
	v.PutLatencies(litellmTimes, 0, tell)
	l.setText(v, tell)
	if err := l.setBlocks(v, tell); err != nil {
		return nil, err
	}
	return v, nil
}

// litellmKinds are the kinds of LiteLLM's call types that generate text, without what
// [litellmKind] takes off them.
var litellmKinds = map[string]string{
	"": "chat", "completion": "chat", "anthropic_messages": "chat", "generate_content": "chat",
	"text_completion": "completion", "responses": "responses", "embedding": "embedding",
}

// litellmKind is the kind of a call type: LiteLLM puts an "a" before those of asynchronous
// calls, and "_stream" after those of some streams.
func litellmKind(call string) (kind string, known bool) {
	call = strings.TrimSuffix(call, "_stream")
	if kind, known = litellmKinds[call]; !known {
		kind, known = litellmKinds[strings.TrimPrefix(call, "a")]
	}
	if !known {
		kind = "chat"
	}
	return kind, known
}

// noGeneration are words in the call types of requests that generate no text, or that fetch
// what was generated before: their usage is that of another call.
var noGeneration = []string{
	"get_", "list", "delete", "retrieve", "cancel", "file", "batch", "vector_store", "container", "image", "video",
	"speech", "transcription",
	"moderation", "rerank", "ocr", "search", "count_tokens", "mcp",
}

// isGeneration tells a call of a type that is not known by its output tokens.
func isGeneration(r row.Row, call string) bool {
	if slices.ContainsFunc(noGeneration, func(word string) bool { return strings.Contains(call, word) }) {
		return false
	}
	found, _, _ := row.Find(r, []string{"completion_tokens", "metadata.usage_object.completion_tokens"})
	n, ok := countOf(row.Plain(found))
	return ok && n > 0
}

// setText makes "text" of what was stored of the prompt and the answer, and "asked"
// of the request's parameters.
func (l *litellmView) setText(v row.View, tell *fault.Notes) {
	asked, origin, _ := row.Find(v, []string{"proxy_server_request", "model_parameters"})
	if asked != nil {
		v.Put("asked", asked, origin)
	}
	// Where nothing is stored there is an empty object or list.
	var prompt any
	for _, origin = range []string{"messages", "proxy_server_request.messages", "proxy_server_request.prompt",
		"proxy_server_request.input"} {
		if prompt, _ = v.Value(origin); row.IsString(prompt) && prompt != "" || talk.AreMessages(prompt) {
			break
		}
		prompt = nil
	}
	reply, _, _ := row.Find(v, []string{"response.choices.0.message", "response.choices.0.text"})
	if incomplete(prompt) || incomplete(reply) {
		tell.Count(noteCutText)
	}
	text := map[string]any{}
	v.Made["text"] = text
	column, _, _ := strings.Cut(origin, ".")
	switch {
	case prompt == nil || incomplete(prompt):
	case row.IsString(prompt):
		text["prompt"], v.From["text.prompt"] = prompt, column
	default:
		text["messages"], v.From["text.messages"] = prompt, column
	}
	if reply != nil && !incomplete(reply) {
		text["reply"], v.From["text.reply"] = reply, "response"
	}
}

// incomplete reports whether LiteLLM cut or redacted any text in v: it puts
// words of its own in its place.
func incomplete(v any) bool {
	switch v := v.(type) {
	case string:
		return v == "redacted-by-litellm" || strings.Contains(v, "litellm_truncated") ||
			strings.Contains(v, "... (truncated ") && strings.HasSuffix(v, " chars)")
	case []any:
		return slices.ContainsFunc(v, incomplete)
	case map[string]any:
		for key, child := range v {
			if key == "litellm_truncated" || incomplete(child) {
				return true
			}
		}
	}
	return false
}

const (
	noteNoBlockSize = "records whose block ids were not used, since the first records do not tell the size of a " +
		"block: log prefix_block_size beside prefix_block_hashes"
	noteBlocksOver = "records with both text and block ids: the ids were used"
)

// setBlocks makes "blocks" of the ids that were logged with a call. They are
// numbers, negative ones included, or hexadecimal, cut to 64 bits. A
// source that hashes full blocks only gets an id of its own for the rest, which
// no other prompt shares.
func (l *litellmView) setBlocks(v row.View, tell *fault.Notes) error {
	var list []any
	var where string
	for _, where = range []string{"metadata", "metadata.spend_logs_metadata", "metadata.requester_metadata"} {
		found, _ := v.Value(where + ".prefix_block_hashes")
		if list, _ = found.([]any); list != nil {
			break
		}
	}
	if list == nil {
		if !row.HasAny(v, "text.messages", "text.prompt") {
			tell.Count(noteNoPrefix)
		}
		return nil
	}
	found, _, _ := row.Find(v, []string{where + ".prefix_block_size", where + ".block_size"})
	told, ok := countOf(row.Plain(found))
	size := int(told)
	if ok && size > 0 && l.blockSize == 0 && !l.settled {
		l.blockSize = size
	}
	if !ok || size == 0 || l.blockSize == 0 {
		tell.Count(noteNoBlockSize)
		return nil
	}
	if size != l.blockSize {
		return row.BadAt(v, where, "its blocks differ in size from the blocks of the records before it")
	}
	ids := make([]any, 0, len(list)+1)
	var last uint64
	for _, id := range list {
		n, ok := blockID(id)
		if !ok {
			return row.BadAt(v, where, "its block ids are neither whole numbers nor hexadecimal")
		}
		last = n
		ids = append(ids, row.Number(strconv.FormatUint(n, 10)))
	}
	length, _ := v.Value("tokens.input")
	if n, ok := countOf(row.Plain(length)); ok && int(n)/size == len(ids) && int(n)%size > 0 {
		// No other record has this one's number in the source.
		h := fnv.New64a()
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, last),
			uint64(l.s.info.Records+l.s.info.Bad)))
		ids = append(ids, row.Number(strconv.FormatUint(h.Sum64(), 10)))
		tell.Count(noteFullOnly)
	}
	v.Put("blocks", ids, "metadata")
	if row.HasAny(v, "text.messages", "text.prompt") {
		tell.Count(noteBlocksOver)
	}
	v.Made["text"] = nil
	return nil
}

func blockID(v any) (uint64, bool) {
	switch v := v.(type) {
	case row.Number:
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n, true
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		return uint64(n), err == nil
	case string:
		hex := strings.TrimPrefix(v, "0x")
		for _, c := range []byte(hex) {
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
				return 0, false
			}
		}
		n, err := strconv.ParseUint(hex[:min(len(hex), 16)], 16, 64)
		return n, err == nil
	}
	return 0, false
}
