package token

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestNFC holds the slow way to package norm where that is right: where no run of marks is long.
func TestNFC(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	alphabet := []rune("aeAEoé\u0301\u0300\u0323\u0327\u0344\u0345\u034f\u0f71\u0f72\u0958\u2126\u212b각\u1100\u1161\u11a8가ᄀ中x\u0305\U0001d15e\u1e9b")
	for range 20_000 {
		s := make([]rune, 1+rnd.IntN(12))
		for i := range s {
			s[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		if got, want := composed(string(s)), norm.NFC.String(string(s)); got != want {
			t.Fatalf("%+q: got %+q, want %+q", string(s), got, want)
		}
	}
}

// TestNFCLongRuns: the joiner that package norm would put in is not there, and what was there stays.
func TestNFCLongRuns(t *testing.T) {
	acute, below := strings.Repeat("\u0301", 100), strings.Repeat("\u0323", 100)
	for _, tt := range []struct{ in, want string }{
		{acute, acute},
		{"e" + acute, "é" + acute[2:]},
		{"e" + acute + below, "ẹ" + below[2:] + acute},
		{"e\u0301e\u0301" + acute, "éé" + acute}, // as long as with the joiners
		{"e\u034f" + acute, "e\u034f" + acute},
		{"\u0301x" + acute + "e\u0301", "\u0301x" + acute + "é"},
	} {
		if got := nfc(tt.in); got != tt.want {
			t.Errorf("%+q: got %+q, want %+q", tt.in, got, tt.want)
		}
	}
}
