package datasets

var (
	wildChat = dialogueKind{id: "conversation_hash", timed: true}
	lmsys    = dialogueKind{id: "conversation_id"}
)

func hasWildChat(has func(string) bool) bool { return has("conversation_hash") && has("conversation") }

func hasLMSYS(has func(string) bool) bool {
	return has("conversation_id") && has("conversation") && has("model") && !has("conversation_hash")
}

// wildChatFormat reads WildChat (ICLR'24; allenai/WildChat-1M), as Parquet or
// as lines of JSON. Each reply becomes an entry, as in ShareGPT. Of a message
// only role, content and timestamp are read, never address, place and header.
//
// The release has times with the replies alone, the instants at which the
// server had received them whole, so that an arrival is late by the time to
// answer; a note says so. A conversation_hash names a content, not a
// conversation, and repeats: a session is known by its row and its hash.
func wildChatFormat() Format {
	return Format{
		Name:    "wildchat",
		reads:   wildChat.reads(),
		About:   "WildChat conversations: Parquet or JSON lines, with a time for each reply",
		Example: `{"conversation_hash":"c0","model":"gpt-4-0314","timestamp":"2023-04-09T00:02:53Z","turn":1,"conversation":[{"role":"user","content":"Hello","timestamp":null},{"role":"assistant","content":"Hi!","timestamp":"2023-04-09T00:02:53Z"}]}`,
		timed:   true,
		detect:  detectKeys(hasWildChat),
		open:    wildChat.openLines,
	}
}

// lmsysFormat reads LMSYS-Chat-1M (ICLR'24; lmsys/lmsys-chat-1m), as Parquet or
// as lines of JSON. It has no times. Names that were redacted stand in the
// text as NAME_1, NAME_2…, which changes its length in tokens a little.
func lmsysFormat() Format {
	return Format{
		Name:    "lmsys",
		reads:   lmsys.reads(),
		About:   "LMSYS-Chat conversations: Parquet or JSON lines, without times",
		Example: `{"conversation_id":"c0","model":"vicuna-13b","conversation":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi!"}],"turn":1,"language":"English","redacted":false}`,
		detect:  detectKeys(hasLMSYS),
		open:    lmsys.openLines,
	}
}
