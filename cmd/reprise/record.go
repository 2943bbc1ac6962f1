package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets/record"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/recording"
	"reprise/trace/token"
	"reprise/trace/usage"
)

// recordFlags are the flags of record.
type recordFlags struct {
	listen         string
	cert, key      string
	upstreams      []string
	toward         flags.TLS
	out            string
	share          float64
	sessionHeaders []string
	tokenizer      string
	template       string
	blockSize      int
	keepModel      bool
	keyFile        string
	rotate         time.Duration
	memory         int
	workers        int
	drain          time.Duration
	admin          string
	adminTokenEnv  string
	shadow         shadowFlags
}

func recordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record --upstream URL -o FOLDER",
		Short: "Record live traffic through a proxy, without its text",
		Long: `Record is a reverse proxy in front of a serving engine. It forwards every request
unchanged and streams each answer back. Of each request it writes when it arrived and
how large it was: lengths, keyed ids of prefix blocks, session, TTFT, E2E and status.

It records POST requests to /chat/completions, /completions, /responses, /embeddings
and /v1/messages, below any path; everything else passes through. Prompts are in memory
alone, until they are tokenised, and credentials are never kept.

If recording fails, traffic goes on, and the requests that were not recorded are counted.
The session of a request comes from a header of session-header or from the body. Where
neither names one, merge infers sessions from shared prefixes. docs/record.md says more.

The folder fills with *.part.parquet files. After Ctrl-C or SIGTERM, record waits for the
requests in flight, up to drain. Then turn the parts into a trace:

  reprise merge --finish traces/ -o t.parquet`,
		Example: `  reprise record --listen :8080 --upstream http://engine:8000 -o traces/
  reprise record --listen :8080 --upstream http://a:8000 --upstream http://b:8000 -o traces/ --sample 10%`,
		Args: flags.Wants(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	proxy, proxyRest := flags.Sections(fl, "Proxy")
	rec, recRest := flags.Sections(fl, "Recording")
	text, textRest := flags.Sections(fl, "Text")
	privacy, privacyRest := flags.Sections(fl, flags.PrivacyFlags)
	general, _ := flags.Sections(fl, flags.ResultsFlags)
	proxy.StringVar(&f.listen, "listen", "127.0.0.1:8080",
		"`address` and port to listen on; :8080 listens on all interfaces")
	proxy.StringArrayVar(&f.upstreams, "upstream", nil,
		"`url` of an engine; repeatable: a request goes to the one with the fewest in flight")
	proxyRest.StringVar(&f.cert, "listen-cert", "", "")
	proxyRest.StringVar(&f.key, "listen-key", "", "")
	f.toward.Register(proxyRest)
	proxyRest.DurationVar(&f.drain, "drain", 30*time.Second, "")
	rec.StringVarP(&f.out, "output", "o", "", "`folder` for the parts; created if missing, readable by you alone")
	rec.ShareVar(&f.share, "sample", 1, "share of the sessions to record; all requests are forwarded")
	recRest.StringArrayVar(&f.sessionHeaders, "session-header", []string{"X-Session-Id", "Session-Id", "Session_id"}, "")
	recRest.DurationVar(&f.rotate, "rotate", 15*time.Minute, "")
	recRest.IntVar(&f.memory, "memory", 256,
		"MiB of text held in memory; beyond it requests are forwarded but not recorded")
	recRest.IntVar(&f.workers, "workers", max(1, runtime.GOMAXPROCS(0)/4), "")
	text.StringVar(&f.tokenizer, "tokenizer", "o200k_base", "tokenizer for text: "+strings.Join(token.Names(), ", ")+
		", or the path of a Hugging Face tokenizer.json")
	text.StringVar(&f.template, "template", "none",
		"chat template to count in lengths: "+strings.Join(token.TemplateNames(), ", ")+
			", or the path of a Jinja template, a tokenizer_config.json or a directory with either")
	textRest.IntVar(&f.blockSize, "block-size", 512, "tokens in a prefix block")
	privacy.BoolVar(&f.keepModel, "keep-model", false, "keep model names instead of replacing them by labels")
	privacyRest.StringVar(&f.keyFile, "key-file", "",
		"`file` with the key of the ids, made if missing, for recorders that are restarted or run side by side. It "+
			"keeps users and sessions linkable. By default each recording has a key of its own, in memory")
	running, _ := flags.Sections(fl, flags.RunningFlags)
	running.StringVar(&f.admin, "admin-listen", "",
		"`address` of a page with the profile so far, and of /metrics for Prometheus, such as 127.0.0.1:9090; it "+
			"wants a token")
	_, runningRest := flags.Sections(fl, flags.RunningFlags)
	runningRest.StringVar(&f.adminTokenEnv, "admin-token-env", "", "")
	shadow, _ := flags.Sections(fl, "Candidate server")
	shadow.StringVar(&f.shadow.url, "shadow", "",
		"`url` of a candidate that gets some of the requests too; its answers are timed and dropped, and compare "+
			"reads the results")
	shadow.ShareVar(&f.shadow.share, "shadow-share", 0.05, "share of the sessions that the candidate gets")
	shadow.StringVar(&f.shadow.keyEnv, "shadow-key-env", "",
		"environment `variable` with the candidate's API key; it gets no credentials of clients")
	general.Bool("json", false, "print the final counts as JSON")
	return cmd
}

// run records until the command's context ends.
func (f *recordFlags) run(cmd *cobra.Command) error {
	o, policy, err := f.options(cmd)
	if err != nil {
		return err
	}
	var key *anonymize.SharedKey // read before the process is confined
	if f.keyFile != "" {
		var created bool
		if key, created, err = anonymize.OpenKeyFile(f.keyFile); err != nil {
			return fmt.Errorf("--key-file %w", err)
		}
		if created {
			cli.Notef(cmd, "created the key file %s: keep it secret, and delete it when nothing more is to be joined",
				f.keyFile)
		}
	}
	var certificate *tls.Certificate
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("--set listen-cert and --set listen-key: %w", err)
		}
		certificate = &pair
	}
	if err := os.MkdirAll(f.out, 0o700); err != nil {
		return err
	}
	l, err := listenAt(f.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if _, ok := cmd.Context().Value(confinerKey{}).(confiner); ok { // not in tests, which run many in a process
		for _, m := range anonymize.ConfineRecorder(filepath.Join(f.out, "part")).Missing() {
			if !strings.HasPrefix(m, "network") {
				cli.Notef(cmd, "not confined: %s", m)
			}
		}
	}
	r := &recorder{begin: time.Now()}
	o.Begin = r.begin
	if err := r.start(cmd, f, o, policy, key); err != nil {
		return err
	}
	if err := f.serveAdmin(cmd.Context(), cmd, r); err != nil {
		return err
	}
	scheme := "http"
	if certificate != nil {
		scheme = "https"
	}
	cli.Notef(cmd, "recording %s://%s to %s, in front of %s; stop it with Ctrl-C", scheme, l.Addr(), f.out,
		strings.Join(f.upstreams, " and "))
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		cli.Notef(cmd, "it listens on all interfaces, so whoever reaches this machine reaches the engine: --listen "+
			"127.0.0.1:%d is for this machine alone", a.Port)
	}
	cutOff, serveErr := r.proxy.Serve(cmd.Context(), l, record.ServeOptions{Certificate: certificate, Drain: f.drain,
		Draining: func(inFlight int) {
			cli.Notef(cmd, "stopping: %s in flight, for %v at most", doc.Many(int64(inFlight), "request"), f.drain)
		}})
	if cutOff > 0 {
		cli.Notef(cmd, "%s cut off after --set drain=%v", doc.Many(int64(cutOff), "request"), f.drain)
	}
	r.proxy.Close()
	closeErr := r.writer.Close()
	if r.shadow != nil {
		closeErr = errors.Join(closeErr, r.shadow.finish(cmd, r.proxy.NotShadowed()))
	}
	if err := f.sayRecorded(cmd, r); err != nil {
		return err
	}
	if closeErr != nil {
		closeErr = fmt.Errorf("the last rows could not be written to %s: %w", f.out, closeErr)
	}
	return errors.Join(serveErr, closeErr)
}

// options checks the flags and makes of them how to forward and how to count.
func (f *recordFlags) options(cmd *cobra.Command) (record.Options, anonymize.Policy, error) {
	o := record.Options{Workers: f.workers, Memory: int64(f.memory) << 20, Share: f.share,
		SessionHeaders: f.sessionHeaders,
		Message:        func(text string) { cli.Notef(cmd, "%s", text) }}
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: f.blockSize, KeepModel: f.keepModel}
	switch {
	case len(f.upstreams) == 0:
		return o, p, cli.Usagef("say where requests go: --upstream http://HOST:PORT")
	case f.out == "" || f.out == cli.Standard:
		return o, p, cli.Usagef("say where the parts go: -o FOLDER")
	case (f.cert == "") != (f.key == ""):
		return o, p, cli.Usagef("--set listen-cert and --set listen-key go together")
	case f.share <= 0 || f.share > 1:
		return o, p, cli.Usagef("--sample: want a share above 0 and at most 1, such as 10%%")
	case f.memory < 1 || f.workers < 1 || f.rotate < time.Second:
		return o, p, cli.Usagef("--memory and --set workers are at least 1, and --set rotate at least 1s")
	case f.blockSize < 1 || f.blockSize > 1<<16:
		return o, p, cli.Usagef("--block-size: want 1 to %d tokens", 1<<16)
	}
	if rel, err := filepath.Rel(f.out, f.keyFile); f.keyFile != "" && err == nil && filepath.IsLocal(rel) {
		return o, p, cli.Usagef("--key-file %s is inside -o %s: keep the key elsewhere, so that a reader of the "+
			"parts does not get it", f.keyFile, f.out)
	}
	if info, err := os.Stat(f.out); err == nil && !info.IsDir() {
		return o, p, cli.Usagef("-o %s is a file: name a folder", f.out)
	}
	for _, text := range f.upstreams {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return o, p, cli.Usagef("--upstream: want a URL such as http://engine:8000")
		}
		if u.User != nil {
			return o, p, cli.Usagef("--upstream: a URL with a password would be in the list of processes; clients " +
				"send their own credentials")
		}
		o.Upstreams = append(o.Upstreams, u)
	}
	err := f.toward.Check()
	if err != nil {
		return o, p, err
	}
	if o.TLS, err = f.toward.Config(); err != nil {
		return o, p, err
	}
	if p.Template, err = token.OpenTemplateAny(f.template); err != nil {
		return o, p, cli.Exit(cli.Usage, err)
	}
	if p.Tokenizer, err = token.OpenAny(f.tokenizer); err != nil {
		return o, p, cli.Exit(cli.Usage, err)
	}
	return o, p, nil
}

// A recorder is what runs.
type recorder struct {
	begin  time.Time
	shadow *shadowWriter // nil for none
	proxy  *record.Proxy
	writer *recording.Writer
}

// start makes the writer, and the proxy whose entries become rows in it.
func (r *recorder) start(cmd *cobra.Command, f *recordFlags, o record.Options, p anonymize.Policy,
	key *anonymize.SharedKey) error {
	meta := recording.Meta{CaptureID: randomID(), Begin: r.begin, BlockSize: p.BlockSize,
		Tokenizer: p.Tokenizer.Name(),
		Template:  p.Template.Name, KeepModel: p.KeepModel, Share: o.Share}
	settings := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%v\n", meta.Tokenizer, meta.Template,
		meta.BlockSize, meta.KeepModel))
	meta.Settings = "sha256:" + hex.EncodeToString(settings[:])
	if key != nil {
		meta.KeyID = key.ID()
	}
	rec, err := anonymize.NewRecording(p, key)
	if err != nil {
		return err
	}
	o.Draw = rec.Draw
	if r.writer, err = recording.NewWriter(f.out, meta, f.rotate, r.counts); err != nil {
		return err
	}
	r.writer.Breakers = rec.Breakers
	r.writer.Failing = func(err error) {
		if err == nil {
			cli.Notef(cmd, "recording works again")
			return
		}
		cli.Notef(cmd, "recording fails, traffic goes on: %s", cli.PlainError(err))
	}
	o.Sink = func() (func(*trace.Entry) error, error) {
		encoder, err := rec.Encoder()
		return func(e *trace.Entry) error {
			row, err := encoder.Encode(e)
			if err == nil {
				r.writer.Add(&row) // which counts what it has no room for
			}
			return err
		}, err
	}
	if o.Shadow, r.shadow, err = f.openShadow(cmd, r.begin, meta.CaptureID); err != nil {
		return err
	}
	if r.proxy, err = record.New(o); err != nil {
		return err
	}
	r.writer.Start()
	return nil
}

// counts are those of the proxy, with what the disk did not take.
func (r *recorder) counts() recording.Counts {
	c := r.proxy.Counts()
	_, lost := r.writer.Written()
	c.Recorded, c.Disk = c.Recorded-lost, lost
	return c
}

// sayRecorded tells what was recorded and what was not.
func (f *recordFlags) sayRecorded(cmd *cobra.Command, r *recorder) error {
	c := r.counts()
	lasted := time.Since(r.begin).Round(time.Second)
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(),
			map[string]any{"folder": f.out, "seconds": time.Since(r.begin).Seconds(),
				"not_recorded": c.Lost(), "counts": c})
	}
	out := new(strings.Builder)
	fmt.Fprintf(out, "%s recorded in %v to %s\n", doc.Many(c.Recorded, "request"), lasted, f.out)
	for _, o := range c.Outcomes()[1:] {
		if *o.N > 0 {
			fmt.Fprintf(out, "  %s %s\n", doc.Many(*o.N, "request"), o.Says)
		}
	}
	c.Usage.Each(func(one usage.Finding, n int64) { fmt.Fprintf(out, "  %s %s\n", doc.Many(n, "answer"), one.Says()) })
	if c.Recorded > 0 {
		fmt.Fprintf(out, "Make a trace of them:  reprise merge --finish %s -o t.parquet\n", f.out)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), out.String())
	return err
}
