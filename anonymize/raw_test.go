package anonymize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/token"
)

// rawEntries are requests of which each names its instant and its place.
func rawEntries(r *rand.Rand, n int) []trace.Entry {
	entries := make([]trace.Entry, n)
	for i := range entries {
		at := int64(r.IntN(n))
		e := trace.Entry{Time: time.Unix(1_700_000_000+at, 0)}
		e.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(fmt.Sprintf("%08d %08d", at, i))}}
		if i%3 == 0 {
			e.Reply = trace.Ptr(trace.NewText("reply"))
		}
		if i%5 == 0 {
			e.Kind = "completion"
		}
		if i%2 == 0 {
			e.Fields = trace.NewText(fmt.Sprintf(`{"seed":%d}`, i))
		}
		entries[i] = e
	}
	return entries
}

type rawSource struct{ rest []trace.Entry }

func (s *rawSource) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, s.rest)
	s.rest = s.rest[n:]
	if len(s.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// rawRun imports entries with their text and returns the trace's metadata and the
// path of the raw file.
func rawRun(t testing.TB, entries []trace.Entry) (trace.Meta, string) {
	t.Helper()
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.raw.parquet")
	f, err := trace.CreateFile(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var rows trace.SliceWriter[trace.Request]
	p := Policy{Tier: Internal, BlockSize: 16, Tokenizer: tok, Workers: 3, Raw: f, SpillDir: t.TempDir()}
	card, err := Run(t.Context(), p, &rawSource{entries}, &rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	d := trace.NewDigest()
	d.Add(rows.Rows)
	if !slices.Contains(card.Risks, rawRisk) {
		t.Error("the card says nothing of the text")
	}
	return trace.Meta{Digest: d.Sum(), Raw: card.Raw}, path
}

// Text comes out in the order of the rows, those of one instant in the order of
// the source.
func TestRawFollowsRows(t *testing.T) {
	entries := rawEntries(rand.New(rand.NewPCG(1, 1)), 700)
	var want []string
	kinds := map[string]string{}
	for i := range entries {
		s := entries[i].Messages[0].Content.Reveal()
		want = append(want, s)
		kinds[s] = trace.ClosedKind(entries[i].Kind)
	}
	slices.Sort(want)
	meta, path := rawRun(t, slices.Clone(entries))
	r, err := OpenRaw(path, meta)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for row, s := range want {
		chat, b, fields, err := r.AppendInput(int64(row), kinds[s], []byte("{"))
		if err != nil {
			t.Fatal(err)
		}
		at, members := 0, ""
		if _, err := fmt.Sscanf(s[9:], "%d", &at); err == nil && at%2 == 0 {
			members = fmt.Sprintf(`{"seed":%d}`, at)
		}
		if string(fields) != members {
			t.Fatalf("row %d, %q: other members %s, want %s", row, s, fields, members)
		}
		var body struct {
			Prompt   string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(append(b, '}'), &body); err != nil {
			t.Fatal(err)
		}
		got := body.Prompt
		if chat {
			got = body.Messages[0].Content
		}
		if got != s || chat != (kinds[s] == "chat") {
			t.Fatalf("row %d: %q, chat %v; want %q", row, got, chat, s)
		}
	}
	for _, row := range []int64{-1, int64(len(want))} {
		if _, _, _, err := r.AppendInput(row, "chat", nil); err == nil {
			t.Errorf("row %d has text", row)
		}
	}
	if _, _, _, err := r.AppendInput(0, "embedding", nil); err == nil {
		t.Error("an embedding was made a prompt")
	}
}

// A file with other text, or of other rows, is refused.
func TestRawRefuses(t *testing.T) {
	entries := rawEntries(rand.New(rand.NewPCG(2, 2)), 20)
	meta, path := rawRun(t, slices.Clone(entries))
	entries[7].Messages[0].Content = trace.NewText("changed")
	_, changed := rawRun(t, entries)
	if _, err := OpenRaw(changed, meta); err == nil {
		t.Error("another file was opened")
	}
	other := meta
	other.Digest = "sha256:0"
	if _, err := OpenRaw(path, other); err == nil {
		t.Error("the file of other rows was opened")
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRaw(path, meta); err == nil {
		t.Error("a file that all may read was opened")
	}
}

// The digest is of what is in the file: one that claims another's is refused too.
func TestRawDigestIsChecked(t *testing.T) {
	entries := rawEntries(rand.New(rand.NewPCG(3, 3)), 20)
	meta, path := rawRun(t, slices.Clone(entries))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := newRawKeeper(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer text.close()
	p, err := trace.OpenParquet(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := text.fill(p, rawDigestOf("another nonce"), meta.Raw); err == nil {
		t.Error("text with another digest was taken")
	}
}

// Nothing of a source is kept unless it is asked for, and then only where there is
// text.
func TestRawNeedsText(t *testing.T) {
	var rows trace.SliceWriter[trace.Request]
	_, err := Run(t.Context(), Policy{Tier: Internal, BlockSize: 16, Raw: &strings.Builder{}}, &rawSource{}, &rows)
	if err == nil {
		t.Error("text was kept of a source without")
	}
}

func FuzzRawCode(f *testing.F) {
	f.Add((&rawRow{}).append(nil))
	f.Add((&rawRow{Messages: []rawMessage{{"user", "hello", "[]", "c", "n"}}, Tools: "[]", Reply: trace.Ptr("r"), ReplyCalls: "c"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var row, again rawRow
		if row.decode(b) != nil {
			return
		}
		text := row.append(nil)
		if err := again.decode(text); err != nil || !bytes.Equal(again.append(nil), text) {
			t.Errorf("%v", err)
		}
	})
}

func FuzzOpenRaw(f *testing.F) {
	meta, path := rawRun(f, rawEntries(rand.New(rand.NewPCG(4, 4)), 3))
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	name := filepath.Join(f.TempDir(), "fuzz")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := OpenRaw(name, meta); err == nil {
			r.Close()
		}
	})
}
