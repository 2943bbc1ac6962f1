package peerfile

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/nonfinite"
	"reprise/trace/objectstore"
)

// A run is what a decoder makes of one run of a file.
type run struct {
	result.Run
	read result.Reading
	rows []result.Result
	// epoch says that instants are nanoseconds of Unix time, so that the first of them is
	// when the run started.
	epoch bool
}

// errNotOurs says that a file is of none of the tools.
var errNotOurs = errors.New("not the results of a known tool")

// An Error is why another tool's results cannot be read.
type Error struct {
	Path string
	Says string
}

func (e *Error) Error() string { return e.Path + ": " + e.Says }

// Open opens the results at path: ours, as [result.Open] does, or those of another tool.
// Where another tool's file holds several runs, path ends in # and the number of one of
// them, from 1.
func Open(path string) (*result.File, error) {
	name, number := path, 0
	f, err := objectstore.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if i := strings.LastIndexByte(path, '#'); i >= 0 {
			if n, wrong := strconv.Atoi(path[i+1:]); wrong == nil && n > 0 {
				name, number = path[:i], n
				f, err = objectstore.Open(name)
			}
		}
	}
	if err != nil {
		return result.Open(path) // which says so
	}
	defer f.Close()
	runs, err := decode(f)
	switch {
	case errors.Is(err, errNotOurs):
		return result.Open(path)
	case err != nil:
		return nil, &Error{path, err.Error()}
	case len(runs) == 0:
		return nil, &Error{path, "it has no run"}
	case number > len(runs):
		return nil, &Error{path, fmt.Sprintf("it has only %s", doc.Many(int64(len(runs)), "run"))}
	case number == 0 && len(runs) > 1:
		return nil, &Error{path, fmt.Sprintf("it has %d runs: name one, such as %s#1", len(runs), name)}
	}
	r := &runs[max(number-1, 0)]
	if len(r.rows) == 0 {
		return nil, &Error{path, "it has no requests of " + r.read.Tool}
	}
	if err := r.finish(); err != nil {
		return nil, &Error{path, err.Error()}
	}
	return result.Held(path, r.Run, r.rows), nil
}

// Recognised says whether a file holds the requests of another tool's run, by its first
// megabyte.
func Recognised(path string) bool {
	if ext := filepath.Ext(path); ext != ".json" && ext != ".jsonl" {
		return false
	}
	f, err := objectstore.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	tool, err := toolOf(io.LimitReader(f, headBytes))
	return err == nil && tool.decode != nil
}

// headBytes are read to tell what a file is.
const headBytes = 1 << 20

// A tool is one whose files can be read.
type tool struct {
	name   string
	marks  []string // keys of the first object, all of which it has
	decode func(d *json.Decoder) ([]run, error)
	sums   string // of a file without requests: what to do; without both the tool is only known
}

// tools are in the order in which they are tried: keys of a later one may be in an earlier.
var tools = []tool{
	{name: "vLLM", marks: []string{"model_id", "request_rate", "completed"}, decode: decodeVLLM},
	{name: "SGLang", marks: []string{"backend", "dataset_name", "completed"}, decode: decodeSGLang},
	{name: "AIPerf", marks: []string{"metadata", "metrics"}, decode: decodeAIPerf},
	{name: "AIPerf", marks: []string{"metadata", "error"}, decode: decodeAIPerf},
	{name: "GuideLLM", marks: []string{"metadata", "benchmarks"}, decode: decodeGuideLLM},
	{name: "inference-perf", marks: []string{"start_time", "end_time", "info"}, decode: decodeInferencePerf},
	{name: "LLMServingSim", marks: []string{"input_toks", "output_toks", "queued_ts"}, decode: decodeLLMServingSim},
	{name: "AIPerf", marks: []string{"aiperf_version"},
		sums: "it is AIPerf's summary: name profile_export.jsonl beside it, which has the requests"},
	{name: "inference-perf", marks: []string{"load_summary", "successes"},
		sums: "it is inference-perf's summary: name per_request_lifecycle_metrics.json beside it, which " +
			"report.request_lifecycle.per_request: true writes"},
	{name: "GenAI-Perf", marks: []string{"service_kind", "experiments"}},
	{name: "GenAI-Perf", marks: []string{"request_throughput", "request_latency", "input_config"}},
	{name: "LLMPerf", marks: []string{"inter_token_latency_s", "number_output_tokens"}},
	{name: "LLMPerf", marks: []string{"mean_input_tokens", "stddev_input_tokens"}},
	{name: "EvalScope", marks: []string{"Total requests", "Succeed requests"}},
	{name: "vllm bench throughput", marks: []string{"elapsed_time", "num_requests"}},
	{name: "vllm bench latency", marks: []string{"avg_latency", "latencies"}},
	{name: "trtllm-bench", marks: []string{"request_info", "performance"}},
}

// unread is said of the files of tools that are only known.
const unread = "it is of %s, whose files are not read: most have no requests, or not when their tokens came. Measure " +
	"with reprise replay, or with AIPerf, GuideLLM, inference-perf, SGLang or vllm bench serve --save-detailed"

// toolOf tells a tool by the keys of the first object, which may be in an array.
func toolOf(r io.Reader) (tool, error) {
	in := bufio.NewReader(nonfinite.NewReader(r))
	for {
		c, err := in.ReadByte()
		if err != nil {
			return tool{}, errNotOurs
		}
		if c == '{' {
			if err := in.UnreadByte(); err != nil {
				return tool{}, err
			}
			break
		}
		if !strings.ContainsRune(" \t\r\n[", rune(c)) {
			return tool{}, errNotOurs
		}
	}
	seen := map[string]bool{}
	var found tool
	d := json.NewDecoder(in)
	err := members(d, func(key string) error {
		seen[key] = true
		for _, t := range tools {
			if !slices.ContainsFunc(t.marks, func(mark string) bool { return !seen[mark] }) {
				found = t
				return io.EOF
			}
		}
		return skip(d)
	})
	if found.name == "" || err != nil && err != io.EOF {
		return tool{}, errNotOurs
	}
	return found, nil
}

func decode(f io.ReadSeeker) ([]run, error) {
	t, err := toolOf(io.LimitReader(f, headBytes))
	if err != nil {
		return nil, err
	}
	if t.decode == nil {
		return nil, errors.New(cmp.Or(t.sums, fmt.Sprintf(unread, t.name)))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bufio.NewReaderSize(nonfinite.NewReader(f), 1<<16))
	runs, err := t.decode(d)
	if err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("it is cut off: copy or make it again")
		case errors.As(err, &syntax): // whose words may have a character of the file
			err = fmt.Errorf("it is not JSON at byte %d", d.InputOffset())
		case errors.As(err, &kind):
			err = errShape
		}
		return nil, fmt.Errorf("results of %s: %w", t.name, err)
	}
	return runs, nil
}

// finish makes the rows those of a run that begins with the first of them.
func (r *run) finish() error {
	read := &r.read
	r.Version, r.Read = read.Tool, read
	r.Requests += int64(len(r.rows))
	r.Timing = cmp.Or(r.Timing, result.OpenLoop)
	begin := r.rows[0].DueNS
	for i := range r.rows {
		begin = min(begin, r.rows[i].DueNS)
		if sent := r.rows[i].SentNS; sent != nil {
			begin = min(begin, *sent)
		}
	}
	if r.epoch {
		r.Started = time.Unix(0, begin).UTC().Format(time.RFC3339Nano)
	}
	var opened []edge
	lengths := make([]int32, len(r.rows))
	for i := range r.rows {
		row := &r.rows[i]
		row.RowID = int64(i)
		row.Attempts = 1
		row.DueNS -= begin
		for _, at := range []*int64{row.SentNS, row.HeadersNS, row.FirstEventNS, row.FirstTokenNS, row.FirstContentNS,
			row.LastTokenNS, row.DoneNS} {
			if at != nil {
				*at -= begin
			}
		}
		if row.SentNS != nil && row.DoneNS != nil {
			opened = append(opened, edge{*row.SentNS, 1}, edge{*row.DoneNS, -1})
		}
		lengths[i] = row.WantInput
	}
	if read.Instants {
		slices.SortFunc(opened, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step))
		})
		open := 0
		for _, e := range opened {
			open += e.step
			r.MaxInFlight = max(r.MaxInFlight, open)
		}
	}
	slices.Sort(lengths)
	digest := sha256.New()
	for _, n := range lengths {
		if _, err := digest.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))); err != nil {
			return err
		}
	}
	r.Workload = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return nil
}

// An edge is where a request opens (1) or closes (−1).
type edge struct {
	at   int64
	step int
}

// at is a pointer to an instant after another.
func at(from, after int64) *int64 {
	return new(from + after)
}
