package flags

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/client"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/quantity"
)

// Target says what a replay sends, and to whom.
type Target struct {
	URLs        []string // --url, one or more
	balance     string
	API         string // --api
	Model       string // --model, empty for the only one
	TokenIDs    bool   // --token-ids
	template    string // template-tokens, as N or BEFORE+AFTER; empty when they are measured
	forceOutput bool

	HTTP2      bool // http2
	proxy      string
	tls        TLS
	Timeout    time.Duration // --timeout, of one request
	connect    time.Duration
	firstToken time.Duration
	idle       time.Duration
	retry      string

	headers     []string
	headerEnv   []string
	headerFile  []string
	keyEnv      string
	keyFile     string
	affinity    string
	record      []string
	noTrace     bool
	ExtraBody   string // --extra-body, JSON
	temperature float64
	topP        float64
	sampleSeed  int64
	priorities  []string
	models      []string
	RowExtra    string // row-extra, a path
	CheckSame   int    // check-deterministic, rows
	given       func(flag string) bool
}

// Register adds the flags. The target sees through cmd which were given.
func (f *Target) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.given = fl.Changed
	everyday, rest := Sections(fl, EndpointFlags)
	everyday.StringArrayVar(&f.URLs, "url", []string{"http://127.0.0.1:8000"},
		"base URL of the endpoint; or unix:///path.sock[:/base]; repeatable")
	rest.StringVar(&f.balance, "balance", client.RoundRobin, "")
	everyday.StringVar(&f.API, "api", result.APICompletions,
		"completions, chat, responses, messages, embeddings, or auto (each row's kind). Without this flag, chat if "+
			"the server has no completions")
	everyday.StringVar(&f.Model, "model", "", "model to request; by default the only one that the endpoint has")
	rest.BoolVar(&f.TokenIDs, "token-ids", false, "send prompts as token ids (completions and embeddings)")
	rest.StringVar(&f.template, "template-tokens", "", "")
	rest.BoolVar(&f.forceOutput, "force-output", true,
		"ask for exactly the recorded output length (ignore_eos, min_tokens)")

	rest.BoolVar(&f.HTTP2, "http2", false, "")
	rest.StringVar(&f.proxy, "proxy", "", "")
	f.tls.Register(rest)
	everyday.DurationVar(&f.Timeout, "timeout", 10*time.Minute, "time limit of a request, retries included")
	rest.DurationVar(&f.connect, "connect-timeout", 10*time.Second, "")
	rest.DurationVar(&f.firstToken, "first-token-timeout", 0, "")
	rest.DurationVar(&f.idle, "idle-timeout", 0, "")
	rest.StringVar(&f.retry, "retry", "0",
		"retry up to N times, as `N[,backoff][,other]`, after a failed connection or 429, 502, 503, 504, 529. The "+
			"backoff doubles from 500ms; other retries at the next --url")

	everyday.StringArrayVar(&f.headers, "header", nil,
		"add a request header, as `Name=value`; repeatable. Not for secrets")
	rest.StringArrayVar(&f.headerEnv, "header-env", nil, "")
	rest.StringArrayVar(&f.headerFile, "header-file", nil, "")
	everyday.StringVar(&f.keyEnv, "api-key-env", "",
		"environment `variable` with the API key, instead of "+DefaultKeyEnv)
	rest.StringVar(&f.keyFile, "api-key-file", "", "")
	rest.StringVar(&f.affinity, "affinity-header", "", "")
	rest.StringArrayVar(&f.record, "record-header", nil, "")
	rest.BoolVar(&f.noTrace, "no-trace-headers", false, "")
	rest.StringVar(&f.ExtraBody, "extra-body", "", "`JSON` object with fields to add to each request")
	rest.NumberVar(&f.temperature, "temperature", 0, "temperature of every request, instead of the workload's")
	rest.NumberVar(&f.topP, "top-p", 0, "top_p of every request")
	rest.Int64Var(&f.sampleSeed, "sampling-seed", 0, "")
	rest.StringArrayVar(&f.priorities, "class-priority", nil, "")
	rest.StringArrayVar(&f.models, "model-map", nil, "")
	rest.StringVar(&f.RowExtra, "row-extra", "", "")
	rest.IntVar(&f.CheckSame, "check-deterministic", 0, "")
}

// Check refuses what needs no file to be seen to be wrong.
func (f *Target) Check() error {
	for i, url := range f.URLs { // as for curl, a host alone is one of HTTP
		if !strings.Contains(url, "://") {
			f.URLs = slices.Clone(f.URLs)
			f.URLs[i] = "http://" + url
		}
	}
	f.APIGiven()
	if apis := []string{result.APICompletions, result.APIChat, result.APIResponses, result.APIMessages,
		result.APIEmbeddings, result.APIAuto}; !slices.Contains(apis, f.API) {
		return cli.Usagef("--api: %s is no API: write one of %s", quantity.Quote(f.API), strings.Join(apis, ", "))
	}
	if err := f.tls.Check(); err != nil {
		return err
	}
	if f.CheckSame > 0 && f.API == result.APIEmbeddings {
		return cli.Usagef("--set check-deterministic is for an API whose answers are text")
	}
	var o client.Options
	return f.retries(&o)
}

// Unforced has no output length forced.
func (f *Target) Unforced() { f.forceOutput = false }

// Options turns the flags into those of an endpoint.
func (f *Target) Options() (o client.Options, err error) {
	if len(f.URLs) == 0 {
		return o, cli.Usagef("--url is empty: give the endpoint's URL")
	}
	o = client.Options{URL: f.URLs[0], Also: f.URLs[1:], Balance: f.balance, API: f.API, Model: f.Model,
		TokenIDs:    f.TokenIDs,
		ForceOutput: f.forceOutput, HTTP2: f.HTTP2, Proxy: f.proxy,
		Timeout: f.Timeout, ConnectTimeout: f.connect, FirstTokenTimeout: f.firstToken, IdleTimeout: f.idle,
		AffinityHeader: f.affinity, RecordHeaders: f.record, NoTraceHeaders: f.noTrace}
	if f.template != "" && f.template != "-1" {
		before, after, parts := strings.Cut(f.template, "+")
		n, err := strconv.ParseUint(before, 10, 16)
		m, err2 := uint64(0), error(nil)
		if parts {
			m, err2 = strconv.ParseUint(after, 10, 16)
			o.TemplateBefore = trace.Ptr(int(n))
		}
		if err != nil || err2 != nil {
			return o, cli.Usagef("--set template-tokens: %s is no number of tokens: write it as 12, or as 5+7 for "+
				"tokens before a prompt and after it", quantity.Quote(f.template))
		}
		o.TemplateTokens = trace.Ptr(int(n + m))
	}
	if err = f.retries(&o); err != nil {
		return o, err
	}
	if o.TLS, err = f.tls.Config(); err != nil {
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
func (f *Target) retries(o *client.Options) (err error) {
	count, rest, _ := strings.Cut(f.retry, ",")
	backoff := 500 * time.Millisecond
	if pause, other := strings.CutSuffix(","+rest, ",other"); other {
		o.RetryOther, rest = true, strings.TrimPrefix(pause, ",")
	}
	if o.Retries, err = strconv.Atoi(count); err == nil && rest != "" {
		backoff, err = quantity.Duration(rest)
	}
	switch {
	case err != nil || o.Retries < 0 || backoff < 0 || strings.HasSuffix(f.retry, ","):
		return cli.Usagef("--retry: want a number, or a number and a duration such as 3,250ms, and ,other behind " +
			"either to ask another endpoint")
	case o.RetryOther && (o.Retries == 0 || len(f.URLs) < 2):
		return cli.Usagef("--retry: other needs several --url and a number of retries")
	case o.Retries > 0:
		o.Backoff = backoff
	}
	return nil
}

// pairs reads the values of a flag that is NAME=VALUE. Its errors quote none of them.
func pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, cli.Usagef("--%s: want two names with = between them", flag)
		}
		if _, twice := out[name]; twice {
			return nil, cli.Usagef("--%s: the same name is given twice", flag)
		}
		out[name] = value
	}
	return out, nil
}

// header collects the headers of all three flags. No error quotes a value.
func (f *Target) header() (http.Header, error) {
	out := http.Header{}
	for _, h := range f.headers {
		at := strings.IndexAny(h, "=:") // the colon is curl's
		if at < 1 {
			return nil, cli.Usagef("--header: want Name=value, or 'Name: value'")
		}
		out.Add(h[:at], strings.TrimSpace(h[at+1:]))
	}
	fromEnv, err := pairs("header-env", f.headerEnv)
	if err != nil {
		return nil, err
	}
	for name, variable := range fromEnv {
		value, ok := os.LookupEnv(variable)
		if !ok || value == "" {
			return nil, cli.Usagef("--set header-env: the variable of %s is not set", name)
		}
		out.Add(name, value)
	}
	fromFile, err := pairs("header-file", f.headerFile)
	if err != nil {
		return nil, err
	}
	for name, path := range fromFile {
		value, err := cli.ReadSecret("--set header-file", path)
		if err != nil {
			return nil, err
		}
		out.Add(name, value)
	}
	return out, nil
}

// extra joins --extra-body and the flags for sampling, which stand above it.
func (f *Target) extra() (openai.Extra, error) {
	var extra openai.Extra
	var err error
	if f.ExtraBody != "" {
		if extra, err = openai.ParseExtra([]byte(f.ExtraBody)); err != nil {
			return extra, cli.Usagef("--extra-body: %v: write an object in quotes, such as '{\"temperature\":0}'", err)
		}
	}
	sampling := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{"temperature": {"temperature", f.temperature}, "top-p": {"top_p", f.topP},
		"sampling-seed": {"seed", f.sampleSeed}} {
		if f.given(flag) {
			sampling[field.name] = field.value
		}
	}
	body, err := json.Marshal(sampling)
	if err != nil {
		return extra, cli.Usagef("--temperature and --top-p: want numbers")
	}
	more, err := openai.ParseExtra(body)
	return extra.With(more), err
}

func (f *Target) classPriorities() (map[string]int, error) {
	named, err := pairs("class-priority", f.priorities)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	out := map[string]int{}
	for _, class := range slices.Sorted(maps.Keys(named)) {
		if out[class], err = strconv.Atoi(named[class]); err != nil {
			return nil, cli.Usagef("--set class-priority: want CLASS=N, N a whole number")
		}
	}
	return out, nil
}

// DefaultKeyEnv is the variable that holds the API key where no flag says where it is.
const DefaultKeyEnv = "OPENAI_API_KEY"

// KeyFrom says where the API key comes from: a flag, or [DefaultKeyEnv], which is read
// where no flag is given, and sent over TLS and to this machine only. kept says that it
// is set and would go over the network unencrypted.
func (f *Target) KeyFrom() (from string, kept bool) {
	switch {
	case f.keyEnv != "":
		return f.keyEnv, false
	case f.keyFile != "":
		return "--set api-key-file", false
	case os.Getenv(DefaultKeyEnv) == "":
		return "", false
	}
	for _, s := range f.URLs {
		u, err := url.Parse(s)
		if err != nil {
			return "", true
		}
		ip := net.ParseIP(u.Hostname())
		if local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); u.Scheme != "https" &&
			u.Scheme != "unix" && !local {
			return "", true
		}
	}
	return DefaultKeyEnv, false
}

// APIGiven says whether the command line says which API requests go to, by --api or by
// the path of --url, which then counts.
func (f *Target) APIGiven() bool {
	if f.given("api") {
		return true
	}
	if len(f.URLs) > 0 {
		if api := client.APIOfURL(f.URLs[0]); api != "" {
			f.API = api
			return true
		}
	}
	return false
}

// notSet says that a variable is not set. It quotes only what is written as names of variables are: somebody may have
// given the key itself.
func notSet(variable string) string {
	if regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`).MatchString(variable) {
		return fmt.Sprintf("the environment variable %s is not set", variable)
	}
	return "no environment variable of that name is set; it takes the name of a variable, such as MY_KEY," +
		" and never the secret itself"
}

// apiKey reads the key where the flags say it is: no flag takes a key itself,
// since command lines end up in histories and process lists.
func (f *Target) apiKey() (string, error) {
	if from, _ := f.KeyFrom(); from == DefaultKeyEnv {
		return os.Getenv(DefaultKeyEnv), nil
	}
	switch {
	case f.keyEnv != "" && f.keyFile != "":
		return "", cli.Usagef("give one of --api-key-env and --set api-key-file")
	case f.keyEnv != "":
		key, ok := os.LookupEnv(f.keyEnv)
		if !ok || key == "" {
			return "", cli.Usagef("--api-key-env: %s", notSet(f.keyEnv))
		}
		return key, nil
	case f.keyFile != "":
		return cli.ReadSecret("--set api-key-file", f.keyFile)
	}
	return "", nil
}

// OpenRowExtra reads the file of row-extra to its end, so that its faults are known
// before anything is sent, and opens it again. It is nil without one.
func (f *Target) OpenRowExtra(cmd *cobra.Command, rows int64) (extras client.RowExtras, close func() error, err error) {
	close = func() error { return nil }
	if f.RowExtra == "" {
		return nil, close, nil
	}
	file, err := objectstore.Open(f.RowExtra)
	if err != nil {
		return nil, close, err
	}
	lines, err := client.CheckExtras(file, f.RowExtra, rows)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, close, err
	}
	cli.Notef(cmd, "row extras: %d rows have headers or fields of their own", lines)
	return client.NewExtraFile(file, f.RowExtra), file.Close, nil
}

// A kindRow is the column that says which API a row goes to.
type kindRow struct {
	trace.Row `parquet:"-"`
	Kind      string `parquet:"kind,optional,dict"`
}

// APIs are those that the rows of a workload go to.
func (f *Target) APIs(w *trace.Trace) ([]string, error) {
	if f.API != result.APIAuto {
		return []string{f.API}, nil
	}
	rows, err := trace.Columns[kindRow](w)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	err = trace.Each(rows, func(_ int64, r *kindRow) error {
		found[client.KindAPI(r.Kind)] = true
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}
