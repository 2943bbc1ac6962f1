package export

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

func TestAppendSeconds(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.0", 1: "0.000000001", 1e9: "1.0", 1_500_000_000: "1.5", 61_114_000_000: "61.114", 1_000_000_010: "1.00000001",
		math.MaxInt64: "9223372036.854775807",
	} {
		if got := string(appendSeconds(nil, ns)); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
	for ns := int64(0); ns < 1<<50; ns = ns*3 + 1 {
		f, err := strconv.ParseFloat(string(appendSeconds(nil, ns)), 64)
		if err != nil || int64(math.Round(f*1e9)) != ns {
			t.Errorf("%d comes back as %v, %v", ns, f, err)
		}
	}
}

func FuzzAppendText(f *testing.F) {
	f.Add("a\"\\\n\x00\x1f\x7fé中😀\u2028\xff\xe4\xb8<")
	f.Fuzz(func(t *testing.T, text string) {
		got := appendText([]byte("x"), text)
		same := appendText([]byte("x"), []byte(text))
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var back, wantBack string
		if err := json.Unmarshal(got[1:], &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if err := json.Unmarshal(want, &wantBack); err != nil || back != wantBack || string(same) != string(got) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
