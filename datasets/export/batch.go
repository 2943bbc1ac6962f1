package export

import (
	"errors"
	"fmt"
	"strconv"

	"reprise/trace"
)

// What OpenAI takes in one batch file.
const (
	batchRequests = 50_000
	batchBytes    = 200_000_000
)

var errNoModel = errors.New("names no model: give one with --model")

// openAIBatchFormat writes the requests of an OpenAI batch: chats, or text
// completions and embeddings where the row is of that kind. max_tokens is the
// length of the row's output.
func openAIBatchFormat() Format {
	return Format{
		Name: "openai-batch",
		About: "JSON lines of requests for OpenAI's Batch API, or vllm run-batch: prompts and output " +
			"lengths, no times",
		Example: `{"custom_id": "request-0", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "model-0", "messages": [{"role": "user", "content": "some words"}], "max_tokens": 21}}`,
		Loses: []string{
			"arrivals: a batch is processed in any order", "sessions, parents and think times",
			"block ids, except as shared text in the prompts",
			"the lengths of outputs that stop early: max_tokens is a limit",
			"exact input lengths: the server's chat template adds tokens",
			"all columns but lengths, model, kind and temperature",
		},
		Use:          "vllm run-batch -i FILE -o results.jsonl --model MODEL",
		NeedsPrompts: true,
		says:         []string{"model", "kind", "temperature", "max_tokens", "blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			e := &batchEncoder{model: o.Model, losses: l, prompts: newPrompts(o.Prompter, l)}
			l.addSentence(func() string {
				n := e.rows[0] + e.rows[1] + e.rows[2]
				if n <= batchRequests && e.bytes <= batchBytes {
					return ""
				}
				return fmt.Sprintf("OpenAI takes %d requests and %d MB in a file; this one has %d and %d MB",
					batchRequests, batchBytes/1_000_000, n, e.bytes/1_000_000)
			})
			l.addSentence(func() string {
				if max(e.rows[0], e.rows[1], e.rows[2]) == e.rows[0]+e.rows[1]+e.rows[2] {
					return "" // all have one kind
				}
				return fmt.Sprintf("OpenAI takes one endpoint in a file; this one has %d chats, %d completions and "+
					"%d embeddings", e.rows[0], e.rows[1], e.rows[2])
			})
			return e.encode, nil
		},
	}
}

type batchEncoder struct {
	model   string
	losses  *losses
	prompts *prompts
	bytes   int64
	rows    [3]int64 // by endpoint
}

// batchEndpoints are those of the kinds; the prompt of a row stands between
// open and close.
var batchEndpoints = [3]struct{ url, open, close string }{
	{"/v1/chat/completions", `, "messages": [{"role": "user", "content": `, `}]`},
	{"/v1/completions", `, "prompt": `, ""},
	{"/v1/embeddings", `, "input": `, ""},
}

func (e *batchEncoder) encode(b []byte, row int64, r *trace.Request) ([]byte, error) {
	kind := e.kind(r)
	to := batchEndpoints[kind]
	b = append(b, `{"custom_id": "request-`...)
	b = strconv.AppendInt(b, row, 10)
	b = append(b, `", "method": "POST", "url": "`...)
	b = append(b, to.url...)
	b = append(b, `", "body": {"model": `...)
	model := r.Model
	if e.model != "" {
		e.losses.count("%d of %d rows are of another model than the one named", model != "" && model != e.model)
		model = e.model
	}
	if model == "" {
		return b, errNoModel
	}
	b = appendText(b, model)
	b = append(b, to.open...)
	b, err := e.prompts.append(b, r)
	if err != nil {
		return b, err
	}
	b = append(b, to.close...)
	if kind < 2 {
		if r.OutputTokens != nil {
			n := e.prompts.output(r)
			e.losses.count("%d of %d rows asked for another max_tokens than the length of their output, which "+
				"stands there",
				r.MaxTokens != nil && int64(*r.MaxTokens) != n)
			b = append(b, `, "max_tokens": `...)
			b = strconv.AppendInt(b, n, 10)
		} else if r.MaxTokens != nil {
			b = append(b, `, "max_tokens": `...)
			b = strconv.AppendInt(b, int64(*r.MaxTokens), 10)
		}
		if r.Temperature != nil {
			b = append(b, `, "temperature": `...)
			b = strconv.AppendFloat(b, float64(*r.Temperature), 'g', -1, 32)
		}
	}
	b = append(b, "}}\n"...)
	e.bytes += int64(len(b))
	e.rows[kind]++
	return b, nil
}

// kind returns the index of the endpoint of a row.
func (e *batchEncoder) kind(r *trace.Request) int {
	switch r.Kind {
	case "completion":
		return 1
	case "embedding":
		return 2
	}
	e.losses.count("%d of %d rows are of a kind that has no place in a batch, and are written as chats",
		r.Kind != "" && r.Kind != "chat")
	return 0
}
