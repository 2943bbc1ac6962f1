package datasets

import (
	"fmt"
	"math"
	"testing"

	"reprise/datasets/internal/row"
)

// Statuses of HTTP and the usual words, at the bounds of each class.
func TestStatusesOfSources(t *testing.T) {
	const why = "want an HTTP status or a word"
	for v, want := range map[any]string{
		row.Number("200"): "ok", "299": "ok", row.Number("300"): "failed", "199": "failed", "100": "failed", "599": "failed", row.Number("499"): "cancelled", "498": "failed", "500": "failed",
		"OK": "ok", "Succeeded": "ok", "completed": "ok", "Failure": "failed", "aborted": "cancelled", "canceled": "cancelled",
		"99": why, "600": why, "": why, true: "ok", "False": "failed", "200 OK": "ok", "429 Too Many Requests": "failed",
		row.Number("0"): why,
	} {
		b := &builder{}
		got := setStatus(b, v)
		if got == "" {
			got = b.Entry.Status
		}
		if got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		v         any
		was, want string
	}{{"x", "", "failed"}, {"", "ok", "ok"}, {false, "ok", "ok"}, {map[string]any{}, "ok", "failed"}, {"x",
		"cancelled", "cancelled"}, {"None", "ok", "ok"}, {"False", "ok", "ok"}, {"-", "ok", "ok"}, {"null", "ok", "ok"},
		{row.Number("0"), "ok", "ok"}, {true, "ok", "failed"}, {"nonesuch", "ok", "failed"}} {
		b := &builder{}
		b.Entry.Status = c.was
		if why := setError(b, c.v); why != "" || b.Entry.Status != c.want {
			t.Errorf("an error %v of %q: %q, want %q", c.v, c.was, b.Entry.Status, c.want)
		}
	}
	for in, want := range map[string]string{"[]": "[]", "[0,18446744073709551615]": "[0 18446744073709551615]",
		"[1,": "", "{}": "", `["1"]`: "", "[-1]": "", "[1.5]": "", "[18446744073709551616]": "", "[true]": ""} {
		b := &builder{}
		why := setBlocks(b, in)
		if want == "" && why != "want an array of whole numbers that are not negative" || want != "" &&
			(why != "" || fmt.Sprint(b.Entry.SourceBlocks) != want) {
			t.Errorf("blocks %s: %v, %q", in, b.Entry.SourceBlocks, why)
		}
	}
	for n, want := range map[int32]int{0: 0, 1: 1, 16: 1, 17: 2, 32: 2, math.MaxInt32: 1 << 27} {
		if got := blocksOf(n, 16); got != want {
			t.Errorf("%d tokens in %d blocks, want %d", n, got, want)
		}
	}
	for in, want := range map[string]bool{"0": true, " 2147483647 ": true, "2147483648": false, "-1": false,
		"1.5": false, "1.0": true, "": false, "4294967296": false} {
		if _, ok := countOf(in); ok != want {
			t.Errorf("%q is a count: %v", in, ok)
		}
	}
}
