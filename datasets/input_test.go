package datasets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jsonl", "a.jsonl", ".hidden", "sub/c.jsonl", "empty/.x", "below/s1.log", "below/s1/agents/x.jsonl", "below/s1/.hidden/x", "below/other/x", "below/run/run.traj", "dirs/2026/x.jsonl", ".deep/app/settings.json", ".deep/app/p/s.jsonl", ".deep/data/settings.json", ".deep/data/p/s.jsonl", ".deep/log/a.jsonl", ".deep/log/p/s.jsonl"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		content := name
		if name == ".deep/app/p/s.jsonl" || strings.HasPrefix(name, ".deep/log/") { // files of a known format
			content = claudeFormat().Example
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"":          "[a.jsonl b.jsonl]",
		"a.jsonl":   "[a.jsonl]",
		".hidden":   "[.hidden]",
		"*":         "[a.jsonl b.jsonl]",
		"?.jsonl":   "[a.jsonl b.jsonl]",
		"b*":        "[b.jsonl]",
		".h*":       "[.hidden]",
		"*/*.jsonl": "[sub/c.jsonl]",
		"sub":       "[sub/c.jsonl]",
		"empty":     "error",
		"below":     "[below/s1.log below/run/run.traj below/s1/agents/x.jsonl]",
		"dirs":      "[dirs/2026/x.jsonl]",
		// Settings beside the folders of an agent's sessions do not hide them.
		".deep/app":   "[.deep/app/settings.json .deep/app/p/s.jsonl]",
		".deep/data":  "[.deep/data/settings.json]",
		".deep/log":   "[.deep/log/a.jsonl]",
		"none*":       "error",
		"none":        "error",
		"[":           "error",
		"empty/none*": "error",
	} {
		files, err := Expand(filepath.Join(dir, path))
		got := "error"
		if err == nil {
			var names []string
			for _, f := range files {
				name, err := filepath.Rel(dir, f.Name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r)
				if r.Close() != nil || err != nil || string(b) != filepath.ToSlash(name) && string(b) != claudeFormat().Example {
					t.Errorf("%s holds %q (%v)", name, b, err)
				}
				names = append(names, filepath.ToSlash(name))
			}
			got = fmt.Sprint(names)
		}
		if got != want {
			t.Errorf("%s gives %s (%v), want %s", path, got, err, want)
		}
	}
}

// inFiles are files of a source in memory. How many are open at once, and how
// often each was opened, is counted.
type inFiles struct{ open, opened, most int }

type counted struct {
	io.Reader
	f *inFiles
}

func (c counted) Close() error {
	c.f.open--
	return nil
}

func (f *inFiles) of(contents ...string) []File {
	var files []File
	for i, c := range contents {
		files = append(files, File{Name: fmt.Sprintf("part-%d", i), Open: func() (io.ReadCloser, error) {
			f.open++
			f.opened++
			f.most = max(f.most, f.open)
			return counted{strings.NewReader(c), f}, nil
		}})
	}
	return files
}

func readSource(s *Source, err error) ([]string, Info, error) {
	entries, info, err := readOpened(s, err)
	var all []string
	for i := range entries {
		e := &entries[i]
		all = append(all, fmt.Sprint(summary(e), " parents ", e.Parents, " turn ", e.Turn != nil && *e.Turn > 0))
	}
	return all, info, err
}

// A source in several files reads as it does in one: positions, sessions and
// units go on from file to file.
func TestFilesReadAsOne(t *testing.T) {
	mapped := Options{}
	var err error
	if mapped.Map, err = ParseMapping([]string{"input_tokens=in", "output_tokens=out", "session=s"}); err != nil {
		t.Fatal(err)
	}
	line := func(s, in int) string { return fmt.Sprintf(`{"s":"s%d","in":%d,"out":1}`+"\n", s, in) }
	talk := func(id string) string {
		return `{"id":"` + id + `","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}`
	}
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for name, c := range map[string]struct {
		whole string
		parts []string
		o     Options
	}{
		"jsonl":    {line(1, 10) + line(2, 20) + line(1, 30) + line(2, 40) + line(1, 50), []string{line(1, 10) + line(2, 20), "", line(1, 30), line(2, 40) + line(1, 50)}, mapped},
		"sharegpt": {"[" + talk("x") + "," + talk("x") + "," + talk("y") + "]", []string{"[" + talk("x") + "]", "[" + talk("x") + "," + talk("y") + "]"}, Options{}},
		"mooncake": {string(mooncakeLog()), splitLines(string(mooncakeLog()), 4000, 7), Options{}},
		"azure-2023": {azure + "2023-11-16 18:17:03.9,1,2\n2023-11-16 18:17:04,3,4\n", []string{"", azure + "2023-11-16 18:17:03.9,1,2\n",
			azure + "2023-11-16 18:17:04,3,4\n"}, Options{}},
	} {
		want, info, err := readSource(Open(strings.NewReader(c.whole), c.o))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var f inFiles
		got, infos, err := readSource(OpenFiles(f.of(c.parts...), c.o))
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %d entries, want %d (%v)\n%.300s", name, len(got), len(want), err, strings.Join(got, "\n"))
		}
		if infos.Format != info.Format || infos.Records != info.Records || infos.TimeUnit != info.TimeUnit || infos.BlockSize != info.BlockSize {
			t.Errorf("%s: %+v, want %+v", name, infos, info)
		}
		if f.open != 0 || f.most != 1 {
			t.Errorf("%s: %d files were left open, %d were open at once", name, f.open, f.most)
		}
		var one inFiles
		if _, _, err := readSource(OpenFiles(one.of(c.whole), c.o)); err != nil || one.opened != 1 {
			t.Errorf("%s: a single file was opened %d times (%v)", name, one.opened, err)
		}
	}
}

// splitLines cuts a log behind some of its lines.
func splitLines(log string, lines ...int) []string {
	var parts []string
	for _, n := range lines {
		at := 0
		for range n {
			at += strings.IndexByte(log[at:], '\n') + 1
		}
		parts, log = append(parts, log[:at]), log[at:]
	}
	return append(parts, log)
}

// Positions of a decoder that cannot go on with another's input are shifted.
func TestFilesShiftParents(t *testing.T) {
	c := &fileChain{before: 10}
	shared := []int64{0, 1}
	entries := []trace.Entry{{Parents: shared}, {Parents: shared}, {}}
	c.shift(entries)
	if got := fmt.Sprint(entries[0].Parents, entries[1].Parents, entries[2].Parents, shared); got != "[10 11] [10 11] [] [0 1]" {
		t.Error(got)
	}
}

func TestFilesErrors(t *testing.T) {
	row := `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}` + "\n"
	chat := `{"messages":[{"role":"user","content":"hi"}]}` + "\n"
	for name, c := range map[string]struct {
		files []string
		o     Options
		want  string
	}{
		"none":           {nil, Options{}, "no file"},
		"all empty":      {[]string{"", ""}, Options{}, "part-1:1:1: the input is empty"},
		"mixture":        {[]string{row, row, chat}, Options{}, "the files are of several formats: 2 of mooncake, such as part-0; 1 of openai-log, such as part-2. Import each format by itself"},
		"bad record":     {[]string{row, row + "\n{}\n" + row}, Options{}, "part-1:3:1"},
		"cut off":        {[]string{row + row[:20], row}, Options{}, "part-0:2:21: unexpected end"},
		"cut off later":  {[]string{row, row + row[:20]}, Options{}, "part-1:2:21: unexpected end"},
		"unknown":        {[]string{"what", row}, Options{}, "part-0:1:1"},
		"unknown format": {[]string{row, row}, Options{Format: "none"}, "unknown format"},
		"time unit":      {[]string{row, strings.Replace(row, ": 0,", ": 1700000000000,", 1)}, Options{}, "part-1:1"},
	} {
		var f inFiles
		_, _, err := readSource(OpenFiles(f.of(c.files...), c.o))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := File{Name: "gone", Open: func() (io.ReadCloser, error) { return nil, os.ErrNotExist }}
	if _, err := OpenFiles([]File{gone}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there gave %v", err)
	}
	var f inFiles
	s, err := OpenFiles(f.of(row+row, row), Options{})
	if err != nil || s.Close() != nil || f.open != 0 {
		t.Errorf("%d files are open behind Close (%v)", f.open, err)
	}
	if _, err := OpenFiles(f.of(row), Options{MaxBad: 2}); !errors.Is(err, fault.ErrUsage) || f.open != 0 {
		t.Errorf("%d files are open behind %v", f.open, err)
	}
}
