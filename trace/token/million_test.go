package token

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/trace/longtest"
)

// fuzzed makes a string of what encoders stumble over: letters of every case,
// marks, digits of other scripts, blanks, line ends, emoji, control characters,
// bytes that are no UTF-8, and runs of one thing.
func fuzzed(r *rand.Rand) string {
	pieces := []string{"a", "B", "don't", "'LL", " ", "  ", "\n", "\r\n", "\t", "7", "123456", "١", "中文字", "é", "e\u0301", "ǅ", "İ", "ß",
		"\u00a0", "\u3000", "\u2028", "😀", "👨‍👩‍👧", "\ufe0f", "\x00", "\x1b", "\x7f", "<|endoftext|>", "//", "/*", "#include <", "->", "_x", "\"", "\\",
		"\xff", "\xc3", "ﬁ", "한국", "ไทย", "हिन्दी", "ع", ",", ".", "!!", "--", "Ω", "ʰ", "½"}
	var b strings.Builder
	for range 1 + r.IntN(24) {
		switch r.IntN(12) {
		case 0:
			b.WriteString(strings.Repeat(pieces[r.IntN(len(pieces))], 1+r.IntN(9)))
		case 1:
			b.WriteRune(rune(r.IntN(utf8.MaxRune + 1)))
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return b.String()
}

// Fuzzed strings encode as the library encodes them: two thousand of them, twenty thousand with REPRISE_TEST_LONG, or as many
// as REPRISE_TEST_STRINGS says.
func TestOracleFuzzed(t *testing.T) {
	n := 2_000
	if longtest.On() {
		n = 20_000
	}
	if s := os.Getenv("REPRISE_TEST_STRINGS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(2026, 11))
	names := []string{"cl100k_base", "o200k_base"}
	for range n {
		s := fuzzed(r)
		for _, name := range names {
			if !oracleDiffers(s) {
				checkOracle(t, name, s)
			}
		}
		if t.Failed() {
			return
		}
	}
}
