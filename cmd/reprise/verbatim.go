package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// verbatimFlags say whether the text of the source is sent.
type verbatimFlags struct {
	verbatim string
	raw      *anonymize.RawText // once it is open
}

func (f *verbatimFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.verbatim, "verbatim", "", "raw `file` of the trace (import --tier raw) whose text to send, in place of prompts that are made: chats as chats, completions as completions")
}

// verbatimExcludes are flags of prompts that are made, of rounds that must not
// repeat them, and of what the raw file decides.
var verbatimExcludes = []string{"api", "token-ids", "corpus", "verify", "check-deterministic", "thread", "cache"}

// checkVerbatim refuses flags that have no meaning for text that was kept.
func (f *replayFlags) checkVerbatim(cmd *cobra.Command) error {
	if f.verbatim == "" {
		return nil
	}
	for _, name := range verbatimExcludes {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is for prompts that are made, and has no meaning with --verbatim", name)
		}
	}
	switch {
	case f.loop != "" && !f.loopSame:
		return cli.Usagef("--verbatim sends the same text in every round: add --loop-same")
	case f.start > 0 && f.prime != primeNone:
		return cli.Usagef("--verbatim cannot prime a cache: add --prime %s", primeNone)
	}
	if f.ExtraBody != "" {
		extra, err := openai.ParseExtra([]byte(f.ExtraBody))
		if err != nil {
			return cli.Usagef("--extra-body: %v", err)
		}
		if _, ok := extra.Get("tools"); ok {
			return cli.Usagef("--extra-body: with --verbatim, tools are those of the source")
		}
	}
	f.API = result.APIAuto // each row goes where its kind does
	return nil
}

// openRaw opens the raw file and checks that it belongs to the workload.
func (f *verbatimFlags) openRaw(w *trace.Trace) (err error) {
	if f.verbatim == "" {
		return nil
	}
	if f.raw, err = anonymize.OpenRaw(f.verbatim, w.Meta); err != nil {
		return cli.Usagef("--verbatim: %v", err)
	}
	return nil
}

// closeRaw drops the text.
func (f *verbatimFlags) closeRaw() {
	if f.raw != nil {
		f.raw.Close()
	}
}

// describeRaw notes in the results that the text was that of the source.
func (f *verbatimFlags) describeRaw(run *result.Run) {
	if f.raw != nil {
		run.Prompts, run.Verbatim, run.PromptText = result.PromptsVerbatim, f.raw.Digest(), ""
	}
}

// sends are the prompts that are made, or the text that was kept.
func (f *verbatimFlags) sends(p flags.RowPrompter) result.Prompter {
	if f.raw == nil {
		return p
	}
	return &verbatimPrompter{RowPrompter: p, raw: f.raw}
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

// rawName is the name of the raw file beside a trace.
func rawName(path string) string { return strings.TrimSuffix(path, ".parquet") + ".raw.parquet" }

// A rawOutput is a raw file in the making; nil where no text is kept.
type rawOutput struct{ file *trace.File }

// keepRaw has an import keep the text, where the flags ask for it: beside the trace,
// for the eyes of its owner alone.
func (f *importFlags) keepRaw(info datasets.Info, p *anonymize.Policy) (*rawOutput, error) {
	if f.tier.tier != anonymize.Raw {
		return nil, nil
	}
	switch at, err := os.Stat(f.out); {
	case f.out == "" || f.out == cli.Standard || err == nil && !at.Mode().IsRegular():
		return nil, cli.Usagef("--tier raw keeps text in a file beside the trace: give -o FILE.parquet, no pipe")
	case strings.HasSuffix(f.out, ".raw.parquet"):
		return nil, cli.Usagef("--tier raw: a name that ends in .raw.parquet is for text; give the trace another")
	case !info.HasText:
		return nil, cli.Usagef("--tier raw: %s has no text to keep", info.Format)
	}
	name := rawName(f.out)
	if at, err := os.Lstat(name); err == nil && !at.Mode().IsRegular() {
		return nil, cli.Usagef("--tier raw: %s is no regular file, and text goes nowhere else", name)
	}
	file, err := trace.CreateFile(name, 0o600)
	if err != nil {
		return nil, err
	}
	p.Raw = file
	return &rawOutput{file}, nil
}

// commit makes the file appear, once its trace has.
func (o *rawOutput) commit() error {
	if o == nil {
		return nil
	}
	return o.file.Commit()
}

func (o *rawOutput) abort() {
	if o != nil {
		o.file.Abort()
	}
}
