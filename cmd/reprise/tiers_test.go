package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// tierOf is what a Parquet file says of its tier.
func tierOf(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := trace.OpenParquet(in, info.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	tier, _ := f.Lookup("reprise.tier")
	return tier
}

// tierOfJSON is what a document says of its tier, in itself, in what it says of
// its run, or in its first element.
func tierOfJSON(t *testing.T, doc string) string {
	t.Helper()
	type said struct {
		Tier string
		Run  struct{ Tier string }
	}
	var one said
	if strings.HasPrefix(strings.TrimSpace(doc), "[") {
		var list []said
		if err := json.Unmarshal([]byte(doc), &list); err != nil || len(list) == 0 {
			t.Fatalf("%v: %s", err, doc)
		}
		one = list[0]
	} else if err := json.Unmarshal([]byte(doc), &one); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	if one.Tier == "" {
		return one.Run.Tier
	}
	return one.Tier
}

// Every kind of output has the tier of the trace that it was made of: Parquet in
// its metadata, JSON in a field, pages and tables on their face.
func TestOutputsInheritTheTier(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.jsonl", []byte(sharingLog(60)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log.jsonl", "-o", "internal.parquet")
	chatsTrace(t, "chats.parquet", 8000)
	must(t, "anonymize", "chats.parquet", "--epsilon", "50", "--i-understand", "-o", "partner.parquet") // noise that never decides whether it is released
	face := map[string]string{"internal": "is internal: not for release", "partner": "is of tier partner: for a partner under contract"}
	engine := []string{"--preset", "l4-qwen2.5-0.5b", "--quiet"}
	for tier, note := range face {
		in := tier + ".parquet"
		profiled := must(t, "profile", in, "--histograms", "h.parquet", "--html", "p.html")
		must(t, "synth", "fit", in, "--k-swap", "1", "-o", "m.parquet") // swaps take long, and have no say in tiers
		must(t, "synth", "fit", "h.parquet", "-o", "hm.parquet")
		must(t, "synth", "m.parquet", "-o", "w.parquet")
		must(t, "synth", "hm.parquet", "-o", "hw.parquet")
		must(t, "synth", "--mirror", in, "-o", "mirror.parquet")
		must(t, "slice", in, "--end", "10s", "-o", "s.parquet")
		reprise(t, append([]string{"simulate", "w.parquet", "-o", "r.parquet"}, engine...)...)
		for _, file := range []string{in, "h.parquet", "m.parquet", "hm.parquet", "w.parquet", "hw.parquet", "mirror.parquet", "s.parquet", "r.parquet"} {
			if got := tierOf(t, file); got != tier {
				t.Errorf("%s of a trace of tier %s is of tier %q", file, tier, got)
			}
		}
		if !strings.Contains(profiled, tier) {
			t.Errorf("the tables of a profile do not say %s", tier)
		}
		reported, _, _ := reprise(t, "report", "r.parquet", "--html", "r.html")
		compared, _, _ := reprise(t, "fidelity", in, "w.parquet", "--html", "f.html")
		simulated, _, _ := reprise(t, append([]string{"simulate", "w.parquet"}, engine...)...)
		for name, text := range map[string]string{"report": reported, "fidelity": compared, "simulate": simulated, "profile page": contents(t, "p.html"),
			"report page": contents(t, "r.html"), "fidelity page": contents(t, "f.html")} {
			if !strings.Contains(squeeze(text), note) {
				t.Errorf("%s of tier %s does not say so on its face", name, tier)
			}
		}
		for _, args := range [][]string{{"profile", in, "--json"}, {"report", "r.parquet", "--json"}, {"fidelity", in, "w.parquet", "--json"},
			append([]string{"simulate", "w.parquet", "--json"}, engine...), {"anonymize", "--card", in, "--json"}} {
			if out, _, _ := reprise(t, args...); tierOfJSON(t, out) != tier {
				t.Errorf("%v of tier %s says %q", args, tier, tierOfJSON(t, out))
			}
		}
		if _, errs, code := reprise(t, "export", in, "--to", "mooncake", "-o", "x.jsonl"); code != cli.Good || !strings.Contains(errs, note) {
			t.Errorf("export of tier %s: exit code %d\n%s", tier, code, errs)
		}
	}
}

// What is made of files of two tiers is of the stricter one, and what an import
// prints of the log is internal, whatever it releases.
func TestStricterTierWins(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.jsonl", []byte(sharingLog(60)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("long.jsonl", []byte(sharingLog(4000)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := reprise(t, "import", "long.jsonl", "--json", "--tier", "partner", "--unit", "request", "--epsilon", "50", "--max-input", "16384", "--max-output", "1024", "--i-understand", "--capture-begin", "0s", "--capture-end", "1h", "--ledger", "l.jsonl", "-o", "partner.parquet")
	if code != cli.Good {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	if got := tierOfJSON(t, out); got != anonymize.Internal || !strings.Contains(out, `"trace_tier": "partner"`) {
		t.Errorf("the import's JSON is of tier %q\n%s%s", got, out, errs)
	}
	must(t, "import", "log.jsonl", "--capture-begin", "0s", "--capture-end", "1h", "-o", "internal.parquet")
	for _, args := range [][]string{{"partner.parquet", "internal.parquet"}, {"internal.parquet", "partner.parquet"}} {
		if out, _, _ := reprise(t, "fidelity", args[0], args[1], "--json"); tierOfJSON(t, out) != anonymize.Internal {
			t.Errorf("fidelity of %v is of tier %q", args, tierOfJSON(t, out))
		}
	}
	for want, args := range map[string][]string{
		"rows depend on the rows of other": {"anonymize", "partner.parquet", "-o", "x.parquet"},
		"its tier is partner":              {"anonymize", "partner.parquet", "--tier", "public", "--unit", "request", "-o", "x.parquet"},
		"neither users nor sessions":       {"anonymize", "internal.parquet", "--tier", "public", "-o", "x.parquet"},
		"want partner or public":           {"anonymize", "internal.parquet", "--tier", "internal", "-o", "x.parquet"},
		"unknown flag: --key":              {"anonymize", "internal.parquet", "--key", "0123", "-o", "x.parquet"},
		"--card takes no --tier":           {"anonymize", "--card", "partner.parquet", "--tier", "public"},
		"not a Parquet file of Repris":     {"anonymize", "--card", "big"},
		"not have the schema card/1":       {"anonymize", "--card", "log.jsonl"},
	} {
		if err := os.WriteFile("big", make([]byte, 2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := reprise(t, args...); code == cli.Good || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, want %q\n%s", args, code, want, errs)
		}
	}
	if _, err := os.Stat("x.parquet"); err == nil {
		t.Error("there is an output")
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Cards say how many fields of the log were dropped, and of what kind, and
// no name of one; the card of a release does not: one record may have a field alone.
func TestCardCountsDroppedFields(t *testing.T) {
	t.Chdir(t.TempDir())
	var log strings.Builder
	for i := range 400 {
		fmt.Fprintf(&log, `{"t":"2026-01-02T03:04:05Z","u":"u%d","in":120,"out":40,"zebra":{"note":"x","n":1},"yak":[1],"ok":true}`+"\n", i%40)
	}
	if err := os.WriteFile("log.jsonl", []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	maps := []string{"--map", "time=t", "--map", "user=u", "--map", "input_tokens=in", "--map", "output_tokens=out"}
	_, said, _ := reprise(t, append([]string{"import", "log.jsonl", "-o", "internal.parquet"}, maps...)...)
	const want = "4 source fields dropped: flag 1, list 1, number 1, text 1 (names withheld)"
	if !strings.Contains(said, "source fields that were not read: ok, yak, zebra.n, zebra.note; --map takes one in") {
		t.Errorf("import says\n%s", said)
	}
	released, errs, _ := reprise(t, append([]string{"import", "log.jsonl", "-o", "partner.parquet", "--tier", "partner",
		"--unit", "request", "--epsilon", "50", "--i-understand", "--max-input", "4096", "--max-output", "1024",
		"--capture-begin", "2026-01-02T03:00:00Z", "--capture-end", "2026-01-02T05:00:00Z", "--ledger", "l.jsonl"}, maps...)...)
	if all := released + errs; strings.Contains(all, "zebra") || strings.Contains(all, "yak") || !strings.Contains(all, want) {
		t.Errorf("import to tier partner says\n%s", all)
	}
	doc, words := contents(t, "internal.privacy.json"), must(t, "anonymize", "--card", "internal.parquet", "--details")
	if !strings.Contains(strings.Join(strings.Fields(words), " "), want) || strings.Contains(doc+words, "zebra") || strings.Contains(doc+words, "yak") {
		t.Errorf("the card says\n%s", words)
	}
	must(t, "audit", "internal.parquet", "--only", "card", "--html", "page.html")
	page := contents(t, "page.html")
	for _, want := range []string{"the field that --map names for user", "4 other fields (text 1, number 1, flag 1, list 1)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "zebra") || strings.Contains(page, "yak") {
		t.Error("the page names fields of the source")
	}
	if c, p := anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Public}), anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Partner}); c.SourceFields != nil || p.SourceFields != nil {
		t.Error("the card of a release counts fields")
	}
}

// What was made of a source is its owner's alone, and a release becomes everybody's
// by an audit that it passes, and by nothing less.
func TestModesOfOutputs(t *testing.T) {
	long(t)
	if os.PathSeparator != '/' {
		t.Skip("modes are those of Unix")
	}
	t.Chdir(t.TempDir())
	chatsTrace(t, "house.parquet", 8000)
	if err := os.Chmod("house.parquet", 0o600); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) os.FileMode {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	must(t, "anonymize", "house.parquet", "--max-input", "4096", "--max-output", "1024", "-o", "partner.parquet")
	must(t, "profile", "house.parquet", "--histograms", "h.parquet", "--html", "page.html", "-o", "summary.txt")
	reprise(t, "audit", "partner.parquet", "--internal", "house.parquet", "--only", "card,container", "--html", "audit.html", "-o", "audit.json")
	reprise(t, "fidelity", "house.parquet", "partner.parquet", "--html", "fidelity.html", "-o", "fidelity.txt")
	for _, name := range []string{"page.html", "summary.txt", "audit.html", "audit.json", "fidelity.html", "fidelity.txt"} {
		if got := mode(name); got != 0o600 {
			t.Errorf("%s, with figures of a trace of tier internal, has mode %o", name, got)
		}
	}
	must(t, "slice", "house.parquet", "--end", "5m", "-o", "s.parquet")
	must(t, "synth", "fit", "s.parquet", "--k-swap", "1", "-o", "m.parquet")
	must(t, "synth", "m.parquet", "-o", "w.parquet")
	must(t, "export", "house.parquet", "--to", "mooncake", "-o", "x.parquet")
	reprise(t, "simulate", "w.parquet", "-o", "r.parquet", "--preset", "l4-qwen2.5-0.5b", "--quiet")
	for _, name := range []string{"house", "partner", "h", "m", "w", "s", "x", "r"} {
		if got := mode(name + ".parquet"); got != 0o600 {
			t.Errorf("%s.parquet has mode %o", name, got)
		}
	}
	source := []string{"--internal", "house.parquet"}
	for want, args := range map[string][]string{
		"wants the source":          {"audit", "partner.parquet", "--release"},
		"wants all checks":          append([]string{"audit", "partner.parquet", "--release", "--only", "card"}, source...),
		"is for tier partner and p": append([]string{"audit", "house.parquet", "--release"}, source...),
	} {
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s", args, code, errs)
		}
	}
	chatsTrace(t, "other.parquet", 7000)
	_, errs, code := reprise(t, "audit", "partner.parquet", "--internal", "other.parquet", "--release")
	if code != cli.Check || !strings.Contains(errs, "linkage was inconclusive") || mode("partner.parquet") != 0o600 {
		t.Errorf("a release of another source: exit code %d, mode %o\n%s", code, mode("partner.parquet"), errs)
	}
	out, errs, code := reprise(t, append([]string{"audit", "partner.parquet", "--release"}, source...)...)
	if code != cli.Good || mode("partner.parquet") != 0o644 {
		t.Errorf("a release that holds: exit code %d, mode %o\n%s%s", code, mode("partner.parquet"), out, errs)
	}
}
