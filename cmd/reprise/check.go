package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/check"
	"reprise/trace"
	"reprise/trace/token"
)

// checkFlags are the flags of check.
type checkFlags struct {
	target  flags.Target
	prompts flags.Prompts
}

// checkTimeout is how long one request may take unless --timeout says so. Somebody waits for the
// answer, so it is less than that of a replay.
const checkTimeout = 2 * time.Minute

// targetsOfCheck are the flags of replay that say how an endpoint is reached.
var targetsOfCheck = []string{"url", "api", "model", "timeout", "connect-timeout", "http2", "proxy", "tls-ca",
	"tls-cert", "tls-key", "tls-server-name", "tls-insecure",
	"header", "header-env", "header-file", "api-key-env", "api-key-file", "extra-body"}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask a server what a replay can measure at it",
		Long: `Check asks a server which APIs it has, its models, engine and version, whether a key is
needed, whether usage and cached tokens are reported, its context, KV cache and block size,
whether prefix caching is on, what a chat template adds, and its round trip and clock. It
counts five short texts with --tokenizer and at the server, and says by how much they differ.

It sends some 15 requests and some 1,000 prompt tokens; a server that does not tell the parts
of its chat template otherwise is sent up to 20 prompts of 300 tokens more. The last line has
the numbers.

The exit code is 0 when a replay can measure the server, 3 when something is in its way, and
1 when the server cannot be used at all.`,
		Example: `  reprise check --url http://localhost:8000
  reprise check --url http://localhost:8000 --tokenizer o200k_base --json`,
		Args: flags.Wants(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd) },
	}
	fl := cmd.Flags()
	flags.Borrow(fl, f.target.Register, targetsOfCheck...)
	fl.Lookup("api").Usage = "send prompts to this API alone: completions, chat, responses, messages or embeddings. " +
		"By default to each that the server has"
	fl.Lookup("api").DefValue = ""
	f.target.Timeout = checkTimeout
	fl.Lookup("timeout").DefValue = checkTimeout.String()
	everyday, _ := flags.Sections(fl, flags.PromptFlags)
	everyday.StringVar(&f.prompts.Tokenizer, "tokenizer", "",
		"the server's tokenizer: a name, the path of a tokenizer.json, or a model in Hugging Face's cache; by "+
			"default o200k_base")
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	results.Bool("json", false, "print JSON")
	flags.Details(fl)
	return cmd
}

func (f *checkFlags) check(cmd *cobra.Command) error {
	if err := f.target.Check(); err != nil {
		return err
	}
	if len(f.target.URLs) > 1 {
		return cli.Usagef("check asks one server: give --url once")
	}
	maker, err := f.prompts.Maker(cmd, &trace.Trace{}, 1)
	if err != nil {
		return err
	}
	o, closing, err := runs.Checked(cmd, &f.target, maker.Tok)
	if err != nil {
		return err
	}
	defer closing()
	if f.target.APIGiven() {
		o.API = f.target.API
	}
	o.OfModel = func(names ...string) (*token.Encoding, bool) {
		maker.TakeModels(cmd, names...)
		return maker.Tok, maker.Guessed
	}
	report, err := runs.Check(cmd, &f.target, o)
	if err != nil {
		return err
	}
	err = cli.Finding{Text: report.WriteText, JSON: report, Rest: "Every text of the tokenizer: --details."}.Write(cmd)
	if err == nil && report.Problems() > 0 {
		var which []string
		for _, finding := range report.Findings {
			if finding.Level == check.Problem && !slices.Contains(which, finding.Check) {
				which = append(which, finding.Check)
			}
		}
		err = cli.Exit(cli.Check, fmt.Errorf("the server is not ready for a replay: %s", strings.Join(which, ", ")))
	}
	return err
}
