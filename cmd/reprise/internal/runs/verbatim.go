package runs

import (
	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/result"
	"reprise/trace"
)

// verbatimExcludes are flags of prompts that are made, of rounds that must not
// repeat them.
var verbatimExcludes = []string{"token-ids", "corpus", "verify", "check-deterministic", "thread"}

// HasText tells whether the source's own text is sent.
func (f *Replay) HasText() bool { return f.verbatim != "" }

// SendText sends the text of a raw file. Where it is open already, its name may be gone.
func (f *Replay) SendText(name string, raw *anonymize.RawText) { f.verbatim, f.raw = name, raw }

// openRaw opens the raw file, and checks that it belongs to the workload. It is nil
// where prompts are made.
func (f *Replay) openRaw(w *trace.Trace) (*anonymize.RawText, error) {
	if f.verbatim == "" || f.raw != nil {
		return f.raw, nil
	}
	raw, err := anonymize.OpenRaw(f.verbatim, w.Meta)
	if err != nil {
		return nil, cli.Usagef("--verbatim: %v", err)
	}
	return raw, nil
}

// A verbatimPrompter implements [result.Verbatim].
type verbatimPrompter struct {
	flags.RowPrompter
	raw  *anonymize.RawText
	chat bool // a prompt of a completion is sent as a message
}

// Input implements [result.Verbatim].
func (p *verbatimPrompter) Input(id int64, row *trace.Request,
	buf []byte) (api string, body, fields []byte, err error) {
	kind := row.Kind
	if p.chat {
		kind = "chat"
	}
	chat, body, fields, err := p.raw.AppendInput(id, kind, buf)
	if chat {
		return result.APIChat, body, fields, err
	}
	return result.APICompletions, body, fields, err
}
