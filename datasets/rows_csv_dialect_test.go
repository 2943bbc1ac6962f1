package datasets

import (
	"fmt"
	"strings"
	"testing"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
)

// Each dialect is recognised by the file alone, and said where it is not the usual one.
func TestCSVDialects(t *testing.T) {
	for name, c := range map[string]struct{ in, want, note string }{
		"commas":      {"t,n,ms\n0.5,12,1.5\n", "500ms in=12 e2e=1.5ms", ""},
		"semicolons":  {"t;n;ms\n0.5;12;1.5\n", "500ms in=12 e2e=1.5ms", "; between the columns"},
		"tabs":        {"t\tn\tms\n0.5\t12\t1.5\n", "500ms in=12 e2e=1.5ms", "tabs between the columns"},
		"bars":        {"t|n|ms\r\n0.5|12|1.5\r\n", "500ms in=12 e2e=1.5ms", "| between the columns"},
		"German":      {"t;n;ms\n0,5;1.234;1.500,25\n", "500ms in=1234 e2e=1.50025s", "; between the columns, decimal commas"},
		"commas both": {"t,n,ms\n\"0,5\",\"1.234\",\"2,5\"\n", "500ms in=1234 e2e=2.5ms", "decimal commas"},
		"thousands":   {"t,n,ms\n0.5,\"1,234\",\"1,500.25\"\n", "500ms in=1234 e2e=1.50025s", ""},
		"mark":        {"\xef\xbb\xbft;n;ms\n0,5;12;1,5\n", "500ms in=12 e2e=1.5ms", "; between the columns, decimal commas"},
		"UTF-16":      {"\xff\xfet\x00;\x00n\x00;\x00m\x00s\x00\n\x000\x00,\x005\x00;\x007\x00;\x001\x00\n\x00", "500ms in=7 e2e=1ms", "; between the columns, decimal commas"},
		"Excel":       {"sep=;\r\nt;n;ms\r\n0.5;12;1.5\r\n", "500ms in=12 e2e=1.5ms", "; between the columns"},
		"single":      {"'t','n','ms'\n'0.5','12','1.5'\n", "500ms in=12 e2e=1.5ms", "single quotes"},
		"apostrophes": {"t,n,ms,text\n0.5,12,1.5,'tis\n", "500ms in=12 e2e=1.5ms", ""},
		// A quoted text has more commas than the file has semicolons.
		"text": {"t;n;ms;text\n0.5;12;1.5;\"a, b, c; d\"\n", "500ms in=12 e2e=1.5ms", "; between the columns"},
	} {
		all, info, err := read(strings.NewReader(c.in), Options{Map: Mapping{"time": {"t"}, "input_tokens": {"n"}, "e2e_ms": {"ms"}}})
		if err != nil || len(all) != 1 || summary(&all[0]) != c.want {
			t.Errorf("%s: %v, %v", name, all, err)
			continue
		}
		note := ""
		for _, n := range info.Notes {
			if how, ok := strings.CutPrefix(n, "read as CSV with "); ok {
				note = how
			}
		}
		if note != c.note {
			t.Errorf("%s: it says %q, want %q", name, note, c.note)
		}
	}
}

// What a number means is not guessed where nothing shows it. --decimal says it.
func TestCSVOpenNumbers(t *testing.T) {
	for in, want := range map[string]string{ // as it is, with --decimal point, with --decimal comma
		"n;ms\n1.200;7\n900;8\n":       "2:1: input_tokens | 2:1: bad | in=1200 e2e=7ms",
		"n;ms\n\"1,200\";7\n":          "2:1: input_tokens | in=1200 e2e=7ms | 2:1: bad",
		"n;ms\n5;1.200\n":              "2:3: e2e_ms | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n;ms\n5;1,200\n":              "2:3: e2e_ms | in=5 e2e=1.2s | in=5 e2e=1.2ms",
		"n;ms\n5;1.200\n6;12.200\n":    "2:3: e2e_ms | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n;ms\n5;1.200\n6;1200.200\n":  "in=5 e2e=1.2ms | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n;ms\n5;1.200\n6;0.200\n":     "in=5 e2e=1.2ms | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n;ms\n5;1.200\n6;1.200.000\n": "in=5 e2e=1.2s | 3:3: bad | in=5 e2e=1.2s",
		"n;ms;x\n5;1.200;0,5\n":        "in=5 e2e=1.2s | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n;ms;ip\n5;1.200;10.0.0.1\n":  "2:3: e2e_ms | in=5 e2e=1.2ms | in=5 e2e=1.2s", // an address tells nothing
		// No decimal comma stands between commas without quotes, but no fraction in a count either.
		"n,ms\n5,1.200\n":     "in=5 e2e=1.2ms | in=5 e2e=1.2ms | in=5 e2e=1.2s",
		"n,ms\n1.200,7\n":     "2:1: input_tokens | 2:1: bad | in=1200 e2e=7ms",
		"n,ms\n\"1,200\",7\n": "2:1: input_tokens | in=1200 e2e=7ms | 2:1: bad",
		// A column that shows nothing for longer than is looked at.
		"n;ms\n" + strings.Repeat("5;7\n", record.HeadBytes/4) +
			"1.200;7\n": "16386:1: input_tokens | 16386:1: bad | in=5 e2e=7ms",
	} {
		var got []string
		for _, decimal := range []string{"", "point", "comma"} {
			all, info, err := read(strings.NewReader(in), Options{Map: Mapping{"input_tokens": {"n"}, "e2e_ms": {"ms"}}, MaxBad: 1, Decimal: decimal})
			switch {
			case err != nil:
				place, ok := strings.CutSuffix(err.Error(), ": "+row.WhichDecimal)
				if !ok {
					t.Errorf("%q: %v", in, err)
				}
				got = append(got, strings.TrimPrefix(place, "log:"))
			case info.Bad > 0:
				got = append(got, fmt.Sprintf("%d:%d: bad", info.FirstBad[0].Line, info.FirstBad[0].Column))
			default:
				got = append(got, summary(&all[0]))
			}
		}
		if got := strings.Join(got, " | "); got != want {
			t.Errorf("%.50q\n got %s\nwant %s", in, got, want)
		}
	}
	for decimal, want := range map[string]string{",": "--decimal: want point or comma", "comma": "mooncake is no CSV, to which --decimal applies"} {
		if _, _, err := read(strings.NewReader(oneRow), Options{Decimal: decimal}); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

// A text stays as it is.
func TestCSVNumbersAsWritten(t *testing.T) {
	m := Mapping{"input_tokens": {"n"}, "prompt": {"p"}, "user": {"u"}}
	for in, want := range map[string]string{
		"n;p;u\n1,5;x;1\n":          "bad", // not whole
		"n;p;u\n7;x;1,5\n":          `user=1.5 user:"x" in=7 completion`,
		"n;p;u\n7;1,5;a\n8;yes;b\n": `user=a user:"1,5" in=7 completion`,
	} {
		all, info, err := read(strings.NewReader(in), Options{Map: m, MaxBad: 1})
		got := "bad"
		if len(all) > 0 {
			got = summary(&all[0])
		}
		if err != nil || !sameWords(got, want) || want == "bad" && info.Bad != 1 {
			t.Errorf("%q: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestToldDelimiter(t *testing.T) {
	// The comma would give two columns as well.
	in := "t,x:n\na,b:5\n"
	m := Mapping{"input_tokens": {"n"}}
	all, info := mustRead(t, in, Options{Map: m, Delimiter: ":"})
	if summary(&all[0]) != "in=5" || info.Notes[0] != "read as CSV with : between the columns" {
		t.Errorf("%s, %q", summary(&all[0]), info.Notes)
	}
	all, _ = mustRead(t, "a;b\tn\n1;2\t5\n", Options{Map: m, Delimiter: "tab"})
	if summary(&all[0]) != "in=5" {
		t.Error(summary(&all[0]))
	}
	for d, want := range map[string]string{
		"||": `--delimiter: want one character or tab, such as --delimiter ';'`,
		`"`:  `--delimiter: want one character or tab, such as --delimiter ';'`,
	} {
		if _, _, err := read(strings.NewReader(in), Options{Map: m, Delimiter: d}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", d, err)
		}
	}
	if _, _, err := read(strings.NewReader(oneRow), Options{Delimiter: ";"}); err == nil || err.Error() != "mooncake is no CSV, to which --delimiter applies" {
		t.Error(err)
	}
}

// A known format is recognised in the dialect of a spreadsheet too.
func TestKnownFormatsInOtherDialects(t *testing.T) {
	in := "TIMESTAMP;ContextTokens;GeneratedTokens\r\n16.11.2023 18:17:03;4808;10\r\n16.11.2023 18:17:04;12;\"3\"\r\n"
	all, info := mustRead(t, in, Options{})
	if info.Format != "azure-2023" || len(all) != 2 || all[0].Time.Format("2006-01-02T15:04:05") != "2023-11-16T18:17:03" {
		t.Errorf("%+v", info)
	}
}
