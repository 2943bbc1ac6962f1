package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/pace"
	"reprise/trace"
)

// targetFlags say what a replay sends, and to whom.
type targetFlags struct {
	urls        []string
	balance     string
	api         string
	model       string
	tokenIDs    bool
	forceOutput bool

	http2       bool
	proxy       string
	tlsCA       string
	tlsCert     string
	tlsKey      string
	tlsName     string
	tlsInsecure bool
	timeout     time.Duration
	connect     time.Duration
	firstToken  time.Duration
	idle        time.Duration
	retry       string

	headers     []string
	headerEnv   []string
	headerFile  []string
	keyEnv      string
	keyFile     string
	affinity    string
	record      []string
	noTrace     bool
	extraBody   string
	temperature float64
	topP        float64
	sampleSeed  int64
	priorities  []string
	models      []string
	rowExtra    string
	checkSame   int
	given       func(flag string) bool
}

func (f *targetFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.given = fl.Changed
	fl.StringArrayVar(&f.urls, "url", []string{"http://127.0.0.1:8000"}, "base URL of the endpoint, or unix:///path.sock[:/base]; may be repeated for several of one model")
	fl.StringVar(&f.balance, "balance", replay.RoundRobin, "which of several endpoints a request goes to: round-robin, or session for all of a session to one")
	fl.StringVar(&f.api, "api", replay.APICompletions, "completions, chat, responses, embeddings, or auto: by each row's kind")
	fl.StringVar(&f.model, "model", "", "model to ask for; empty takes the endpoint's only one")
	fl.BoolVar(&f.tokenIDs, "token-ids", false, "send prompts as token ids (completions and embeddings)")
	fl.BoolVar(&f.forceOutput, "force-output", true, "ask for exactly the recorded output length (ignore_eos, min_tokens)")

	fl.BoolVar(&f.http2, "http2", false, "HTTP/2 in place of HTTP/1.1: over TLS by ALPN, else by prior knowledge (h2c)")
	fl.StringVar(&f.proxy, "proxy", "", "`URL` of a proxy, or none; empty takes HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Without a password")
	fl.StringVar(&f.tlsCA, "tls-ca", "", "PEM `file` of the authorities to trust in place of the system's")
	fl.StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` of a client certificate")
	fl.StringVar(&f.tlsKey, "tls-key", "", "PEM `file` of its key")
	fl.StringVar(&f.tlsName, "tls-server-name", "", "name to expect in the server's certificate, in place of the URL's")
	fl.BoolVar(&f.tlsInsecure, "tls-insecure", false, "do not check the server's certificate; the results say so")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Minute, "of one request, retries included")
	fl.DurationVar(&f.connect, "connect-timeout", 10*time.Second, "of dialling, and of the TLS handshake")
	fl.DurationVar(&f.firstToken, "first-token-timeout", 0, "from sending to the first token; 0 is no limit of its own")
	fl.DurationVar(&f.idle, "idle-timeout", 0, "between two events of an answer; 0 is no limit of its own")
	fl.StringVar(&f.retry, "retry", "0", "`N[,backoff][,other]`: send a request again up to N times when there was no connection, the server was full (429, 502, 503, 504, 529), or a pooled connection was dead; backoff doubles from 500ms unless given; with other, to the next --url, and without a pause while there is one that has not been asked")

	fl.StringArrayVar(&f.headers, "header", nil, "`Name=value` of a further request header; may be repeated. Not for secrets")
	fl.StringArrayVar(&f.headerEnv, "header-env", nil, "`Name=VARIABLE`: a header whose value is in the environment; may be repeated")
	fl.StringArrayVar(&f.headerFile, "header-file", nil, "`Name=file`: a header whose value is in a file; may be repeated")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "environment `variable` that holds the API key")
	fl.StringVar(&f.keyFile, "api-key-file", "", "`file` that holds the API key")
	fl.StringVar(&f.affinity, "affinity-header", "", "`name` of a header that carries the session's pseudonym (s0, s1, …), for routers")
	fl.StringArrayVar(&f.record, "record-header", nil, "`name` of a response header that says who answered; its values are counted in the report. At most 4")
	fl.BoolVar(&f.noTrace, "no-trace-headers", false, "do not send X-Request-Id and traceparent")
	fl.StringVar(&f.extraBody, "extra-body", "", "`JSON` object with further fields of each request")
	fl.Float64Var(&f.temperature, "temperature", 0, "of every request, in place of the workload's")
	fl.Float64Var(&f.topP, "top-p", 0, "top_p of every request")
	fl.Int64Var(&f.sampleSeed, "sampling-seed", 0, "seed of the server's sampling, for every request")
	fl.StringArrayVar(&f.priorities, "class-priority", nil, "`CLASS=N`: field priority of the rows of a class (vLLM: lower is sooner); may be repeated")
	fl.StringArrayVar(&f.models, "model-map", nil, "`LABEL=MODEL`: what rows with this adapter, or else this model, ask for; may be repeated")
	fl.StringVar(&f.rowExtra, "row-extra", "", "JSONL `file` of {\"row\":N,\"header\":{},\"body\":{}}, in row order: further headers and fields of single rows")
	fl.IntVar(&f.checkSame, "check-deterministic", 0, "after the run, send `N` of the rows twice at temperature 0 and count the answers that differ")
}

// check refuses what needs no file to be seen to be wrong.
func (f *targetFlags) check() error {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if f.tlsInsecure && f.tlsCA != "" {
		return usagef("--tls-insecure and --tls-ca contradict each other")
	}
	if f.checkSame < 0 || f.checkSame > 0 && f.api == replay.APIEmbeddings {
		return usagef("--check-deterministic: want a number of rows, and an API whose answers are text")
	}
	var o replay.HTTPOptions
	return f.retries(&o)
}

// options turns the flags into those of an endpoint.
func (f *targetFlags) options() (o replay.HTTPOptions, err error) {
	if len(f.urls) == 0 {
		return o, usagef("--url: say where the endpoint is")
	}
	o = replay.HTTPOptions{URL: f.urls[0], Also: f.urls[1:], Balance: f.balance, API: f.api, Model: f.model, TokenIDs: f.tokenIDs,
		ForceOutput: f.forceOutput, HTTP2: f.http2, Proxy: f.proxy,
		Timeout: f.timeout, ConnectTimeout: f.connect, FirstTokenTimeout: f.firstToken, IdleTimeout: f.idle,
		AffinityHeader: f.affinity, RecordHeaders: f.record, NoTraceHeaders: f.noTrace}
	if err = f.retries(&o); err != nil {
		return o, err
	}
	if o.TLS, err = f.tls(); err != nil {
		return o, err
	}
	if o.Header, err = f.header(); err != nil {
		return o, err
	}
	if o.Extra, err = f.extra(); err != nil {
		return o, err
	}
	if o.APIKey, err = f.apiKey(); err != nil {
		return o, err
	}
	if o.Models, err = pairs("model-map", f.models); err != nil {
		return o, err
	}
	o.Priorities, err = f.classPriorities()
	return o, err
}

// retries reads --retry.
func (f *targetFlags) retries(o *replay.HTTPOptions) (err error) {
	count, rest, _ := strings.Cut(f.retry, ",")
	backoff := 500 * time.Millisecond
	if pause, other := strings.CutSuffix(","+rest, ",other"); other {
		o.RetryOther, rest = true, strings.TrimPrefix(pause, ",")
	}
	if o.Retries, err = strconv.Atoi(count); err == nil && rest != "" {
		backoff, err = time.ParseDuration(rest)
	}
	switch {
	case err != nil || o.Retries < 0 || backoff < 0 || strings.HasSuffix(f.retry, ","):
		return usagef("--retry: want a number, or a number and a duration such as 3,250ms, and ,other behind either to ask another endpoint")
	case o.RetryOther && (o.Retries == 0 || len(f.urls) < 2):
		return usagef("--retry: other is another endpoint: give --url more than once, and a number of retries")
	case o.Retries > 0:
		o.Backoff = backoff
	}
	return nil
}

// tls is nil where nothing about it was said.
func (f *targetFlags) tls() (*tls.Config, error) {
	if cmp.Or(f.tlsCA, f.tlsCert, f.tlsName) == "" && !f.tlsInsecure {
		return nil, nil
	}
	c := &tls.Config{ServerName: f.tlsName, InsecureSkipVerify: f.tlsInsecure}
	if f.tlsCA != "" {
		pem, err := os.ReadFile(f.tlsCA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s holds no certificate in PEM", f.tlsCA)
		}
	}
	if f.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// pairs reads the values of a flag that is NAME=VALUE.
func pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, usagef("--%s: want two names with = between them", flag)
		}
		if _, twice := out[name]; twice {
			return nil, usagef("--%s: the same name is given twice", flag)
		}
		out[name] = value
	}
	return out, nil
}

// header collects the headers of all three flags. No error quotes a value.
func (f *targetFlags) header() (http.Header, error) {
	out := http.Header{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, usagef("--header: want Name=value")
		}
		out.Add(name, value)
	}
	fromEnv, err := pairs("header-env", f.headerEnv)
	if err != nil {
		return nil, err
	}
	for name, variable := range fromEnv {
		value, ok := os.LookupEnv(variable)
		if !ok || value == "" {
			return nil, usagef("--header-env: the variable of %s is not set", name)
		}
		out.Add(name, value)
	}
	fromFile, err := pairs("header-file", f.headerFile)
	if err != nil {
		return nil, err
	}
	for name, path := range fromFile {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out.Add(name, strings.TrimSpace(string(b)))
	}
	return out, nil
}

// extra joins --extra-body and the flags for sampling, which stand above it.
func (f *targetFlags) extra() (openai.Extra, error) {
	var extra openai.Extra
	var err error
	if f.extraBody != "" {
		if extra, err = openai.ParseExtra([]byte(f.extraBody)); err != nil {
			return extra, usagef("--extra-body: %v", err)
		}
	}
	sampling := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{"temperature": {"temperature", f.temperature}, "top-p": {"top_p", f.topP}, "sampling-seed": {"seed", f.sampleSeed}} {
		if f.given(flag) {
			sampling[field.name] = field.value
		}
	}
	body, err := json.Marshal(sampling)
	if err != nil {
		return extra, usagef("--temperature and --top-p: want numbers")
	}
	more, err := openai.ParseExtra(body)
	return extra.With(more), err
}

func (f *targetFlags) classPriorities() (map[string]int, error) {
	named, err := pairs("class-priority", f.priorities)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	out := map[string]int{}
	for _, class := range slices.Sorted(maps.Keys(named)) {
		if out[class], err = strconv.Atoi(named[class]); err != nil {
			return nil, usagef("--class-priority: want CLASS=N, N a whole number")
		}
	}
	return out, nil
}

// apiKey reads the key where the flags say it is: no flag takes a key itself,
// since command lines end up in histories and process lists.
func (f *targetFlags) apiKey() (string, error) {
	switch {
	case f.keyEnv != "" && f.keyFile != "":
		return "", usagef("give one of --api-key-env and --api-key-file")
	case f.keyEnv != "":
		key, ok := os.LookupEnv(f.keyEnv)
		if !ok || key == "" {
			return "", usagef("--api-key-env: the variable is not set")
		}
		return key, nil
	case f.keyFile != "":
		b, err := os.ReadFile(f.keyFile)
		return strings.TrimSpace(string(b)), err
	}
	return "", nil
}

// wireFlags say how requests get onto the wire.
type wireFlags struct {
	connections string
	realtime    bool
}

func (f *wireFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.connections, "connections", replay.PerRequest, "per-request, pooled, pooled:N with N connections opened before the start, or per-session; each is dialled ahead of need")
	fl.BoolVar(&f.realtime, "realtime", false, "send from a thread that all others give way to (SCHED_FIFO; Linux, root or CAP_SYS_NICE)")
}

// check refuses what this process may not do. atOnce is how many requests there may
// be at once; 0 is unknown.
func (f *wireFlags) check(atOnce int) error {
	size, err := replay.PoolSize(f.connections)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if n := max(size, atOnce); n > 0 {
		if err := replay.CheckFiles(n); err != nil {
			return err
		}
	}
	if !f.realtime {
		return nil
	}
	thread, err := pace.NewRealtime(time.Now())
	if err != nil {
		return usagef("--realtime: %v", err)
	}
	return thread.Close()
}

// checkConnections refuses uses of connections that only our own HTTP/1.1 client
// has: HTTP/2 has one connection for all, or one for each request.
func (f *replayFlags) checkConnections() error {
	if f.http2 && f.connections != replay.PerRequest && f.connections != replay.Pooled {
		return usagef("--http2 has --connections %s and %s alone", replay.PerRequest, replay.Pooled)
	}
	return nil
}

// told says on stderr what the results say of the connections.
func (f *wireFlags) told(cmd *cobra.Command, run *replay.Run) {
	if w := run.Wire; w != nil && w.Note != "" {
		notef(cmd, "connections: %s", w.Note)
	}
}

// deploymentFlags say what serves, where servers do not say it themselves.
type deploymentFlags struct {
	hardware     string
	modelSize    string
	quantization string
	tp, pp       int
	engine       string
	engineFlags  string
}

func (f *deploymentFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.hardware, "hardware", "", "GPUs that serve, for the report: `[N x]GPU`[,memory][,interconnect], such as '8xH100, 80GB, NVLink'")
	fl.StringVar(&f.modelSize, "model-size", "", "`parameters` of the model, for the report, such as 70B")
	fl.StringVar(&f.quantization, "quantization", "", "of its weights, for the report, such as fp8")
	fl.IntVar(&f.tp, "tp", 0, "GPUs that each layer is spread over, for the report")
	fl.IntVar(&f.pp, "pp", 0, "stages that the layers are spread over, for the report")
	fl.StringVar(&f.engine, "engine", "", "`name and version` of the engine, for the report, such as 'vllm 0.11.0'")
	fl.StringVar(&f.engineFlags, "engine-flags", "", "`flags` that it was started with, for the report; what looks like a key is left out")
}

// deployment is what the flags say, nil when they say nothing.
func (f *deploymentFlags) deployment() (*replay.Deployment, error) {
	if f.tp < 0 || f.pp < 0 {
		return nil, usagef("--tp and --pp: want numbers above zero")
	}
	d := replay.Deployment{Quantization: replay.Redact(f.quantization), TP: f.tp, PP: f.pp, Engine: replay.Redact(f.engine), EngineFlags: replay.Redact(f.engineFlags)}
	for flag, text := range map[string]string{"quantization": d.Quantization, "engine": d.Engine, "engine-flags": d.EngineFlags} {
		if len(text) > maxNote {
			return nil, usagef("--%s: %d bytes at most", flag, maxNote)
		}
	}
	if f.hardware != "" {
		if err := d.SetHardware(f.hardware); err != nil {
			return nil, usagef("--hardware: %v", err)
		}
	}
	if f.modelSize != "" {
		if err := d.SetModelSize(f.modelSize); err != nil {
			return nil, usagef("--model-size: %v", err)
		}
	}
	if d == (replay.Deployment{}) {
		return nil, nil
	}
	return &d, nil
}

// checkExtras refuses what would read the file of --row-extra more than once.
func (f *replayFlags) checkExtras() error {
	switch {
	case f.rowExtra == "":
	case f.loop != "", f.cache == replay.CacheWarm:
		return usagef("--row-extra is read once: it cannot be had with --loop or --cache warm")
	}
	return nil
}

// openRowExtra reads the file of --row-extra to its end, so that its faults are known
// before anything is sent, and opens it again. It is nil without one.
func (f *targetFlags) openRowExtra(cmd *cobra.Command, rows int64) (extras replay.RowExtras, close func() error, err error) {
	close = func() error { return nil }
	if f.rowExtra == "" {
		return nil, close, nil
	}
	file, err := os.Open(f.rowExtra)
	if err != nil {
		return nil, close, err
	}
	lines, err := replay.CheckExtras(file, f.rowExtra, rows)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, close, err
	}
	notef(cmd, "row extras: %d rows have headers or fields of their own", lines)
	return replay.NewExtraFile(file, f.rowExtra), file.Close, nil
}

// A kindRow is the column that says which API a row goes to.
type kindRow struct {
	trace.Row `parquet:"-"`
	Kind      string `parquet:"kind,optional,dict"`
}

// apis are those that the rows of a workload go to.
func (f *targetFlags) apis(w *trace.Trace) ([]string, error) {
	if f.api != replay.APIAuto {
		return []string{f.api}, nil
	}
	rows, err := trace.Columns[kindRow](w)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	err = trace.Each(rows, func(_ int64, r *kindRow) error {
		found[replay.KindAPI(r.Kind)] = true
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}
