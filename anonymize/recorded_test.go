package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/recording"
	"reprise/trace/token"
)

// Rows that were recorded one at a time, by several encoders and out of order, make the
// same trace as the log of the same requests, to the digest and in every total.
func TestRecordedAsImported(t *testing.T) {
	var src []trace.Entry
	for i := range 12 {
		src = append(src, chat(fmt.Sprint("topic", i%9), fmt.Sprint("user", i%3), (i*7919)%5000, 1+i%4, len(src))...)
	}
	for i := range src {
		src[i].Parents, src[i].Think = nil, nil // a recorder has them from the ends of answers
		src[i].Model, src[i].Adapter, src[i].Class = trace.NewText(fmt.Sprint("m", i%2)), trace.NewText("lora"), trace.NewText("batch")
		src[i].TTFT, src[i].E2E = trace.Ptr(time.Duration(i)), trace.Ptr(time.Second)
		switch i % 7 {
		case 3:
			src[i].InputTokens = trace.Ptr(int32(9_000)) // as the server counts: far more than the text
		case 4:
			src[i].InputTokens, src[i].Cached = trace.Ptr(int32(30)), trace.Ptr(int32(16))
		case 5:
			src[i].Status = trace.StatusFailed
		}
	}
	p := policy(t)
	var err error
	if p.Template, err = token.OpenTemplateAny("none"); err != nil {
		t.Fatal(err)
	}
	p.Capture, p.Lengths = trace.Capture{Begin: at(-1000), End: at(10_000_000)}, anonymize.LengthsUsage
	want, wantCard := run(t, p, src)

	rec, err := anonymize.NewRecording(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var encoders []*anonymize.RowEncoder
	for range 3 {
		e, err := rec.Encoder()
		if err != nil {
			t.Fatal(err)
		}
		encoders = append(encoders, e)
	}
	rows := make([]recording.Row, len(src))
	for n, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(src)) {
		if rows[i], err = encoders[n%3].Encode(&src[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows {
		if text := fmt.Sprintf("%+v", r); strings.Contains(text, "topic") || strings.Contains(text, "user1") || r.Request.Model == "m1" || r.SessionID == "" && r.UserID == "" {
			t.Fatalf("a row names what it should not: %s", text)
		}
	}
	meta := recording.Meta{BlockSize: 16, Tokenizer: "o200k_base", Begin: p.Capture.Begin, End: p.Capture.End}
	var got keep
	card, err := anonymize.MergeRecorded(t.Context(), anonymize.Policy{Tier: anonymize.Internal}, meta, &trace.SliceReader[recording.Row]{Rows: rows}, &got)
	if err != nil {
		t.Fatal(err)
	}
	linked := 0
	for i := range got {
		linked += len(got[i].Parents)
		got[i].Parents, got[i].ThinkNS, got[i].ToolNS = nil, nil, nil
	}
	if linked == 0 {
		t.Error("no turn follows another")
	}
	if digest(got) != digest(want) {
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("row %d:\n%+v\n%+v", i, got[i], want[i])
			}
		}
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	if card.Tokenizer != wantCard.Tokenizer || !reflect.DeepEqual(card.Totals, wantCard.Totals) {
		t.Errorf("totals %+v\nwant   %+v", card.Totals, wantCard.Totals)
	}
}

// A next turn follows the request of its session that ended last before it, by the time
// that a user thought or a tool ran; what came while that was in flight follows nothing.
func TestRecordedTurns(t *testing.T) {
	src := chat("topic", "user", 0, 4, 0)
	asked := len(src[2].Messages)
	src[2].Messages = append(src[2].Messages[:asked-1:asked-1], trace.Message{Role: trace.Tool, Content: src[2].Messages[asked-1].Content})
	for i, ms := range []int{400, 1500, 300, 100} { // turns are a second apart: the third came during the second
		src[i].E2E, src[i].Parents, src[i].Think = trace.Ptr(time.Duration(ms)*time.Millisecond), nil, nil
	}
	src = append(src, chat("another", "user", 50, 1, 0)...)
	rec, err := anonymize.NewRecording(policy(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := rec.Encoder()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]recording.Row, len(src))
	for i := range src {
		if rows[i], err = e.Encode(&src[i]); err != nil {
			t.Fatal(err)
		}
	}
	meta := recording.Meta{BlockSize: 16, Tokenizer: "o200k_base", Begin: at(-1000), End: at(10_000_000)}
	var got keep
	if _, err := anonymize.MergeRecorded(t.Context(), anonymize.Policy{Tier: anonymize.Internal}, meta, &trace.SliceReader[recording.Row]{Rows: rows}, &got); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range got {
		wait := func(ns *int64) string {
			if ns == nil {
				return "-"
			}
			return time.Duration(*ns).String()
		}
		said = append(said, fmt.Sprint(r.Parents, wait(r.ThinkNS), wait(r.ToolNS)))
	}
	if want := "[]-- []-- [0]600ms- [0]-1.6s [2]500ms-"; strings.Join(said, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(said, " "), want)
	}
}

// Under a template that is not known, next turns go on from nearly all of the turns before them,
// and nothing is learnt of other requests: the ids of a conversation are those that it has alone.
func TestRecordedUnderUnknownTemplate(t *testing.T) {
	p := policy(t)
	p.Workers = 1
	src := talks(16, 6)
	plain, _ := run(t, p, src)
	for i := range src {
		n := plain[i].InputTokens + 14 + 14*int32(len(src[i].Messages))
		src[i].InputTokens = &n
	}
	rec, err := anonymize.NewRecording(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := rec.Encoder()
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]recording.Row{}
	shared, of := 0, 0 // blocks that next turns have of the turns before them
	for i := range src {
		row, err := e.Encode(&src[i])
		if err != nil {
			t.Fatal(err)
		}
		if *row.TextTokens != plain[i].InputTokens {
			t.Errorf("row %d: the text counts %d tokens, want %d", i, *row.TextTokens, plain[i].InputTokens)
		}
		if before, ok := last[row.SessionID]; ok {
			full := block.Full(int(before.Request.InputTokens), 16)
			chain := slices.Concat(recording.Blocks(nil, before.Request.Blocks)[:full], recording.Blocks(nil, before.Request.OutputBlocks))
			n := 0
			for next := recording.Blocks(nil, row.Request.Blocks); n < len(chain) && n < len(next) && chain[n] == next[n]; n++ {
			}
			shared, of = shared+n, of+len(chain)
		}
		last[row.SessionID] = row
	}
	if lost := of - shared; lost > of/20 {
		t.Errorf("next turns lack %d of %d blocks of the turns before them", lost, of)
	}
}

// Recorders with one key give a prompt the same ids, however many requests each has seen.
func TestRecordersLearnNothing(t *testing.T) {
	p := policy(t)
	p.Workers = 1
	src := talks(16, 6)
	plain, _ := run(t, p, src)
	for i := range src {
		n := plain[i].InputTokens + 14 + 14*int32(len(src[i].Messages))
		src[i].InputTokens = &n
	}
	key, _, err := anonymize.OpenKeyFile(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	last := func(src []trace.Entry) (row recording.Row) {
		rec, err := anonymize.NewRecording(p, key)
		if err != nil {
			t.Fatal(err)
		}
		e, err := rec.Encoder()
		if err != nil {
			t.Fatal(err)
		}
		for i := range src {
			if row, err = e.Encode(&src[i]); err != nil {
				t.Fatal(err)
			}
		}
		return row
	}
	extra := chat("a topic of its own", "u", 0, 1, 0)[0]
	extra.Kind, extra.Model, extra.InputTokens = "chat", trace.NewText("m"), trace.Ptr(int32(200))
	if busy, idle := last(append(src, extra)), last([]trace.Entry{extra}); !slices.Equal(busy.Request.Blocks, idle.Request.Blocks) {
		t.Error("a recorder that has seen 96 requests gives a prompt other ids than one that has seen none")
	}
}

// Two recordings share no prefix, since each has a key of its own, unless they share that;
// then their samples have the same sessions too.
func TestRecordingsApart(t *testing.T) {
	src := chat("topic", "user", 0, 1, 0)
	path := filepath.Join(t.TempDir(), "key")
	shared, _, err := anonymize.OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, key := range []*anonymize.SharedKey{nil, nil, shared, shared} {
		rec, err := anonymize.NewRecording(policy(t), key)
		if err != nil {
			t.Fatal(err)
		}
		e, err := rec.Encoder()
		if err != nil {
			t.Fatal(err)
		}
		row, err := e.Encode(&src[0])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(row.Request.Blocks, row.UserID, row.SessionID, rec.Draw("s")))
		if d := rec.Draw("s"); d < 0 || d >= 1 {
			t.Errorf("draws %v", d)
		}
	}
	if ids[0] == ids[1] || ids[0] == ids[2] || ids[2] != ids[3] {
		t.Errorf("%v", ids)
	}
}

// A key file is its owner's alone, is made once, and nothing prints what it holds.
func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	ids := make(chan string, 8)
	for range 8 {
		go func() {
			key, _, err := anonymize.OpenKeyFile(path)
			if err != nil {
				ids <- err.Error()
				return
			}
			ids <- key.ID()
		}()
	}
	id := <-ids
	for range 7 {
		if other := <-ids; other != id || len(id) != 32 {
			t.Errorf("%s and %s", id, other)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
	key, created, err := anonymize.OpenKeyFile(path)
	if err != nil || created {
		t.Errorf("created %v, %v", created, err)
	}
	if said := fmt.Sprintf("%v %+v %#v %s", key, *key, key, id); strings.Contains(said, string(text[:8])) || strings.Contains(said, fmt.Sprint(key.ID()[:8]+string(text[:8]))) {
		t.Errorf("it prints itself: %s", said)
	}
	for content, want := range map[string]string{
		"":                              "it holds no key: want 64 hexadecimal digits, such as openssl rand -hex 32 prints",
		strings.Repeat("x", 64):         "it holds no key: want 64 hexadecimal digits, such as openssl rand -hex 32 prints",
		string(text[:64]) + "\n00":      "it holds no key: want 64 hexadecimal digits, such as openssl rand -hex 32 prints",
		strings.Repeat("ab", 32) + "\n": "its key is not random: all bytes are the same",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := anonymize.OpenKeyFile(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("%q: %v", content, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, err := anonymize.OpenKeyFile(path); err == nil || err.Error() != path+": others than its owner have access to it (mode 0640): run chmod 600 on it, or name a new file if they may have read it" {
		t.Error(err)
	}
	if _, _, err := anonymize.OpenKeyFile(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Error(err)
	}
}

// Prompts that were sent as token ids have blocks, and share those that begin alike; where
// the server counts more than the ids, something stood before them, and there are none.
func TestRecordedIDs(t *testing.T) {
	rec, err := anonymize.NewRecording(policy(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := rec.Encoder()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uint32, 40)
	var rows []recording.Row
	for _, c := range []struct {
		last    uint32
		counted int32
	}{{1, 40}, {2, 40}, {1, 41}} {
		ids[39] = c.last
		row, err := e.Encode(&trace.Entry{Time: at(0), Kind: "completion", PromptIDs: ids, InputTokens: trace.Ptr(c.counted), OutputTokens: trace.Ptr(int32(1))})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	a, b := rows[0].Request.Blocks, rows[1].Request.Blocks
	if len(a) != 6 || len(b) != 6 || !reflect.DeepEqual(a[:4], b[:4]) || reflect.DeepEqual(a[4:], b[4:]) || len(rows[2].Request.Blocks) != 0 {
		t.Errorf("%v\n%v\n%v", a, b, rows[2].Request.Blocks)
	}
	if r := rows[1].Request; r.InputTokens != 40 || r.ReuseSource != trace.ReuseText || rows[2].Request.InputTokens != 41 {
		t.Errorf("%+v", rows)
	}
	var merged keep
	meta := recording.Meta{Begin: at(-1), End: at(1), BlockSize: 16, Template: "none"}
	if _, err := anonymize.MergeRecorded(t.Context(), anonymize.Policy{Tier: anonymize.Internal}, meta, &trace.SliceReader[recording.Row]{Rows: rows}, &merged); err != nil {
		t.Fatal(err)
	}
	if len(merged) != 3 || !reflect.DeepEqual(merged[0].Blocks, []uint64{0, 1, 2}) || !reflect.DeepEqual(merged[1].Blocks, []uint64{0, 1, 3}) {
		t.Errorf("merged: %+v", merged)
	}
}
