package replay

import "reprise/trace"

// A Verbatim is a [Prompter] that sends what the source sent, in place of prompts
// that are made.
type Verbatim interface {
	Prompter
	// Input appends the input of a row to buf, as members of the JSON body of a
	// request, and says for which API: [APIChat] or [APICompletions]. The id is that
	// of the row in the workload, or below 0 for what is none.
	Input(id int64, row *trace.Request, buf []byte) (api string, body []byte, err error)
}

// PromptsVerbatim is [Run].Prompts where they were those of the source.
const PromptsVerbatim = "verbatim"
