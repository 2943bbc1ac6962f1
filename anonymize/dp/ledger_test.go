package dp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// enter adds a release to a ledger, whatever was before.
func enter(t *testing.T, l Ledger, r Release) (before []Release) {
	t.Helper()
	if _, err := l.Enter(t.Context(), &r, func(b []Release) error { before = b; return nil }); err != nil {
		t.Fatal(err)
	}
	return before
}

func TestSpent(t *testing.T) {
	l := Ledger{Files: []string{filepath.Join(t.TempDir(), "ledger.jsonl")}}
	rho := Rho(1, 1e-6)
	for _, r := range []Release{{Source: Source{Digest: "a"}, Budget: Budget{1, 1e-6}, Rho: rho}, {Source: Source{Digest: "b"}, Budget: Budget{3, 0}},
		{Source: Source{Digest: "a"}, Budget: Budget{1, 1e-6}, Rho: rho}, {Source: Source{Digest: "a"}, Grid: "halves"}} {
		enter(t, l, r)
	}
	list, err := l.Before(&Source{Digest: "a"})
	if err != nil || len(list) != 3 || list[2].Grid != "halves" {
		t.Fatalf("%+v, %v", list, err)
	}
	got := Spent(list)
	if got.Releases != 2 || got.Epsilon >= 2 || got.Epsilon < 1.4 || got.Delta != 1e-6 {
		t.Errorf("two Gaussian releases cost %v: want less than the sum", got)
	}
	list = append(list, Release{Budget: Budget{1, 2e-6}})
	if mixed := Spent(list); mixed.Epsilon != got.Epsilon+1 || mixed.Delta != 3e-6 || mixed.Releases != 3 {
		t.Errorf("with a Laplace release beside them they cost %v, and %v without", mixed, got)
	}
	// A selection of prefixes costs a part of δ beside ρ: it adds up, and ρ is converted at
	// what is left of δ.
	selecting := Release{Budget: Budget{1, 1e-6}, Rho: rho, Selection: 1e-7}
	two, without := Spent([]Release{selecting, selecting}), Spent([]Release{{Budget: Budget{1, 9e-7}, Rho: rho}, {Budget: Budget{1, 9e-7}, Rho: rho}})
	if two.Epsilon != without.Epsilon || two.Epsilon <= got.Epsilon || math.Abs(two.Delta-1.1e-6) > 1e-12 {
		t.Errorf("two with a selection of prefixes cost %v, and without %v", two, without)
	}
	if all := Spent([]Release{{Budget: Budget{1, 1e-6}, Rho: rho, Selection: 1e-6}, selecting}); all.Epsilon <= 1 {
		t.Errorf("where nothing is left of δ they cost %v", all)
	}
	if got := Spent(list[2:3]); got != (Total{}) {
		t.Errorf("a release without noise costs %v", got)
	}
}

// What a source is known by, and what is not noticed.
func TestMeets(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC) }
	of := Source{Digest: "sha256:a", Captures: []string{"c1", "c2"}, Arrivals: "sha256:t", Format: "jsonl", Begin: day(1), End: day(3)}
	for _, c := range []struct {
		other Source
		want  string
	}{
		{Source{Digest: "sha256:a"}, "the same rows"},
		{Source{Digest: "sha256:b", Captures: []string{"c9", "c2"}}, "the same capture"},
		{Source{Digest: "c1"}, "the same capture"}, // as earlier versions wrote a shared key
		{Source{Digest: "sha256:b", Captures: []string{"c9"}, Arrivals: "sha256:t"}, "another import with the same arrivals"},
		{Source{Digest: "sha256:b", Format: "jsonl", Begin: day(2), End: day(9)}, "another import of the same format, whose capture window overlaps"},
		{Source{Digest: "sha256:b", Format: "jsonl", Begin: day(3), End: day(9)}, ""},
		{Source{Digest: "sha256:b", Format: "csv", Begin: day(2), End: day(9)}, ""},
		{Source{Digest: "sha256:b", Captures: []string{"c9"}, Arrivals: "sha256:u", Format: "jsonl"}, ""},
		{Source{}, ""},
	} {
		if got := of.Meets(&c.other); got != c.want {
			t.Errorf("%+v: %q, want %q", c.other, got, c.want)
		}
	}
	if got := (&Source{}).Meets(&Source{}); got != "" {
		t.Errorf("two sources of which nothing is known: %q", got)
	}
}

// An entry is counted once, in however many files it is; lines of earlier versions are
// read; a later line of an entry replaces it; and what was cancelled does not count.
func TestLedgerFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	old := `{"source":"a","release":"sha256:1","time":"2026-05-01T00:00:00Z","epsilon":1,"delta":1e-06,"mechanism":"discrete Laplace"}` + "\n"
	for name, text := range map[string]string{"one": old + old, "copy": old} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	both := Ledger{Files: []string{path("one"), path("state"), path("copy"), path("one")}}
	if before := enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Budget: Budget{2, 0}, Release: "pending"}); len(before) != 2 {
		t.Errorf("before it are %+v", before)
	}
	if before := enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Budget: Budget{4, 0}, Release: "sha256:2"}); len(before) != 2 {
		t.Errorf("an entry is before itself: %+v", before)
	}
	for _, l := range []Ledger{both, {Files: []string{path("one")}}, {Files: []string{path("state"), path("one")}}} {
		list, err := l.Before(&Source{Digest: "a"})
		if got := Spent(list); err != nil || got.Epsilon != 6 || got.Releases != 3 {
			t.Errorf("%v: %v, %v", l.Files, got, err)
		}
	}
	enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Release: cancelled})
	if list, err := both.Before(&Source{Digest: "a"}); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	no := errors.New("no")
	if _, err := both.Enter(t.Context(), &Release{Source: Source{Digest: "a"}, Budget: Budget{1, 0}}, func([]Release) error { return no }); !errors.Is(err, no) {
		t.Errorf("what was refused: %v", err)
	}
	if list, _ := both.Before(&Source{Digest: "a"}); len(list) != 2 {
		t.Errorf("what was refused is entered: %+v", list)
	}
	unwritten, err := Ledger{Files: []string{path("one"), path("absent/file")}}.Enter(t.Context(), &Release{ID: "y", Source: Source{Digest: "b"}, Budget: Budget{1, 0}}, func([]Release) error { return nil })
	if err != nil || len(unwritten) != 1 || unwritten[0] != path("absent/file") {
		t.Errorf("unwritten %q, %v", unwritten, err)
	}
	if _, err := (Ledger{Files: []string{path("absent/file"), path("one")}}).Enter(t.Context(), &Release{Source: Source{Digest: "b"}, Budget: Budget{1, 0}}, func([]Release) error { return nil }); err == nil {
		t.Error("the first file cannot be written")
	}
	if err := os.WriteFile(path("one"), []byte("{\"epsilon\":1}\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Before(&Source{Digest: "a"}); err == nil || !strings.Contains(err.Error(), "one:2: not a ledger entry") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a damaged ledger: %v", err)
	}
}

// ledgerIn in the environment has the test binary enter releases in a ledger, each as
// long as less than 20 were entered.
const ledgerIn = "REPRISE_TEST_LEDGER_IN"

var errFull = errors.New("full")

func enterMany(path string) {
	for range 20 {
		r := Release{Source: Source{Digest: "a"}, Budget: Budget{1, 0}}
		_, err := Ledger{Files: []string{path + ".b", path + ".a"}}.Enter(context.Background(), &r, func(before []Release) error {
			if r.ID = fmt.Sprintf("%d-%d", os.Getpid(), len(before)); len(before) >= 20 {
				return errFull
			}
			return nil
		})
		if err != nil && !errors.Is(err, errFull) {
			panic(err)
		}
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerIn); path != "" {
		enterMany(path)
		return
	}
	os.Exit(m.Run())
}

// Processes at once count what the others entered: none spends more than there is.
func TestLedgerAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for range 4 {
		c := exec.Command(self)
		c.Env, c.Stderr = append(os.Environ(), ledgerIn+"="+path), os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{path + ".a", path + ".b"} {
		if list, err := (Ledger{Files: []string{name}}).Before(&Source{Digest: "a"}); err != nil || len(list) != 20 {
			t.Errorf("%s has %d entries, %v", name, len(list), err)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte("{\"source\":\"a\",\"epsilon\":1,\"delta\":1e-6,\"rho_zcdp\":0.02}\n"))
	f.Add([]byte("{\"source\":\"a\",\"epsilon\":-1}\n{"))
	f.Add([]byte("{\"id\":\"x\",\"source\":\"\",\"captures\":[\"a\"],\"grid\":\"g\",\"capture_begin\":\"2026-05-01T00:00:00Z\"}\n{\"id\":\"x\",\"source\":\"a\",\"release\":\"cancelled\"}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "l")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := Ledger{Files: []string{path}}.Before(&Source{Digest: "a", Captures: []string{"a"}})
		if got := Spent(list); err == nil && got.Releases > 0 && !(got.Epsilon > 0) {
			t.Errorf("%d releases cost nothing", got.Releases)
		}
	})
}

// Releases by user add up over all captures of a population. Who names none may have anybody's
// users; but in the ledger of whoever runs the program, which has everything, that is not held
// against a population with a name.
func TestPopulations(t *testing.T) {
	dir := t.TempDir()
	named, user := filepath.Join(dir, "named"), filepath.Join(dir, "user")
	people := NewPeople
	for name, c := range map[string]struct {
		before, now People
		in          Ledger // of the earlier one
		adds        bool
	}{
		"nobody says":                        {people("user", ""), people("user", ""), Ledger{Files: []string{named}}, true},
		"nobody says, in another ledger":     {people("user", ""), people("user", ""), Ledger{User: user}, true},
		"an earlier version":                 {People{}, people("user", ""), Ledger{Files: []string{named}}, true},
		"the same population":                {people("user", "Customers of A"), people("user", " customers  of a"), Ledger{User: user}, true},
		"another population":                 {people("user", "a"), people("user", "b"), Ledger{Files: []string{named}}, false},
		"only the later says":                {people("user", ""), people("user", "b"), Ledger{Files: []string{named}}, true},
		"only the earlier says":              {people("user", "a"), people("user", ""), Ledger{Files: []string{named}}, true},
		"only the later says, elsewhere":     {people("user", ""), people("user", "b"), Ledger{User: user}, false},
		"only the later says, in both":       {people("user", ""), people("user", "b"), Ledger{Files: []string{named}, User: user}, true},
		"sessions of other captures":         {people("session", "a"), people("session", "a"), Ledger{Files: []string{named}}, false},
		"requests after users, other people": {people("user", ""), people("request", ""), Ledger{Files: []string{named}}, false},
	} {
		for _, path := range []string{named, user} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		enter(t, c.in, Release{ID: "1", Source: Source{Digest: "a", People: c.before}, Budget: Budget{1, 1e-6}, Release: "begun"})
		text, err := os.ReadFile(cmp.Or(c.in.All()...))
		if err != nil || bytes.Contains(text, []byte("ustomers")) {
			t.Errorf("%s: the ledger has %s, %v", name, text, err)
		}
		list, err := Ledger{Files: []string{named}, User: user}.Before(&Source{Digest: "b", People: c.now})
		if err != nil || len(list) == 1 != c.adds {
			t.Errorf("%s: %d add up, %v", name, len(list), err)
		}
	}
	overlap := func(p People) *Source {
		return &Source{Digest: p.Population, Format: "jsonl", Begin: time.Unix(0, 0), End: time.Unix(9, 0), People: p}
	}
	if got := overlap(people("user", "a")).Meets(overlap(people("user", "b"))); got != "" {
		t.Errorf("two services with logs of the same days: %q", got)
	}
	one, two := overlap(people("user", "a")), overlap(people("user", "b"))
	one.Captures, two.Captures = []string{"c"}, []string{"c"}
	if got := one.Meets(two); got != "the same capture" {
		t.Errorf("one capture under two names: %q", got)
	}
}

// What a full disk or a kill left of a line is no entry, and the next one takes its place.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := Ledger{Files: []string{path}}
	entry := func(id string) Release {
		return Release{ID: id, Source: Source{Digest: "a"}, Budget: Budget{1, 1e-6}, Release: "begun"}
	}
	enter(t, l, entry("1"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole)-1; cut += 7 {
		for _, first := range []bool{true, false} {
			text := slices.Concat(whole, whole[:cut])
			if first {
				text = whole[:cut]
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			want := 1
			if first {
				want = 0
			}
			if before := enter(t, l, entry("2")); len(before) != want {
				t.Errorf("%d bytes of a line: %d entries before", cut, len(before))
			}
			if list, err := l.Before(&Source{Digest: "a"}); err != nil || len(list) != want+1 {
				t.Errorf("%d bytes of a line, and a new one: %d entries, %v", cut, len(list), err)
			}
		}
	}
	// A whole entry without the end of its line counts: somebody wrote it by hand.
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	enter(t, l, entry("2"))
	if list, err := l.Before(&Source{Digest: "a"}); err != nil || len(list) != 2 {
		t.Errorf("an entry without the end of its line: %d entries, %v", len(list), err)
	}
	// What is no ledger is left as it is.
	if err := os.WriteFile(path, []byte("my notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := entry("3")
	if _, err := l.Enter(t.Context(), &r, func([]Release) error { return nil }); err == nil {
		t.Error("notes are a ledger")
	}
	if text, _ := os.ReadFile(path); string(text) != "my notes" {
		t.Errorf("the notes are %q", text)
	}
}

// Who waits for a ledger can be told to stop, says that it waits, and enters nothing.
func TestLedgerWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := Ledger{Files: []string{path}}
	files, _, err := l.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.Waits = func(string) { cancel() }
	r := Release{ID: "1", Source: Source{Digest: "a"}, Budget: Budget{1, 1e-6}}
	if _, err := l.Enter(ctx, &r, func([]Release) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("it waited until %v", err)
	}
	files[0].Close()
	l.Waits = nil
	if before := enter(t, l, r); len(before) != 0 {
		t.Errorf("who gave up entered %d", len(before))
	}
}
