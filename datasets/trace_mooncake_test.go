package datasets

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// Blocks of another size than the release's, as other tools write and do not say.
func TestMooncakeBlockSize(t *testing.T) {
	for _, in := range []string{`{"timestamp": 5, "input_length": 40, "output_length": 1, "hash_ids": [0, 1, 2]}`,
		`{"timestamp":5,"input_length":40,"output_length":1,"hash_ids":[0,1,2]}`} { // by hand and by the general decoder
		all, info, err := read(strings.NewReader(in+"\n"), Options{BlockSize: 16})
		if err != nil || info.Format != "mooncake" || info.BlockSize != 16 || len(all) != 1 || summary(&all[0]) != "5ms in=40 out=1 blocks=[0 1 2]" {
			t.Errorf("%v, %+v, %d entries", err, info, len(all))
		}
		_, _, err = read(strings.NewReader(in+"\n"), Options{}) // one row proves nothing
		if err == nil || !strings.Contains(err.Error(), "--source-block-size tells another size") {
			t.Errorf("%v", err)
		}
	}
}

// The size that all of the first rows fit is found, and with it the unit of vLLM's
// timed_trace.
func TestMooncakeBlocksAreFound(t *testing.T) {
	next := 0
	row := func(at string, input, ids int) string {
		list := make([]int, ids)
		for i := range list {
			next++
			list[i] = next
		}
		return fmt.Sprintf(`{"timestamp": %s, "input_length": %d, "output_length": 1, "hash_ids": %s}`+"\n", at, input, strings.ReplaceAll(fmt.Sprint(list), " ", ", "))
	}
	const found16 = "blocks of 16 tokens fit the lengths of the first rows, and blocks of 512 do not"
	const seconds = noteFractions
	for _, c := range []struct {
		in    string
		o     Options
		size  int
		last  string
		notes []string
	}{
		{row("0", 600, 2) + row("1.5", 1100, 3), Options{}, 512, "1.5s", []string{seconds}},
		{row("0", 600, 2) + row("1.5", 1100, 3), Options{TimeUnit: "ms"}, 512, "1.5ms", nil},
		{row("0", 40, 3) + row("1.5002", 100, 7), Options{}, 16, "1.5002s", []string{found16, seconds}},
		{row("0.0", 40, 3) + row("3.0", 100, 7), Options{}, 16, "3s", []string{found16, seconds}}, // as reprise export writes it
		{row("0", 40, 3) + row("1500", 100, 7), Options{}, 16, "1.5s", []string{found16}},
		{row("0", 40, 3) + row("1500.5", 100, 7), Options{TimeUnit: "ms"}, 16, "1.5005s", []string{found16}},
		{row("0", 640, 10) + row("1", 100, 2) + row("2.5", 65, 2), Options{}, 64, "2.5s", []string{"blocks of 64 " +
			"tokens fit the lengths of the first rows, and blocks of 512 do not", seconds}},
		{row("0", 10, 1) + row("2", 12, 1), Options{}, 512, "2ms", nil}, // several would fit
	} {
		all, info := mustRead(t, c.in, c.o)
		if got := all[len(all)-1].Time.Sub(Epoch).String(); info.BlockSize != c.size || got != c.last || info.Bad != 0 {
			t.Errorf("%s: blocks of %d, %s, want %d, %s", c.in, info.BlockSize, got, c.size, c.last)
		}
		notesAre(t, info, c.notes...)
	}
	if _, _, err := read(strings.NewReader(row("0.0", 600, 2)+row("90000.0", 600, 2)), Options{}); err == nil ||
		!strings.Contains(err.Error(), stamp.SayUnit) {
		t.Errorf("times a day apart: %v", err)
	}
	lengths := `{"timestamp": 0.25, "input_length": 600, "output_length": 1}` + "\n" + `{"timestamp": 1.5, "input_length": 600, "output_length": 1}` + "\n"
	if all, info := mustRead(t, lengths, Options{}); all[1].Time.Sub(Epoch).String() != "1.5s" {
		t.Errorf("rows of lengths: %v, %v", all[1].Time, info.Notes)
	}
	// A file that goes on with one of another size is refused as before.
	_, _, err := readTogether(textFiles(row("0", 40, 3)+row("1.5", 100, 7), row("9.5", 600, 2)), Options{})
	if err == nil || !strings.Contains(err.Error(), wrongBlocks) {
		t.Errorf("%v", err)
	}
}

func TestMooncakeRows(t *testing.T) {
	const ok = "27.482s in=600 out=5 blocks=[0 18446744073709551615]"
	for in, want := range map[string]string{
		`{"timestamp": 27482, "input_length": 600, "output_length": 5, "hash_ids": [0, 18446744073709551615]}`:              ok,
		`{"timestamp":27482,"input_length":600,"output_length":5,"hash_ids":[0,18446744073709551615]}`:                      ok,
		`{"hash_ids":[0,18446744073709551615],"output_length":5,"input_length":600,"timestamp":27482}`:                      ok,
		`{"timestamp":1,"input_length":600.0,"output_length":5,"hash_ids":[0,18446744073709551615],"timestamp":27482}`:      ok, // the last wins
		`{"timest\u0061mp":27482,"input_length":6e2,"output_length":5,"hash_ids":[0,18446744073709551615],"priority":null}`: ok,
		"\t{ \"timestamp\" : 27482 , \"input_length\":600,\"output_length\":5,\"hash_ids\":[ 0 ,18446744073709551615 ] } ":  ok,
		`{"timestamp":0,"input_length":0,"output_length":0,"hash_ids":[]}`:                                                  "0s in=0 out=0",
		`{"timestamp":0,"input_length":512,"output_length":0,"hash_ids":[7]}`:                                               "0s in=512 out=0 blocks=[7]",
		`{"timestamp":0,"input_length":2147483647,"output_length":0,"hash_ids":[]}`:                                         "log:1:1: its block ids",

		`{"timestamp":0,"input_length":513,"output_length":0,"hash_ids":[7]}`:           "0s in=513 out=0 blocks=[7 9223372036854775808]", // of full blocks only
		`{"timestamp":0,"input_length":1025,"output_length":0,"hash_ids":[7]}`:          "log:1:1: its block ids are not one for each full block",
		`{"timestamp":0,"input_length":512,"output_length":0,"hash_ids":[7,8]}`:         "log:1:1: its block ids",
		`{"timestamp":0,"input_length":1,"output_length":0}`:                            "log:1:1: blocks is missing",
		`{"timestamp":0,"input_length":1,"output_length":null,"hash_ids":[0]}`:          "0s in=1 blocks=[0]", // its output is not known
		`{"input_length":1,"output_length":0,"hash_ids":[0]}`:                           "log:1:1: it has no time",
		`{"timestamp":0,"output_length":0,"hash_ids":[0]}`:                              "log:1:1: input_tokens is missing",
		`{"timestamp":0,"input_length":-1,"output_length":0,"hash_ids":[]}`:             "log:1:31: input_tokens: want a whole number",
		`{"timestamp":0,"input_length":2147483648,"output_length":0,"hash_ids":[]}`:     "log:1:31: input_tokens: want",
		`{"timestamp":0,"input_length":4294967297,"output_length":0,"hash_ids":[0]}`:    "log:1:31: input_tokens: want", // 2^32 + 1
		`{"timestamp":0,"input_length":1.5,"output_length":0,"hash_ids":[0]}`:           "log:1:31: input_tokens: want",
		`{"timestamp":0,"input_length":1,"output_length":true,"hash_ids":[0]}`:          "log:1:49: output_tokens: want",
		`{"timestamp":-1,"input_length":1,"output_length":0,"hash_ids":[0]}`:            "log:1:14: time: want a number",
		`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[-1]}`:            "log:1:62: blocks: want an array",
		`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":["0"]}`:           "log:1:62: blocks: want an array",
		`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[01]}`:            "log:1:64: it is not valid JSON",
		`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[0]} {}`:          "log:1:67: it is not valid JSON",
		`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[0],}`:            "log:1:66: it is not valid JSON",
		"{\"timestamp\":0,\"input_length\":1,\x00\"output_length\":0,\"hash_ids\":[0]}": "log:1:33: it is not valid JSON",
		`[0]`: "log:1:1: it is not a JSON object",
	} {
		all, info, err := read(strings.NewReader(in+"\n"), Options{Format: "mooncake", MaxBad: 1})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(all) == 1:
			got = summary(&all[0])
		case len(info.FirstBad) == 1:
			got = info.FirstBad[0].Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%.110s\n  %.120s\n  want %s", in, got, want)
		}
	}
}

// Behind the rows that tell a source, the fields of a dialect are refused.
func TestMooncakeDialectsAreRouted(t *testing.T) {
	for _, f := range dialectFields {
		in := strings.Repeat(oneRow, 10) + fmt.Sprintf(`{"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[0],"%s":1}`, f[0])
		_, _, err := read(strings.NewReader(in), Options{MaxBad: 1})
		want := fmt.Sprintf("log:11:%d: the field %s changes what the others mean: say --format %s", 69+len(f[0]), f[0], f[1])
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestMooncakeNotesUnknownFields(t *testing.T) {
	in := strings.Repeat(`{"timestamp":0,"input_length":0,"output_length":0,"hash_ids":[],"request_id":"r"}`+"\n", 2) + oneRow
	all, info := mustRead(t, in, Options{})
	if len(all) != 3 || len(info.Notes) != 1 || info.Notes[0] != "records with fields that are not read: 2" {
		t.Errorf("%q", info.Notes)
	}
}

// The parser by hand and encoding/json agree, on every line that the first
// accepts and on what is wrong with the others, whether plain entries are read by columns or not.
func sameBothWays(t *testing.T, in []byte) {
	t.Helper()
	decode := func(slow, plain bool) ([]trace.Entry, error) {
		s := &Source{file: "log", maxBad: 1}
		d, err := mooncakeFormat().open(bufio.NewReader(bytes.NewReader(in)), in, Options{}, s)
		if err != nil {
			t.Fatal(err)
		}
		s.dec = d
		d.(*mooncakeDecoder).slow = slow
		var all []trace.Entry
		batch := make([]trace.Entry, 4)
		for err == nil {
			var n int
			var p trace.PlainEntries
			if plain {
				s.ReadPlain(&p, 3)
			}
			for i := range p.Len() {
				all = append(all, p.Entry(i))
			}
			n, err = s.Read(batch[:1+len(all)%4])
			all = append(all, batch[:n]...)
		}
		for _, b := range s.info.FirstBad {
			all = append(all, trace.Entry{User: trace.NewText(b.Error())})
		}
		return all, err
	}
	slow, slowErr := decode(true, false)
	for _, plain := range []bool{false, true} {
		fast, fastErr := decode(false, plain)
		if fmt.Sprint(fastErr) != fmt.Sprint(slowErr) || len(fast) != len(slow) {
			t.Fatalf("by hand %d rows, %v; by encoding/json %d rows, %v", len(fast), fastErr, len(slow), slowErr)
		}
		for i := range fast {
			if a, b := summary(&fast[i]), summary(&slow[i]); a != b {
				t.Fatalf("row %d: by hand %s, by encoding/json %s", i, a, b)
			}
		}
	}
}

// Numbers of all lengths are read as strconv reads them, whatever is behind.
func TestDigits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		want := rnd.Uint64() >> rnd.IntN(64)
		in := strconv.FormatUint(want, 10)
		long := len(in) > 19
		b := append([]byte(in), []string{"", ",", "]}", ", 123456789", ":5", "/", "\x00\xff9", "é9", "e5"}[rnd.IntN(9)]...)
		got, end := digits(append([]byte("7,"), b...), 2)
		if long && end != 0 || !long && (got != want || end != 2+len(in)) {
			t.Fatalf("%q: %d up to %d", b, got, end)
		}
	}
	for _, in := range []string{"", "a", "01", "00000000", "000000001", "-1", "+1", " 1", "\xb01", "10000000000000000000"} {
		if n, end := digits([]byte(in), 0); end != 0 {
			t.Errorf("%q is %d", in, n)
		}
	}
}

// Lines as the release and other tools write them are read by hand, and others are left
// to the general decoder.
func TestMooncakeLinesReadByHand(t *testing.T) {
	for in, want := range map[string]bool{
		`{"timestamp": 5, "input_length": 1025, "output_length": 3, "hash_ids": [0, 1, 2]}`:                  true,
		`{"timestamp":5,"input_length":1025,"output_length":3,"hash_ids":[0,1,2]}`:                           true,
		"{ \"timestamp\" :\t5 , \"input_length\": 1025, \"output_length\": 3, \"hash_ids\": [ 0 , 1,\t2 ] }": true,
		`{"timestamp": 5, "input_length": 0, "output_length": 0, "hash_ids": []}`:                            false,
		`{"timestamp": 999999999, "input_length": 1, "output_length": 0, "hash_ids": [9999999999999999999]}`: true,
		`{"timestamp": 5, "input_length": 1, "output_length": 0, "hash_ids": [10000000000000000000]}`:        false,
		`{"timestamp": 5, "input_length": 1024, "output_length": 3, "hash_ids": [0, 1, 2]}`:                  false,
		`{"timestamp": 5, "input_length": 2, "output_length": 2147483648, "hash_ids": [0]}`:                  false,
		`{"timestamp": 5, "input_length": 2, "output_length": 2147483647, "hash_ids": [0]}`:                  true,
		`{"timestamp": 5, "input_length": 2, "output_length": 3, "hash_ids": [0,]}`:                          false,
		`{"timestamp": 5, "input_length": 2, "output_length": 3, "hash_ids": [0 1]}`:                         false,
		`{"timestamp": 5, "input_length": 2, "output_length": 3, "hash_ids": [0`:                             false,
		`{"timestamp": 5, "input_length": 2, "output_length": 3, "hash_ids": [0]} x`:                         false,
		`{"time stamp": 5, "input_length": 2, "output_length": 3, "hash_ids": [0]}`:                          false,
		`{"timestamp": 5.5, "input_length": 2, "output_length": 3, "hash_ids": [0]}`:                         false,
		`{"input_length": 2, "timestamp": 5, "output_length": 3, "hash_ids": [0]}`:                           false,
	} {
		s, err := Open(strings.NewReader(`{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [0]}`+"\n"), Options{Format: "mooncake"})
		if err != nil {
			t.Fatal(err)
		}
		d := s.dec.(*fileChain).dec.(*mooncakeDecoder)
		if ok := d.parse([]byte(in), new(trace.PlainEntries)); ok != want {
			t.Errorf("%s: by hand: %v", in, ok)
		}
	}
}
