package strictyaml

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var bounds = Bounds{What: "a menu", Bytes: 4096}

type menu struct {
	Name   string
	Guests int
	Wait   time.Duration
	Price  float64
	Dishes []string
	Wine   Node
}

// readMenu has a key of every kind.
func readMenu(text []byte) (m menu, err error) {
	doc, err := Parse(text, bounds)
	if err == nil {
		err = doc.Keys(
			Key{"name", Into(&m.Name, Node.Text)},
			Key{"guests", Into(&m.Guests, Whole(1, 12))},
			Key{"wait", Into(&m.Wait, Parsed(time.ParseDuration))},
			Key{"price", Into(&m.Price, Node.Number)},
			Key{"dishes", func(n Node) error {
				return n.List("a dish", 2, func(n Node) error {
					s, err := n.Text()
					m.Dishes = append(m.Dishes, s)
					return err
				})
			}},
			Key{"wine", func(n Node) error { m.Wine = n; return nil }})
	}
	return m, Named("m.yaml", err)
}

func TestEveryKind(t *testing.T) {
	m, err := readMenu([]byte("# Sunday\nname: |\n  roast\nguests: 4\nwait: 1m30s\nprice: 12.5\ndishes: [soup, \"7\"]\n"))
	if err != nil || m.Name != "roast" || m.Guests != 4 || m.Wait != 90*time.Second || m.Price != 12.5 || strings.Join(m.Dishes, " ") != "soup 7" || m.Wine.Exists() {
		t.Errorf("%+v %v", m, err)
	}
}

// What takes the parser time in its square is refused before it, in all the ways in which a file can
// have many of it; what is only long is not.
func TestManyKeys(t *testing.T) {
	for name, c := range map[string]struct {
		part string
		fits bool
	}{
		"keys": {"k: 1\n", false}, "anchors": {"&k ", false}, "anchors of keys": {"k: &a 1\n", false}, "items": {"- a\n", false},
		"tags": {"!!str ", false}, "nested items": {"- - a\n", false}, "comments": {"# a\n", true}, "words": {"some & more, and-so on; at 12:30 \n", true},
	} {
		text := strings.Repeat(c.part, 50_000)
		if c.fits {
			text = "a: 1\n# " + strings.ReplaceAll(text, "\n", "\n# ")
		}
		_, err := Parse([]byte(text), Bounds{"a menu", 8 << 20})
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "m.yaml: it is empty"},
		{"# nothing\n", "m.yaml: it is empty"},
		{"name: a\n---\nname: b\n", "m.yaml: it has more than one document"},
		{"name: \xff\n", "m.yaml: it is not UTF-8"},
		{strings.Repeat("a", 5000), "m.yaml: a menu has at most 4096 bytes"},
		{strings.Repeat("[", 33), "m.yaml: more than 32 nested lists or maps"},
		{strings.Repeat("- ", 33) + "a", "m.yaml: more than 32 nested lists or maps"},
		{"name: [" + strings.Repeat("*a,", 65) + "]\n", "m.yaml:1:200: more than 64 aliases"},
		{"- soup\n", "m.yaml:1:1: want keys and values, such as name:"},
		{"name: a\nnmae: b\n", `m.yaml:2:1: unknown key "nmae": want name, guests, wait, price, dishes or wine`},
		{"name: a\nname: b\n", "m.yaml:2:1: mapping key"},
		{"name: a\n\tguests: 1\n", "m.yaml:2:1: "},
		{"name:\n", "m.yaml:1:1: name has no value"},
		{"name: {a: b}\n", "m.yaml:1:7: name: want text"},
		{"guests: 1.5\n", "m.yaml:1:9: guests: want a whole number from 1 to 12"},
		{"guests: 13\n", "m.yaml:1:9: guests: want a whole number from 1 to 12"},
		{"wait: soon\n", "m.yaml:1:7: wait: time: invalid duration"},
		{"price: .inf\n", "m.yaml:1:8: price: want a number"},
		{"dishes: soup\n", "m.yaml:1:9: dishes: want a list"},
		{"dishes: []\n", "m.yaml:1:9: dishes: want a list"},
		{"dishes: [a, b, c]\n", "m.yaml:1:16: dishes: want 2 at most"},
		{"dishes:\n  - a\n  -\n", "m.yaml:3:5: a dish: want text"},
	} {
		if _, err := readMenu([]byte(c.in)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q: %v; want %s", c.in, err, c.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.yaml")
	if _, err := ReadFile(path, bounds); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for size, want := range map[int]string{4096: "", 4097: path + ": a menu has at most 4096 bytes"} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := ReadFile(path, bounds); (err == nil) != (want == "") || err != nil && err.Error() != want || err == nil && len(text) != size {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
	}
}

// A file within a file is named once.
func TestNamedOnce(t *testing.T) {
	err := Named("outer.yaml", Named("inner.yaml", &fault{3, 5, "too salty"}))
	var f *fault
	if err.Error() != "inner.yaml:3:5: too salty" || !errors.As(err, &f) {
		t.Error(err)
	}
}

// What reads the source of a map finds faults where the document has them.
func TestSourceKeepsPlaces(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"name: a\nwine:\n  guests: 4\n\n  # red\n  prise: 9\nprice: 2\n", "m.yaml:6:3: unknown key"},
		{"name: a\nwine: {prise: 9}\n", "m.yaml:2:8: unknown key"},
		{"name: a\r\nwine:\r\n  prise: 9\r\n", "m.yaml:3:3: unknown key"},
		{"name: a\rwine:\n  prise: 9\n", "m.yaml:3:3: unknown key"},
	} {
		m, err := readMenu([]byte(c.in))
		if err != nil || !m.Wine.IsMap() {
			t.Fatalf("%q: %v", c.in, err)
		}
		if _, err := readMenu(m.Wine.Source()); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", m.Wine.Source(), err, c.want)
		}
	}
}

// A fault within a text has the column of its letter, where it can be told.
func TestFaultIn(t *testing.T) {
	for in, want := range map[string]string{
		"name: été soup":     "m.yaml:1:10: x",
		`name: "été soup"`:   "m.yaml:1:11: x",
		`name: "\u00e9soup"`: "m.yaml:1:7: x",
	} {
		doc, err := Parse([]byte(in), bounds)
		if err != nil {
			t.Fatal(err)
		}
		err = doc.Keys(Key{"name", func(n Node) error { return n.FaultIn(len("été"), "x") }})
		if got := Named("m.yaml", err).Error(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// What a struct does not have, or has of another kind, is refused at its place.
func TestDecodeFaults(t *testing.T) {
	for in, want := range map[string]string{
		"name: a\ndishes:\n  - name: b\n": "",
		"nmae: a\n":                       `m.yaml:1:1: unknown field "nmae": did you mean name?`,
		"wine: a\n":                       `m.yaml:1:1: unknown field "wine"`,
		"name: a\ncount: 1\n":             `m.yaml:2:1: unknown field "count": it belongs into another map`,
		"guests: many\n":                  "m.yaml:1:9: want a whole number",
		"guests: 1e99\n":                  "m.yaml:1:9: the number is too large",
		"name: [a]\n":                     "m.yaml:1:7: want text",
		"dishes: 3\n":                     "m.yaml:1:9: int was used where sequence is expected",
	} {
		var into struct {
			Name   string
			Guests int
			Dishes []struct {
				Name  string
				Count int
			}
		}
		doc, err := Parse([]byte(in), bounds)
		if err != nil {
			t.Fatal(err)
		}
		err = Named("m.yaml", doc.Decode(&into))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	doc, err := Parse([]byte("name: a\ndishes:\n  - name: b\n    price: 2\n  - &x\n    name: c\n"), bounds)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"name": "1:1", "dishes": "2:1", "dishes[0]": "3:5", "dishes[0].price": "4:5", "dishes[1].name": "6:5",
		"price": "", "dishes[2]": "", "name.first": "", "dishes.name": "",
	} {
		got := ""
		if at, ok := doc.Find(path); ok {
			got = strings.TrimSuffix(Named("", at.Faultf("x")).Error()[1:], ": x")
		}
		if got != want {
			t.Errorf("%s: at %q, want %q", path, got, want)
		}
	}
}

// A walk sees every key once, until it is refused.
func TestWalk(t *testing.T) {
	doc, err := Parse([]byte("a: 1\nb:\n  - c: 2\n    d: {e: 3}\nf: 4\n"), bounds)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	err = doc.Walk(func(key string, n Node) error {
		if keys = append(keys, key); key == "e" {
			return n.Faultf("no %s", key)
		}
		return nil
	})
	if err == nil || strings.Join(keys, "") != "abcde" || Named("m.yaml", err).Error() != "m.yaml:4:12: no e" {
		t.Errorf("%v: %v", keys, err)
	}
}

// Whatever a file holds, the answer is a value or an error that names it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"name: a\nwine:\n  name: b\n", "wine: {name: a}", "? a\n: b", "&a [*a]", "dishes:\n- |\n  a\n- b", "wine: &x {<<: *x}", "name: a\rwine:\n  name: ", "name: a\r\nwine:\r\n  name: b\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readMenu(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "m.yaml:") {
				t.Fatal(err)
			}
			return
		}
		if m.Wine.IsMap() {
			_, _ = readMenu(m.Wine.Source())
		}
	})
}
