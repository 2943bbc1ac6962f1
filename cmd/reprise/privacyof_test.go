package main

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/result"
	"reprise/trace"
)

// Results, and their page, say what the privacy card of their workload says; a card
// that was changed is not taken for one.
func TestResultsNameTheCard(t *testing.T) {
	dir := t.TempDir()
	source, results, page := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "r.parquet"), filepath.Join(dir, "r.html")
	must(t, "import", "../../datasets/demo.jsonl.gz", "-o", source, "--quiet")
	must(t, "simulate", source, "--preset", "l4-qwen2.5-0.5b", "-o", results, "--html", page, "--quiet")
	w, err := trace.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if p := r.Run.Privacy; p == nil || p.Card != w.Meta.CardHash || p.Unit == "" || len(p.Risks) == 0 {
		t.Errorf("privacy %+v, the card is %s", p, w.Meta.CardHash)
	}
	if html := string(read(t, page)); !strings.Contains(html, "Privacy card") || !strings.Contains(html, w.Meta.CardHash[:8]) {
		t.Error("the page does not name the card")
	}
	w.Meta.Card = strings.Replace(w.Meta.Card, "e", "a", 1)
	if _, err := runs.PrivacyOf(&w.Meta); err == nil {
		t.Error("a changed card was taken")
	}
}
