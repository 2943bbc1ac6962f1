package audit

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// sourceFile is a log on disk, imported as the command does.
func sourceFile(t testing.TB, path string, timed bool) *Log {
	t.Helper()
	open := func() (*datasets.Source, error) {
		files, err := datasets.Expand(path)
		if err != nil {
			return nil, err
		}
		return datasets.OpenFiles(files, datasets.Options{MaxBad: 0.5, Seed: 1, AllowLongSpan: true})
	}
	src, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 64, SourceBlock: src.Info().BlockSize}
	if p.Tokenizer, err = token.Open("o200k_base"); err != nil {
		t.Fatal(err)
	}
	process, err := arrival.ParseProcess("poisson:2")
	if err != nil {
		t.Fatal(err)
	}
	service, err := arrival.ParseDist("lognormal:5s,1")
	if err != nil {
		t.Fatal(err)
	}
	return &Log{Policy: p, Open: func() (*Opened, error) {
		src, err := open()
		if err != nil {
			return nil, err
		}
		var entries trace.EntryReader = src
		if timed {
			stream := func() *rand.Rand { return arrival.Stream(1, "x") }
			entries = datasets.Timed(src, process.New(stream()), service.New(stream()), service.New(stream()))
		}
		return &Opened{Entries: entries, Close: src.Close, Meta: func(card anonymize.Card) (m trace.Meta, err error) {
			m, err = metaOf(card)
			if card.Totals.Sessions == 0 {
				m.Sessions = "inferred"
			}
			return m, err
		}}, nil
	}}
}

// Published logs of four families, imported, fail no check.
func TestPublishedLogs(t *testing.T) {
	t.Parallel()
	for name, timed := range map[string]bool{"mooncake_conversation.jsonl": false, "azure_llm_2023_code.csv": false, "sharegpt_sample.json": true, "tracelab_example.jsonl": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("../../../shared/data", name)
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				t.Skipf("the published trace %s is not here", name)
			}
			if name == "mooncake_conversation.jsonl" && !longtest.On() {
				path = firstLines(t, path, 2000)
			}
			c := &Case{Log: sourceFile(t, path, timed), Seed: 3}
			defer c.Close()
			src, err := c.Before(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			house := filepath.Join(t.TempDir(), "house.parquet")
			copyTrace(t, src, house)
			for _, path := range []string{house} {
				o, err := OpenOutput(path)
				if err != nil {
					t.Fatal(err)
				}
				c.Output = o
				for _, f := range found(t, c) {
					if f.Status == Fail {
						t.Errorf("%s: %s: %s %v", o.Tier(), f.Status, f.Why, f.Figures)
					}
					if f.Status == Inconclusive {
						t.Logf("%s: %s: %s", o.Tier(), f.Check, f.Why)
					}
				}
				o.Close()
			}
		})
	}
}

// firstLines copies the first lines of a file, and returns the path of the copy.
func firstLines(t *testing.T, path string, n int) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfterN(all, []byte("\n"), n+1)
	path = filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(path, bytes.Join(lines[:n], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyTrace(t *testing.T, src anonymize.Source, path string) {
	t.Helper()
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		rows, err := src.Open()
		if err != nil {
			return trace.Meta{}, err
		}
		_, err = trace.Copy(w, rows)
		return src.Meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
