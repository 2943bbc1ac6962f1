package anonymize_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/shard"
	"reprise/trace/token"
)

// newSharedKey writes a key to a file and reads it.
func newSharedKey(t testing.TB) *anonymize.SharedKey {
	t.Helper()
	var key [32]byte
	rand.Read(key[:])
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(hex.EncodeToString(key[:])), 0o400); err != nil {
		t.Fatal(err)
	}
	k, err := anonymize.OpenSharedKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// shardsOf imports files in shards to a folder. Each shard has the files up to its cut.
func shardsOf(t testing.TB, dir string, p anonymize.Policy, key *anonymize.SharedKey, files [][]trace.Entry, cuts []int) *shard.Set {
	t.Helper()
	all := make([]shard.File, len(files))
	for i := range files {
		all[i] = shard.File{Name: fmt.Sprint("log", i), Size: int64(1000 + i), Rows: int64(len(files[i]))}
	}
	from := 0
	for i, to := range cuts {
		own := entries(slices.Concat(files[from:to]...))
		head := entries(slices.Concat(files...))
		err := shard.Write(filepath.Join(dir, shard.Name(i, len(cuts))), func(dst trace.Writer[shard.Row]) (shard.Meta, error) {
			m := shard.Meta{Index: i, Of: len(cuts), Tool: "test", Inputs: shard.InputsOf(all), First: from, Files: all[from:to]}
			err := anonymize.EncodeShard(t.Context(), p, key, &head, &own, dst, &m)
			return m, err
		})
		if err != nil {
			t.Fatal(err)
		}
		from = to
	}
	set, err := shard.Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// mergeOf merges shards.
func mergeOf(t testing.TB, set *shard.Set, p anonymize.Policy, key *anonymize.SharedKey) ([]trace.Request, anonymize.Card, error) {
	var out keep
	card, _, err := anonymize.MergeShards(t.Context(), anonymize.Policy{Tier: anonymize.Internal, SpillDir: p.SpillDir}, key, set, &out)
	return out, card, err
}

// randomFiles are the files of a log, with most of what entries can have: text that goes on
// from file to file, text and counts that are apart, text that is hashed, ids of the source's
// own, cached tokens alone; sessions, users, answers and ties of arrival.
func randomFiles(r *mrand.Rand, kind int) (files [][]trace.Entry) {
	talks := map[string][]trace.Message{}
	ms := 0
	for range 1 + r.IntN(9) {
		var file []trace.Entry
		for range r.IntN(40) {
			ms += r.IntN(3) * 10
			topic := fmt.Sprint("topic", r.IntN(8))
			e := trace.Entry{Time: at(ms - r.IntN(200)/50*40), Model: trace.NewText([]string{"a", "b"}[r.IntN(2)]), OutputTokens: trace.Ptr(int32(r.IntN(60)))}
			if r.IntN(3) > 0 {
				e.User = trace.NewText(fmt.Sprint("user", r.IntN(6)))
			}
			if kind%2 == 0 && r.IntN(3) > 0 {
				e.Session = trace.NewText(topic)
			}
			if r.IntN(12) == 0 {
				e.Status = trace.StatusFailed
			}
			if len(file) > 0 && r.IntN(4) == 0 {
				e.Parents = []int64{int64(r.IntN(len(file)))}
			}
			if r.IntN(5) == 0 {
				e.Adapter, e.Salt, e.Class = trace.NewText("lora"), trace.NewText("salt"), trace.NewText("gold")
			}
			if kind%5 == 1 {
				e.Response = trace.NewText(fmt.Sprint("answer", len(files), "-", len(file)))
				if len(file) > 0 && r.IntN(2) == 0 {
					e.Previous = trace.NewText(fmt.Sprint("answer", len(files), "-", r.IntN(len(file))))
				}
			}
			switch kind % 4 {
			case 0, 1: // text
				if len(talks[topic]) == 0 || r.IntN(9) == 0 {
					talks[topic] = []trace.Message{{Role: trace.System, Content: trace.NewText(fmt.Sprint("You are agent ", r.IntN(2), " of many, and polite to all."))}}
				}
				talks[topic] = append(talks[topic], trace.Message{Role: trace.User, Content: text(topic+" question", 1+r.IntN(30))})
				e.Messages, e.Kind = slices.Clone(talks[topic]), "chat"
				reply := text(topic+" answer", 1+r.IntN(20))
				e.Reply, e.OutputTokens = &reply, nil
				talks[topic] = append(talks[topic], trace.Message{Role: trace.Assistant, Content: reply})
				if kind%3 == 0 { // the server counts more than the text has
					n := 0
					for _, m := range e.Messages {
						n += m.Content.Len()/4 + 5
					}
					e.InputTokens = trace.Ptr(int32(n))
				}
			case 2: // ids of the source's own
				from := uint64(r.IntN(300))
				for i := range uint64(r.IntN(30)) {
					e.SourceBlocks = append(e.SourceBlocks, from+i)
				}
				e.InputTokens = trace.Ptr(int32(max(0, len(e.SourceBlocks)*16-r.IntN(16))))
			case 3: // lengths, and what was cached
				n := int32(100 + r.IntN(900))
				e.InputTokens, e.Cached = &n, trace.Ptr([]int32{0, 64, 64, 64, min(n, int32(r.IntN(900)))}[r.IntN(5)])
				if r.IntN(2) == 0 {
					e.PrefixKey = trace.NewText(fmt.Sprint("key", r.IntN(3)))
				}
			}
			file = append(file, e)
		}
		files = append(files, file)
	}
	return files
}

// wholeOf is the source that files are, with parents as it has them.
func wholeOf(files [][]trace.Entry) (all []trace.Entry) {
	for _, file := range files {
		before := int64(len(all))
		for _, e := range file {
			for i, p := range e.Parents {
				if i == 0 {
					e.Parents = slices.Clone(e.Parents)
				}
				e.Parents[i] = before + p
			}
			all = append(all, e)
		}
	}
	return all
}

// An import in shards has the rows of one process, however the files are cut.
func TestShardsAreTheWhole(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := mrand.New(mrand.NewPCG(3, 9))
	counts := map[string]int{}
	for round := range oftener(16, 120) {
		p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, SpillDir: t.TempDir(), KeepModel: round%2 == 0, Lengths: []string{"", "usage", "text"}[round%3]}
		switch round % 4 {
		case 0, 1:
			p.Tokenizer = policy(t).Tokenizer
			if round%8 < 4 {
				p.KTemplate = 2 + r.IntN(4)
			}
			p.Template, _ = token.OpenTemplate([]string{"auto", "none"}[round/8%2])
		case 2:
			p.SourceBlock = 16
		}
		files := randomFiles(r, round)
		var whole keep
		e := entries(wholeOf(files))
		want, wantErr := anonymize.Run(t.Context(), p, &e, &whole)
		key := newSharedKey(t)
		for range 3 {
			cuts := []int{len(files)}
			for range r.IntN(2 * len(files)) { // some shards have no files
				cuts = append(cuts, r.IntN(len(files)+1))
			}
			slices.Sort(cuts)
			rows, card, err := mergeOf(t, shardsOf(t, t.TempDir(), p, key, files, cuts), p, key)
			if wantErr != nil || err != nil {
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("round %d: in shards %v, in one process %v", round, err, wantErr)
				}
				counts["refused"]++
				continue
			}
			if digest(rows) != digest(whole) {
				for i := range whole {
					if !reflect.DeepEqual(rows[i], whole[i]) {
						a, _ := json.Marshal(rows[i])
						b, _ := json.Marshal(whole[i])
						t.Fatalf("round %d, cuts %v: row %d of %d is\n%s, in one process\n%s", round, cuts, i, len(whole), a, b)
					}
				}
			}
			card.Totals.SpillBytes, want.Totals.SpillBytes = 0, 0
			if !reflect.DeepEqual(card.Totals, want.Totals) {
				t.Fatalf("round %d: totals %+v, in one process %+v", round, card.Totals, want.Totals)
			}
			if !reflect.DeepEqual(promptsOf(t, card), promptsOf(t, want)) {
				t.Fatalf("round %d: system prompts %s, in one process %s", round, promptsOf(t, card), promptsOf(t, want))
			}
			if a, b := card.Breakers, want.Breakers; (a == nil) != (b == nil) || a != nil && (a.Requests != b.Requests || a.PromptTokens != b.PromptTokens || a.Searched != b.Searched || a.DurationS != b.DurationS) {
				t.Fatalf("round %d: breakers %+v, in one process %+v", round, a, b)
			}
			counts["equal"]++
			if want.Templates != nil {
				counts["prompts"] += want.Templates.Len()
			}
			if want.Totals.Sources.Estimated > 0 {
				counts["inferred"]++
			}
			if len(whole) > 1 && whole[0].ArrivalNS == whole[1].ArrivalNS {
				counts["ties"]++
			}
		}
	}
	for _, what := range []string{"equal", "prompts", "inferred", "ties"} {
		if counts[what] == 0 {
			t.Errorf("no case with %s", what)
		}
	}
	t.Log(counts)
}

func promptsOf(t testing.TB, c anonymize.Card) string {
	var b bytes.Buffer
	if c.Templates != nil {
		if err := c.Templates.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// System prompts of fewer than k users stay sealed: no shard has their text, and the merge
// needs the key for those that it opens.
func TestShardsSealPrompts(t *testing.T) {
	p := policy(t)
	p.KTemplate = 3
	var files [][]trace.Entry
	for i := range 4 { // each file has two users of the one and one of the other
		files = append(files, chat("gardening", fmt.Sprint("user", 2*i), 1000*i, 1, 0), chat("cooking", fmt.Sprint("user", 2*i+1), 1000*i+1, 1, 0))
	}
	few := chat("secret", "user1", 9000, 1, 0)
	few[0].Messages = slices.Clone(few[0].Messages)
	few[0].Messages[0].Content = trace.NewText("The operator's rare instruction.")
	files = append(files, few)
	key := newSharedKey(t)
	dir := t.TempDir()
	rows, card, err := mergeOf(t, shardsOf(t, dir, p, key, files, []int{2, 4, 6, 8, 9}), p, key)
	if err != nil || len(rows) != 9 {
		t.Fatal(len(rows), err)
	}
	if got := promptsOf(t, card); !strings.Contains(got, "answers at length") || strings.Contains(got, "rare") || card.Templates.Len() != 1 {
		t.Errorf("kept: %s", got)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 5 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"answers at length", "rare instruction", "user1", "gardening"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
	set, err := shard.Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := mergeOf(t, set, p, nil); !errors.Is(err, anonymize.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	if _, _, err := mergeOf(t, set, p, newSharedKey(t)); err == nil || !strings.Contains(err.Error(), "not the key of the shards") {
		t.Errorf("with another key: %v", err)
	}
}
