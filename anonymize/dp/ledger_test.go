package dp

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// enter adds a release to a ledger, whatever was before.
func enter(t *testing.T, l Ledger, r Release) (before []Release) {
	t.Helper()
	if _, err := l.Enter(&r, func(b []Release) error { before = b; return nil }); err != nil {
		t.Fatal(err)
	}
	return before
}

func TestSpent(t *testing.T) {
	l := Ledger{[]string{filepath.Join(t.TempDir(), "ledger.jsonl")}}
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
	both := Ledger{[]string{path("one"), path("state"), path("copy"), path("one")}}
	if before := enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Budget: Budget{2, 0}, Release: "pending"}); len(before) != 2 {
		t.Errorf("before it are %+v", before)
	}
	if before := enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Budget: Budget{4, 0}, Release: "sha256:2"}); len(before) != 2 {
		t.Errorf("an entry is before itself: %+v", before)
	}
	for _, l := range []Ledger{both, {[]string{path("one")}}, {[]string{path("state"), path("one")}}} {
		list, err := l.Before(&Source{Digest: "a"})
		if got := Spent(list); err != nil || got.Epsilon != 6 || got.Releases != 3 {
			t.Errorf("%v: %v, %v", l.Files, got, err)
		}
	}
	enter(t, both, Release{ID: "x", Source: Source{Digest: "a"}, Release: Cancelled})
	if list, err := both.Before(&Source{Digest: "a"}); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	no := errors.New("no")
	if _, err := both.Enter(&Release{Source: Source{Digest: "a"}, Budget: Budget{1, 0}}, func([]Release) error { return no }); !errors.Is(err, no) {
		t.Errorf("what was refused: %v", err)
	}
	if list, _ := both.Before(&Source{Digest: "a"}); len(list) != 2 {
		t.Errorf("what was refused is entered: %+v", list)
	}
	unwritten, err := Ledger{[]string{path("one"), path("absent/file")}}.Enter(&Release{ID: "y", Source: Source{Digest: "b"}, Budget: Budget{1, 0}}, func([]Release) error { return nil })
	if err != nil || len(unwritten) != 1 || unwritten[0] != path("absent/file") {
		t.Errorf("unwritten %q, %v", unwritten, err)
	}
	if _, err := (Ledger{[]string{path("absent/file"), path("one")}}).Enter(&Release{Source: Source{Digest: "b"}, Budget: Budget{1, 0}}, func([]Release) error { return nil }); err == nil {
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
		_, err := Ledger{[]string{path + ".b", path + ".a"}}.Enter(&r, func(before []Release) error {
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
		if list, err := (Ledger{[]string{name}}).Before(&Source{Digest: "a"}); err != nil || len(list) != 20 {
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
		list, err := Ledger{[]string{path}}.Before(&Source{Digest: "a", Captures: []string{"a"}})
		if got := Spent(list); err == nil && got.Releases > 0 && !(got.Epsilon > 0) {
			t.Errorf("%d releases cost nothing", got.Releases)
		}
	})
}
