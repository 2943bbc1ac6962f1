package runs

import (
	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// verbatimExcludes are flags of prompts that are made, of rounds that must not
// repeat them, and of what the raw file decides.
var verbatimExcludes = []string{"api", "token-ids", "corpus", "verify", "check-deterministic", "thread", "cache"}

// checkVerbatim refuses flags that have no meaning for text that was kept.
func (f *Replay) checkVerbatim(cmd *cobra.Command) error {
	if f.verbatim == "" {
		return nil
	}
	for _, name := range verbatimExcludes {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is for prompts that are made, and has no meaning with --verbatim", name)
		}
	}
	switch {
	case f.Workload.Loop != "" && !f.Workload.LoopSame:
		return cli.Usagef("--verbatim sends the same text in every round: add --loop-same")
	case f.Workload.Start > 0 && f.Workload.Prime != flags.PrimeNone:
		return cli.Usagef("--verbatim cannot prime a cache: add --prime %s", flags.PrimeNone)
	}
	if f.Target.ExtraBody != "" {
		extra, err := openai.ParseExtra([]byte(f.Target.ExtraBody))
		if err != nil {
			return cli.Usagef("--extra-body: %v", err)
		}
		if _, ok := extra.Get("tools"); ok {
			return cli.Usagef("--extra-body: with --verbatim, tools are those of the source")
		}
	}
	f.Target.API = result.APIAuto // each row goes where its kind does
	return nil
}

// openRaw opens the raw file, and checks that it belongs to the workload. It is nil
// where prompts are made.
func (f *Replay) openRaw(w *trace.Trace) (*anonymize.RawText, error) {
	if f.verbatim == "" {
		return nil, nil
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
	raw *anonymize.RawText
}

// Input implements [result.Verbatim].
func (p *verbatimPrompter) Input(id int64, row *trace.Request, buf []byte) (string, []byte, error) {
	chat, body, err := p.raw.AppendInput(id, row.Kind, buf)
	if chat {
		return result.APIChat, body, err
	}
	return result.APICompletions, body, err
}
