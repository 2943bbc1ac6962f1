package token

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"reprise/trace/longtest"
)

// The oracle is tiktoken-go, which runs the published regular expressions as they are. It takes quadratic time on a long
// piece, so texts without boundaries are kept short here.
var oracles = map[string]func() (*tiktoken.Tiktoken, error){
	"cl100k_base": oracle("cl100k_base"),
	"o200k_base":  oracle("o200k_base"),
	"p50k_base":   oracle("p50k_base"),
	"r50k_base":   oracle("r50k_base"),
}

func oracle(name string) func() (*tiktoken.Tiktoken, error) {
	return sync.OnceValues(func() (*tiktoken.Tiktoken, error) {
		tiktoken.SetBpeLoader(loader.NewOfflineLoader())
		return tiktoken.GetEncoding(name)
	})
}

// oracleDiffers reports whether the oracle is known to be wrong about s. Its regular expressions fold case by lower-casing,
// and so do not see the long s as an s in a contraction; tiktoken itself does, and so do we (TestReference holds it with
// "a'ſ'type"). No other difference is known: the oracle's character classes come from Go's package unicode, as ours do, so
// that the age of the Unicode tables cannot tell them apart (TestOracleClasses).
func oracleDiffers(s string) bool { return strings.Contains(s, "'ſ") }

func mustOpen(t testing.TB, name string) *Encoding {
	t.Helper()
	e, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// checkOracle compares an encoding with the oracle, and the way back with the text.
func checkOracle(t *testing.T, name, s string) {
	t.Helper()
	e := mustOpen(t, name)
	o, err := oracles[name]()
	if err != nil {
		t.Fatal(err)
	}
	got := e.Append(nil, s)
	want := o.EncodeOrdinary(s)
	if !slices.EqualFunc(got, want, func(g uint32, w int) bool { return int(g) == w }) {
		t.Errorf("%s: %.200q: got %v, want %v", name, s, head(got), head(want))
	}
	back, err := e.AppendText(nil, got)
	if err != nil || string(back) != string([]rune(s)) {
		t.Errorf("%s: %.200q: the way back gives %.200q, %v", name, s, back, err)
	}
}

func head[T any](s []T) []T { return s[:min(len(s), 40)] }

// references reads strings with the ids that OpenAI's tiktoken 0.14.0 gives them (encode_ordinary), and the ends in bytes of
// the pieces that the patterns above the splitters cut (found by Python's regex module): some picked by hand, some drawn at
// random from an alphabet of everything that the patterns tell apart.
func references(t testing.TB) []reference {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "tiktoken.json"))
	if err != nil {
		t.Fatal(err)
	}
	var refs []reference
	if err := json.Unmarshal(data, &refs); err != nil {
		t.Fatal(err)
	}
	return refs
}

type reference struct {
	Text         string
	CL100K       []uint32 `json:"cl100k_base"`
	O200K        []uint32 `json:"o200k_base"`
	CL100KPieces []int    `json:"cl100k_pieces"`
	O200KPieces  []int    `json:"o200k_pieces"`
}

func TestReference(t *testing.T) {
	for _, r := range references(t) {
		for name, want := range map[string][]uint32{"cl100k_base": r.CL100K, "o200k_base": r.O200K} {
			if got := mustOpen(t, name).Append(nil, r.Text); !slices.Equal(got, want) {
				t.Errorf("%s: %q: got %v, want %v", name, r.Text, got, want)
			}
		}
	}
}

// TestPieces holds the splitters by themselves: few of their mistakes would change a token, as few tokens span two pieces.
func TestPieces(t *testing.T) {
	for _, r := range references(t) {
		for name, want := range map[string][]int{"cl100k_base": r.CL100KPieces, "o200k_base": r.O200KPieces} {
			e := mustOpen(t, name)
			got := []int{}
			for i := 0; i < len(r.Text); {
				i = e.split(e.class, r.Text, i)
				got = append(got, i)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q: the pieces end at %v, want %v", name, r.Text, got, want)
			}
		}
	}
}

// TestBlankAfterNewline: tiktoken has since rewritten the pattern of cl100k_base for speed, and it now keeps white space at the
// end of a text in one piece even if it has line ends. That changes no token, since no token of white space goes on with a
// blank after a line end.
func TestBlankAfterNewline(t *testing.T) {
	v := mustOpen(t, "cl100k_base").vocab
	for id := range uint32(v.len()) {
		s := v.token(id)
		if i := strings.LastIndexAny(s, "\r\n"); strings.TrimSpace(s) == "" && i >= 0 && i < len(s)-1 {
			t.Errorf("token %d is %q", id, s)
		}
	}
}

// invalid are texts that are not UTF-8: each bad byte is one U+FFFD.
var invalid = []string{
	"\xff", "\xff\xfe", "a\x80b", "\xc3", "\xc3(", "\xe2\x82", "\xe2\x82x", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\xaf",
	"caf\xe9 au lait", "'\xc5", "x'\xc5\xc5\xbf", " \x80", "\n\x80\n", "\xf4\x90\x80\x80", "\ufffd\x80\ufffd",
}

func TestOracle(t *testing.T) {
	texts := invalid
	for _, r := range references(t) {
		texts = append(texts, r.Text)
	}
	for _, n := range []int{34, 35, 64, 127, 128, 129, 1000, 3000} {
		for _, s := range []string{"a", " ", "!", "\n", "中", "zq", "é", "\x80", "abcdefghijklmnopqrstuvwxyz", "的一是不了人我在有他"} {
			texts = append(texts, strings.Repeat(s, n/len(s)+1))
		}
	}
	for _, name := range Names() {
		for _, s := range texts {
			if !oracleDiffers(s) {
				checkOracle(t, name, s)
			}
		}
	}
}

// TestOracleClasses puts characters between neighbours that show their class: all below U+3000, those on either side of a
// change of class, and samples of the rest.
func TestOracleClasses(t *testing.T) {
	longtest.Skip(t)
	table := classes()
	classOf := func(r rune) class { c, _ := table.at(string(r), 0); return c }
	var texts []string
	var b strings.Builder
	for r := rune(0); r < utf8.MaxRune; r++ {
		sample := r < 0x3000 || r%61 == 0 || classOf(r) != classOf(r-1) || classOf(r) != classOf(r+1)
		if !sample || !utf8.ValidRune(r) {
			continue
		}
		for _, around := range [][2]string{{"a", "b "}, {"1", "1 "}, {"\n", " "}, {"A", "B"}, {"!", "! "}, {" ", "c"}} {
			b.WriteString(around[0] + string(r) + around[1])
		}
		if b.Len() > 2000 {
			texts = append(texts, b.String())
			b.Reset()
		}
	}
	for _, s := range append(texts, b.String()) {
		for _, name := range Names() {
			checkOracle(t, name, s)
		}
	}
}

func TestOracleRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("aabcdeEFGsSmMtTdDrReElLvV''''      \n\n\r\t0123./,!\"-_\u0301\u0902éÉǅʰª中文İ\u00a0\u3000١½\u2028\u0085😀\u200d\ufe0f\ufffd")
	texts := 500
	if longtest.On() {
		texts = 5000
	}
	for range texts {
		s := make([]rune, 1+rnd.IntN(60))
		for i := range s {
			s[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		for _, name := range Names() {
			checkOracle(t, name, string(s))
		}
	}
}

func TestOracleGoSource(t *testing.T) {
	longtest.Skip(t)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command: ", err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no Go source tree: ", err)
	}
	for _, dir := range []string{"strconv", "net/url", "encoding/json", "unicode/utf8", "html"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			data, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return err
			}
			for _, name := range Names() {
				checkOracle(t, name, string(data))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestOracleShareGPT(t *testing.T) {
	longtest.Skip(t)
	messages := shareGPT(t)
	if messages == nil {
		t.Skip("the ShareGPT sample is absent")
	}
	for _, m := range messages {
		if oracleDiffers(m) {
			continue
		}
		for _, name := range Names() {
			checkOracle(t, name, m)
		}
	}
}

// shareGPT gives the messages of the ShareGPT sample, or nil where it is absent.
func shareGPT(t testing.TB) (messages []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash("../../../shared/data/sharegpt_sample.json"))
	if err != nil {
		return nil
	}
	var chats []struct {
		Conversations []struct{ Value string }
	}
	if err := json.Unmarshal(data, &chats); err != nil {
		t.Fatal(err)
	}
	for _, c := range chats {
		for _, m := range c.Conversations {
			messages = append(messages, m.Value)
		}
	}
	return messages
}

func FuzzAppend(f *testing.F) {
	for _, r := range references(f) {
		f.Add(r.Text)
	}
	for _, s := range invalid {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 512 || oracleDiffers(s) {
			t.Skip("the oracle is quadratic in the length, and wrong about the long s in a contraction")
		}
		for _, name := range Names() {
			checkOracle(t, name, s)
		}
	})
}
