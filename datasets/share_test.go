package datasets

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/trace/longtest"
)

// The shares of a list are ranges that follow each other, and no other cut has a smaller
// largest range.
func TestShareOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		files := make([]ShareFile, 1+r.IntN(7))
		for i := range files {
			files[i].Size = int64(r.IntN(5)) * int64(r.IntN(50))
		}
		n := 1 + r.IntN(9)
		weight := func(from, to int) (sum int64) {
			for _, f := range files[from:to] {
				sum += f.Size + 1
			}
			return sum
		}
		next, largest := 0, int64(0)
		for i := range n {
			from, to := Share{i, n}.of(files)
			if from != next && from != to || to < from {
				t.Fatalf("share %d of %d of %v is [%d, %d) after %d", i, n, files, from, to, next)
			}
			if to > from {
				next = to
			}
			largest = max(largest, weight(from, to))
		}
		if next != len(files) {
			t.Fatalf("the shares of %v end at %d", files, next)
		}
		var best func(from, left int) int64 // by trying all cuts
		best = func(from, left int) int64 {
			if left == 1 || from == len(files) {
				return weight(from, len(files))
			}
			least := weight(from, len(files))
			for to := from + 1; to < len(files); to++ {
				least = min(least, max(weight(from, to), best(to, left-1)))
			}
			return least
		}
		if want := best(0, n); largest != want {
			t.Fatalf("%d shares of %v: the largest has %d bytes, %d can be had", n, files, largest, want)
		}
	}
}

// writeFiles writes files of a source to a folder.
func writeFiles(t *testing.T, texts []string) (files []File) {
	dir := t.TempDir()
	for i, text := range texts {
		path := filepath.Join(dir, fmt.Sprintf("log-%02d", i))
		content := []byte(text)
		if i%3 == 2 {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			io.WriteString(w, text)
			w.Close()
			content = b.Bytes()
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, fileNamed(path))
	}
	return files
}

// readEntries reads a source to its end, its entries in words.
func readEntries(t *testing.T, files []File, o Options) (out []string, src *Source) {
	t.Helper()
	src, err := OpenFiles(files, o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		said := ""
		for _, m := range e.Messages {
			said += m.Content.Reveal() + "|"
		}
		out = append(out, fmt.Sprint(e.Time.UnixNano(), deref(e.InputTokens), deref(e.OutputTokens), e.SourceBlocks, e.Session.Reveal(), said, e.Parents))
	}
	return out, src
}

func deref(p *int32) int32 {
	if p == nil {
		return -1
	}
	return *p
}

// The entries of all shares, one after the other, are those of the source.
func TestSharesAreTheSource(t *testing.T) {
	longtest.Skip(t)
	r := rand.New(rand.NewPCG(5, 6))
	formats := map[string]func(file, line int) string{
		"openai-log": func(file, line int) string {
			return fmt.Sprintf(`{"timestamp":"2026-01-02T03:%02d:%02dZ","session_id":"s%d","messages":[{"role":"user","content":"hello %d"}],"usage":{"prompt_tokens":%d,"completion_tokens":2}}`, file, line, line%3, line, 5+line)
		},
		// The first file alone tells which is the day and which the month.
		"dates": func(file, line int) string {
			day := 5
			if file == 0 {
				day = 13
			}
			return fmt.Sprintf(`{"timestamp":"%02d/01/2026 03:%02d:%02d","messages":[{"role":"user","content":"hello %d"}],"model":"m"}`, day, file, line, line)
		},
		"numbers": func(file, line int) string {
			return fmt.Sprintf(`{"timestamp":%d,"messages":[{"role":"user","content":"hello %d"}],"model":"m"}`, 1767323045000+1000*file+line, line)
		},
		"mooncake": func(file, line int) string {
			return fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": 3, "hash_ids": [%d, %d]}`, 1000*file+line, 513+line, file, 7+line)
		},
		"azure": func(file, line int) string {
			head := ""
			if line == 0 {
				head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
			}
			return fmt.Sprintf("%s2023-11-16 18:%02d:%02d.1234567,%d,9", head, file, line, 10+line)
		},
		"bad rows": func(file, line int) string {
			if line == 3 {
				return `{"timestamp":"2026-01-02T03:04:05Z","messages":7}`
			}
			return fmt.Sprintf(`{"timestamp":"2026-01-02T03:%02d:%02dZ","prompt":"p %d"}`, file, line, line)
		},
	}
	for name, line := range formats {
		for range 4 {
			var texts []string
			for file := range 1 + r.IntN(8) {
				text := ""
				for l := range r.IntN(12) + 1 {
					text += line(file, l) + "\n"
				}
				if file > 0 && r.IntN(6) == 0 {
					text = ""
				}
				texts = append(texts, text)
			}
			files := writeFiles(t, texts)
			want, src := readEntries(t, files, Options{MaxBad: 1})
			for _, n := range []int{1, 2, 3, 9} {
				var got []string
				var infos []Info
				covered := 0
				for i := range n {
					own, share := readEntries(t, files, Options{MaxBad: 1, Share: &Share{i, n}})
					got = append(got, own...)
					infos = append(infos, share.Info())
					all, from, to := share.ShareFiles()
					sum := int64(0)
					for _, f := range all {
						sum += f.Entries
					}
					if covered += to - from; sum != int64(len(own)) || len(all) != len(files) {
						t.Errorf("%s: share %d of %d has %d entries, and says %+v", name, i, n, len(own), all)
					}
				}
				if covered != len(files) || !slices.Equal(got, want) {
					t.Fatalf("%s: %d shares have\n%s\nand the source\n%s", name, n, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				joined, err := JoinInfos(infos, 1)
				whole := src.Info()
				if err != nil || joined.Records != whole.Records || joined.Bad != whole.Bad || joined.TimeUnit != whole.TimeUnit || joined.Format != whole.Format ||
					joined.HasSessions != whole.HasSessions || !slices.Equal(withoutMixed(joined.Notes), withoutMixed(whole.Notes)) || len(joined.FirstBad) != len(whole.FirstBad) {
					t.Errorf("%s: %d shares found %+v, %v; the source %+v", name, n, joined, err, whole)
				}
				if _, err := JoinInfos(infos, 0); (err != nil) != (whole.Bad > 0) {
					t.Errorf("%s: %d bad records without tolerance: %v", name, whole.Bad, err)
				}
			}
		}
	}
}

// withoutMixed are the notes but for how many ids stand for other tokens elsewhere: of what the other shares
// have a share does not know. The rows are the same, since an end in part is always a block of its own.
func withoutMixed(notes []string) []string {
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return strings.HasPrefix(note, noteMixed) })
}

// An answer in an earlier file is not known in a share, however the files are cut.
func TestSharesDoNotChainAcrossFiles(t *testing.T) {
	row := func(second int, response, previous string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-02T03:04:%02dZ","request":{"model":"m","previous_response_id":%q,"input":"q%d"},"response":{"id":%q,"object":"response","model":"m",`+
			`"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":100,"output_tokens":7}}}`, second, previous, second, response) + "\n"
	}
	first, second := row(1, "r1", "")+row(2, "r2", "r1"), row(3, "r3", "r2")+row(4, "r4", "r3")
	want, _ := readEntries(t, writeFiles(t, []string{first}), Options{})
	alone, _ := readEntries(t, writeFiles(t, []string{second}), Options{}) // as if nothing were before it
	want = append(want, alone...)
	if joined := strings.Join(want, "\n"); strings.Count(joined, "[0]") != 2 || strings.Contains(joined, "q2|a|q3") || !strings.Contains(joined, "q1|a|q2") {
		t.Fatalf("the files alone have\n%s", joined)
	}
	files := writeFiles(t, []string{first, second})
	for _, n := range []int{1, 2} {
		var got []string
		for i := range n {
			own, _ := readEntries(t, files, Options{Share: &Share{i, n}})
			got = append(got, own...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("in %d shares the entries are\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestSharesRefuse(t *testing.T) {
	share := Options{Share: &Share{0, 2}}
	for want, texts := range map[string][]string{
		"links records from file to file": {bailianFormat().Example + "\n", bailianFormat().Example + "\n"},
		"does not say when requests":      {`{"messages":[{"role":"user","content":"a"}]}` + "\n", `{"messages":[{"role":"user","content":"b"}]}` + "\n"},
		"the input is empty":              {"", ""},
	} {
		if _, err := OpenFiles(writeFiles(t, texts), share); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	pipe := []File{{Name: "stdin", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(`{"timestamp":"2026-01-02T03:04:05Z","prompt":"a"}`)), nil
	}}}
	if _, err := OpenFiles(pipe, share); err == nil || !strings.Contains(err.Error(), "only files can be shared") {
		t.Errorf("stdin: %v", err)
	}
	// Files that are joined by their format.
	claude := strings.ReplaceAll(claudeFormat().Example, "\n", "") + "\n"
	share.Format = claudeFormat().Name
	if _, err := OpenFiles(writeFiles(t, []string{claude, claude}), share); err == nil || !strings.Contains(err.Error(), "in one process") {
		t.Errorf("sessions of an agent: %v", err)
	}
}

// Each format is either read in shares as it is as a whole, or refused.
func TestEveryFormatInShares(t *testing.T) {
	refused := []string{"opencode", "swe-agent", "dynamo-requests", "aiperf", "dynamo", "bailian", "weka", "trtllm-trace", "rl-rollouts", "trie",
		"openai-batch", "sharegpt", "chats", "wildchat", "lmsys", "baseten", "tracelab", "tracelab-sessions", "blis"}
	for _, f := range Formats() {
		text := strings.TrimSuffix(f.Example, "\n") + "\n"
		texts := make([]string, 3)
		for i := range texts {
			if texts[i] = text; spanWriters[f.Name] == nil {
				continue
			}
			// A span that comes again is the same one.
			texts[i] = strings.NewReplacer(`"id":"`, fmt.Sprintf(`"id":"%d`, i), `"span_id":"`, fmt.Sprintf(`"span_id":"%d`, i)).Replace(text)
		}
		files := writeFiles(t, texts)
		if src, err := OpenFiles(files, Options{}); err != nil {
			continue // it needs a mapping, or several kinds of files
		} else if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		src, err := OpenFiles(files, Options{Share: &Share{0, 3}})
		if slices.Contains(refused, f.Name) {
			if err == nil || !strings.Contains(err.Error(), "in one process") {
				t.Errorf("%s: %v, want that it is refused", f.Name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		want, _ := readEntries(t, files, Options{})
		var got []string
		for i := range 3 {
			own, _ := readEntries(t, files, Options{Share: &Share{i, 3}})
			got = append(got, own...)
		}
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: in shares\n%s\nas a whole\n%s", f.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// fileNamed is a file of this machine.
func fileNamed(path string) File {
	return File{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}
