package datasets

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/datasets/internal/record"
	"reprise/trace"
)

// runtimes write a line of a container in pieces of some length.
var runtimes = map[string]func(line string, piece int) string{
	"docker": func(line string, piece int) string {
		return inPieces(line+"\n", piece, func(text string, _ bool) string {
			return fmt.Sprintf(`{"log":%s,"stream":"stderr","time":"2026-01-02T03:04:05.25Z"}`, quotedJSON(text))
		})
	},
	"CRI": func(line string, piece int) string {
		return inPieces(line, piece, func(text string, last bool) string {
			return "2026-01-02T03:04:05.25Z stderr " + map[bool]string{false: "P", true: "F"}[last] + " " + text
		})
	},
	"fluent-bit of CRI": func(line string, piece int) string {
		return inPieces(line, piece, func(text string, last bool) string {
			return fmt.Sprintf(`{"date":1767323045.25,"time":"2026-01-02T03:04:05.25Z","stream":"stdout","logtag":"%s","log":%s,"kubernetes":{"pod_name":"p"}}`,
				map[bool]string{false: "P", true: "F"}[last], quotedJSON(text))
		})
	},
	"logcli of Loki": func(line string, _ int) string {
		return `{"labels":{"app":"g"},"line":` + quotedJSON(line) + `,"timestamp":"2026-01-02T03:04:05.25Z"}` + "\n"
	},
	"fluentd of docker": func(line string, piece int) string {
		return inPieces(line, piece, func(text string, last bool) string {
			if len(line) <= piece {
				return fmt.Sprintf(`{"container_id":"c","source":"stdout","log":%s}`, quotedJSON(text))
			}
			return fmt.Sprintf(`{"container_id":"c","source":"stdout","log":%s,"partial_message":"true","partial_id":"i","partial_last":"%v"}`, quotedJSON(text), last)
		})
	},
}

func inPieces(line string, piece int, write func(text string, last bool) string) string {
	var out []string
	for {
		n := min(piece, len(line))
		for n < len(line) && !utf8.RuneStart(line[n]) {
			n++
		}
		if out = append(out, write(line[:n], n == len(line))); n == len(line) {
			return strings.Join(out, "\n") + "\n"
		}
		line = line[n:]
	}
}

// What a program wrote is read alike from each runtime's file, whole and in pieces.
func TestContainerLogs(t *testing.T) {
	for _, name := range []string{"vllm-log", "sglang", "api-log", "openai-log"} {
		i := slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == name })
		line := Formats()[i].Example
		want, _ := mustRead(t, line+"\n"+line+"\n", Options{})
		if name == "vllm-log" { // whose dates have no year
			want, _ = mustRead(t, strings.Repeat("2026-01-02T03:04:05.25Z "+line+"\n", 2), Options{})
		}
		for runtime, write := range runtimes {
			for _, piece := range []int{len(line) + 1, 100, 7} {
				if name == "vllm-log" && runtime == "fluentd of docker" { // which has no time in the record
					continue
				}
				in := write(line, piece)
				all, info, err := read(strings.NewReader(in+in), Options{})
				if err != nil || info.Format != name || len(all) != len(want) || summary(&all[1]) != summary(&want[1]) {
					t.Errorf("%s of %s in pieces of %d: %v, %d entries of %s", name, runtime, piece, err, len(all), info.Format)
				}
			}
		}
	}
}

// CloudWatch gives a log as events or as the results of a query.
func TestCloudWatchLogs(t *testing.T) {
	for _, name := range []string{"vllm-log", "bedrock", "api-log"} {
		i := slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == name })
		line := Formats()[i].Example
		told := line
		if name == "vllm-log" { // whose dates have no year
			told = "2026-01-02T03:04:05.25Z " + line
		}
		want, _ := mustRead(t, told+"\n"+told+"\n", Options{})
		event := `{"logStreamName":"s","timestamp":1767323045250,"message":` + quotedJSON(line) + `,"ingestionTime":1767323045300,"eventId":"1"}`
		row := `[{"field":"@timestamp","value":"2026-01-02T03:04:05.25Z"},{"field":"@message","value":` + quotedJSON(line) + `},{"field":"@ptr","value":"p"}]`
		for form, in := range map[string]string{
			"filter-log-events": `{"events":[` + event + "," + event + `],"searchedLogStreams":[]}`,
			"Insights": record.ByteOrderMark + `{"results":[` + row + ",\n" + row +
				`],"statistics":{"recordsMatched":2.0},"status":"Complete"}`,
		} {
			all, info, err := read(strings.NewReader(in), Options{})
			if err != nil || info.Format != name || len(all) != len(want) || summary(&all[1]) != summary(&want[1]) {
				t.Errorf("%s of %s: %v, %d entries of %s", name, form, err, len(all), info.Format)
			}
		}
	}
	others := `{"events":[{"type":"x","message":{"role":"user"}}]}`
	if got, err := io.ReadAll(decompress(strings.NewReader(others))); err != nil || string(got) != others {
		t.Error("events of others are taken for those of CloudWatch")
	}
}

// What loggers, compose and kubectl put before JSON is taken off, and what stands between is left out. The date
// before objects without a time is their timestamp, of a runtime and of CloudWatch too.
func TestPrefixedJSON(t *testing.T) {
	const timed, timeless = `{"at":{"s":1767323045},"n":1}`, `{"n":1}`
	const dated = `{"timestamp":"2026-01-02T03:04:05.25Z","n":1}`
	for in, want := range map[string]string{
		"2026-01-02T03:04:05.25Z " + timed + "\n2026-01-02T03:04:06Z begun\r\n": timed + "\n\n",
		"2026-01-02T03:04:05.25Z INFO app: " + timeless + "\nINFO {a}":          dated + "\nINFO {a}\n",
		"2026-01-02 03:04:05,250 INFO " + timeless + "\n": strings.Replace(dated,
			"T03:04:05.25Z", " 03:04:05,250", 1) + "\n",
		"gateway-1  | " + timeless + "\n[pod/g/c] " + timeless + "\n":                  timeless + "\n" + timeless + "\n",
		"INFO:     Started\n" + timeless + "\nINFO:     \"GET / HTTP/1.1\" 200\n":      "\n" + timeless + "\n\n",
		"2026-01-02T03:04:05.25Z stdout F " + timeless + "\n":                          dated + "\n",
		"2026-01-02T03:04:05.25Z stdout F " + timed + "\n":                             timed + "\n",
		`{"log":"{\"n\":1}\n","stream":"stdout","time":"2026-01-02T03:04:05.25Z"}`:     dated + "\n",
		`{"events":[{"timestamp":1767323045250,"message":"{\"n\":1}","eventId":"1"}]}`: dated + "\n",
		// Not prefixed: too few objects, JSON itself, Python, a table.
		"a\nb\nc\nd " + timeless + "\n": "a\nb\nc\nd " + timeless + "\n",
		timeless + "\nx " + timeless:    timeless + "\nx " + timeless,
		"INFO {'n': 1}\n":               "INFO {'n': 1}\n",
		"id,body\n1,{\"n\":1}\n":        "id,body\n1,{\"n\":1}\n",
	} {
		got, err := io.ReadAll(decompress(strings.NewReader(in)))
		if err != nil || string(got) != want {
			t.Errorf("%q was read as %q, %v, want %q", in, got, err, want)
		}
	}
}

// The streams of a container are apart, a place is that of the piece that ends a line, and a line
// that does not end is said to be cut off.
func TestContainerStreams(t *testing.T) {
	line := openAILogFormat().Example
	half := len(line) / 2
	docker := func(text, stream string) string {
		return fmt.Sprintf(`{"log":%s,"stream":"%s","time":"2026-01-02T03:04:05.25Z"}`+"\n", quotedJSON(text), stream)
	}
	in := docker(line+"\n", "stdout") + docker(line[:half], "stdout") + docker(line+"\n", "stderr") + docker(line[half:]+"\n", "stdout")
	if all, _ := mustRead(t, in, Options{}); len(all) != 3 {
		t.Errorf("%d entries", len(all))
	}
	wantBad(t, in+docker(`{"timestamp"`, "stdout")+docker("]\n", "stdout")+in, Options{}, "log:6:13: it is not valid JSON")
	wantBad(t, in+docker(line[:half], "stdout"), Options{}, fmt.Sprintf("log:6:%d: unexpected end of file", half+1))
}

// A shipper may leave out the ends of lines; then each piece is one, unless it is as long as
// docker's pieces are.
func TestContainerLinesWithoutEnds(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb": "a\nb\n", strings.Repeat("x", 16<<10) + "\ny\nz": "\n" + strings.Repeat("x", 16<<10) + "y\nz\n",
	} {
		var in strings.Builder
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(&in, `{"log":"%s","stream":"stdout"}`+"\n", line)
		}
		got, err := io.ReadAll(decompress(strings.NewReader(in.String())))
		if err != nil || string(got) != want {
			t.Errorf("%.20q was read as %.20q, %v", text, got, err)
		}
	}
	for _, in := range []string{`{"log":"a","stream":"video"}`, `{"log":{"entries":[]}}`, `{"stream":"stdout"}`, "2026-01-02T03:04:05Z stdout X a", "plain"} {
		if got, err := io.ReadAll(decompress(strings.NewReader(in))); err != nil || string(got) != in {
			t.Errorf("%q was read as %q, %v", in, got, err)
		}
	}
}

// Lines between those that hold JSON are counted, of several files too.
func TestLinesWithoutJSON(t *testing.T) {
	const log = "INFO:     Started\n\nINFO " + `{"at":1767323045,"n":1}` + "\nINFO done\n"
	s, err := OpenFiles(textFiles(log, log), Options{Map: Mapping{"time": {"at"}, "input_tokens": {"n"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Read(make([]trace.Entry, 9))
	wantNote(t, s.Info(), noteWithoutJSON+": 4")
}

// Whatever lines a container writes, they come back.
func FuzzContainerLog(f *testing.F) {
	f.Add([]byte("INFO\n{\"a\":1}\n\nlast"), uint8(3))
	f.Add([]byte(`{"log":"x","stream":"stdout"}`), uint8(9))
	f.Add([]byte("INFO\n{\"a\":"), uint8(1)) // a line without an end before one in pieces that say where it ends
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		_, _ = io.ReadAll(decompress(strings.NewReader(string(in))))
		text := strings.ToValidUTF8(strings.ReplaceAll(string(in), "\r", ""), "?")
		for runtime, write := range runtimes {
			var log strings.Builder
			var want []string
			for line := range strings.SplitSeq(text, "\n") {
				log.WriteString(write(line, max(int(piece), 1)*4))
				want = append(want, line)
			}
			read, err := io.ReadAll(decompress(strings.NewReader(log.String())))
			var got []string
			for line := range strings.Lines(string(read)) {
				line = strings.Replace(line, `{"timestamp":"2026-01-02T03:04:05.25Z",`, "{", 1)
				if line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "2026-01-02T03:04:05.25Z "); line != "" {
					got = append(got, line)
				}
			}
			want = slices.DeleteFunc(want, func(line string) bool {
				return strings.TrimPrefix(line, "2026-01-02T03:04:05.25Z ") == ""
			})
			for i := range want {
				want[i] = strings.TrimPrefix(want[i], "2026-01-02T03:04:05.25Z ")
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %q, %v, want %q", runtime, got, err, want)
			}
		}
	})
}
