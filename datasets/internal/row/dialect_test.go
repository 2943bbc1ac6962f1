package row

import (
	"strings"
	"testing"

	"reprise/datasets/internal/stamp"
)

// Whatever the bytes are, sniffing ends, and a number that is rewritten is one.
func FuzzSniffCSV(f *testing.F) {
	for _, in := range []string{"a;b\n1,5;2\n", "'a','b'\n'1','2;3'\n", "sep=|\na|b\n", "a\tb\n\"x\ty\"\t1.000,5\n",
		"\xff\n;;;\n'"} {
		f.Add([]byte(in), "1.234,5")
	}
	f.Fuzz(func(t *testing.T, in []byte, number string) {
		d := sniffCSV(in, CSVOptions{})
		if d.delimiter == 0 || d.quote == 0 {
			t.Fatalf("%+v", d)
		}
		for _, mark := range []decimalMark{asWritten, unresolved, point, comma} {
			got := Plain(d.number(number, mark))
			if _, _, ok := stamp.Decimal(got); got != number && !ok && len(strings.Trim(got, "-.0123456789")) > 0 {
				t.Fatalf("%q with mark %d became %q", number, mark, got)
			}
		}
	})
}
