package datasets

import (
	"bufio"
	"slices"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// chatsReads are the fields of the chats of [chatsFormat], beside those of ShareGPT.
var chatsReads = slices.Concat(shareGPTReads, []SourceField{
	fieldAt("messages|role|content|from|value|tool_calls|tool_results|human|assistant|user|gpt|bot|input|output|question|answer"+
		"|instruction|context|response|history", "input_tokens blocks output_tokens output_blocks", tokenised),
	fieldAt("conversation_id|conversation_idx|turn", "session turn parents", ""),
	fieldAt("prompt_tokens", "input_tokens", ""),
})

// chatsFormat reads data sets of whole chats, in which the answers stand among the messages, as
// models are trained with them and benchmarks replay them. Each answer is the output of one
// request, with all before it as its prompt; a chat is a session. The forms are those of
// [parseChat]; there are no times.
func chatsFormat() Format {
	return Format{
		reads:  wholeTexts(chatsReads),
		detect: isChats,
		open: func(in *bufio.Reader, head []byte, _ Options, s *Source) (decoder, error) {
			return newChatDecoder(in, head, s), nil
		},
	}.described("chats")
}

// requestKeys are of records that are requests themselves: their bodies, their times, what came
// back. A record of a data set of chats has none of them.
var requestKeys = wordsOf(
	`model_parameters request request_body req body params payload response response_body resp usage choices output completion
	timestamp time ts created created_at start_time startTime latency latency_ms duration_ms status status_code error custom_id attributes spans trace_id traceId
	max_tokens max_completion_tokens max_output_tokens max_new_tokens temperature top_p stream stop seed tool_choice response_format
	delay output_length output_tokens target_output_tokens completion_tokens sampling_params text_input`)

// isChats tells chats by the records that are whole: all of them are chats, and at least one has an
// answer or is a list of rounds.
func isChats(head *sniff.Sample) bool {
	answers := false
	for i, record := range head.Records() {
		value, whole := record.Value()
		if !whole && i > 0 {
			break
		}
		if fields, ok := value.(map[string]any); ok {
			// A question with its answer has keys that requests have as well.
			keys := record.Keys
			_, _, isInstruction := instructionOf(fields)
			if isInstruction {
				keys = without(keys, []string{"output", "response"})
			}
			asRequest := sniff.Any(keys, requestKeys...) &&
				!(row.IsString(fields["human"]) && row.IsString(fields["assistant"]))
			// which are ShareGPT's and others'
			sharded := fields["conversations"] != nil || fields["conversation"] != nil
			pair := isInstruction || fields["human"] != nil && fields["assistant"] != nil
			if asRequest || sharded || !pair && fields["messages"] == nil && fields["role"] == nil {
				return false
			}
		}
		chat, err := parseChat(value, record.Raw)
		if err != nil {
			return false
		}
		messages, _, err := joinTurns(chat.all())
		if err != nil {
			return false
		}
		ends := len(messages) > 0 && messages[len(messages)-1].Role == trace.Assistant
		answers = answers || ends || chat.row || chat.asks != nil
	}
	return answers
}
