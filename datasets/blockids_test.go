package datasets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A hashed is a request of a source that hashes blocks itself.
type hashed struct {
	input int
	ids   []uint64
}

// hashedReaders write requests as each format with ids of a source does, in blocks of 16 tokens.
var hashedReaders = map[string]struct {
	write func(t *testing.T, rows []hashed) string
	o     Options
}{
	"mooncake": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": 5, "hash_ids": %s}`, i*100, h.input, idsOf(h))
	}), o: Options{BlockSize: 16}},
	"bailian": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"chat_id":%d,"parent_chat_id":-1,"timestamp":%d.5,"input_length":%d,"output_length":5,"type":"text","turn":1,"hash_ids":%s}`, i, i, h.input, idsOf(h))
	})},
	"dynamo": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"session_id":"s%d","timestamp":%d.5,"input_length":%d,"output_length":5,"hash_ids":%s}`, i, i, h.input, idsOf(h))
	}), o: Options{BlockSize: 16, Rows: "full"}},
	"dynamo-requests": {write: jsonOf(func(i int, h hashed) string {
		at := 1777312800000 + i*100
		return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"request":{"request_id":"q%d","output_tokens":16,`+
			`"request_received_ms":%d,"replay":{"trace_block_size":16,"input_length":%d,"input_sequence_hashes":%s}}}`, at+50, i, at, h.input, idsOf(h))
	})},
	"weka": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"id":"t%d","block_size":16,"hash_id_scope":"global","requests":[{"t":0.0,"type":"s","model":"m","in":%d,"out":29,"hash_ids":%s,"stop":"stop","api_time":2.5,"think_time":0}]}`, i, h.input, idsOf(h))
	})},
	"baseten": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"timestamp_start_unix_ms":%d,"input_tokens":%d,"output_tokens":20,"provided_session_id":"s%d","total_hashes":%s,"block_size":16,"request_canceled":false,"duration_e2e_ms":900}`,
			1760000000123+i, h.input, i, idsOf(h))
	})},
	"aiperf": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"session_id":"s%d","timestamp":%d.5,"input_length":%d,"output_length":5,"hash_ids":%s}`, i, i, h.input, idsOf(h))
	}), o: Options{BlockSize: 16, Format: "aiperf", Rows: "full"}},
	"litellm-spend": {write: func(t *testing.T, rows []hashed) string {
		var list []map[string]string
		for _, h := range rows {
			list = append(list, map[string]string{"prompt_tokens": fmt.Sprint(h.input), "metadata": fmt.Sprintf(`{"prefix_block_hashes":%s,"prefix_block_size":16}`, idsOf(h))})
		}
		return spend(list...)
	}},
	"mapped": {write: jsonOf(func(i int, h hashed) string {
		return fmt.Sprintf(`{"at":%d.5,"n":%d,"ids":%s}`, i, h.input, idsOf(h))
	}), o: Options{Map: Mapping{"time": {"at"}, "input_tokens": {"n"}, "blocks": {"ids"}}, BlockSize: 16, TimeUnit: "s"}},
}

// sameReader are formats that one reader reads.
var sameReader = map[string]string{"litellm-log": "litellm-spend"}

func idsOf(h hashed) string {
	b, _ := json.Marshal(append([]uint64{}, h.ids...))
	return string(b)
}

func jsonOf(line func(i int, h hashed) string) func(*testing.T, []hashed) string {
	return func(_ *testing.T, rows []hashed) string {
		var b strings.Builder
		for i, h := range rows {
			b.WriteString(line(i, h) + "\n")
		}
		return b.String()
	}
}

// kindsOfIDs make requests whose ids mean something each in another way.
var kindsOfIDs = []struct {
	name string
	make func(rng *rand.Rand) []hashed
	// One of these, where no reader has a rule of its own.
	fine, noted, full, bad, refused bool
}{
	{name: "prompts that share a begin", fine: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 {
			return append([]uint64{1, 2, 3}[:min(3, n-1)], idsFrom(100+100*i, n-min(3, n-1))...)
		})
	}},
	{name: "one conversation that grows, the end of a prompt with its own id", fine: true, make: func(rng *rand.Rand) (rows []hashed) {
		for i, input := 0, 40; i < 60; i++ {
			n := blocksOf(int32(input), 16)
			ids := idsFrom(1, n)
			if input%16 != 0 {
				ids[n-1] = uint64(1000 + i)
			}
			rows = append(rows, hashed{input, ids})
			input += 5 + rng.IntN(40)
		}
		return rows
	}},
	{name: "one conversation that many send at once", fine: true, make: func(rng *rand.Rand) (rows []hashed) {
		for range 60 {
			n := 1 + rng.IntN(12)
			rows = append(rows, hashed{16 * n, idsFrom(1, n)})
		}
		return rows
	}},
	{name: "two long prompts and short ones between", fine: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 {
			if i%3 == 0 {
				return idsFrom(500+100*i, n)
			}
			return append(idsFrom(1, n-1), uint64(10_000+i))
		})
	}},
	{name: "the end of a prompt comes back as a full block", noted: true, make: func(rng *rand.Rand) (rows []hashed) {
		for i := range 20 {
			input := 20 + 16*rng.IntN(4) + rng.IntN(8)
			for range 3 {
				rows = append(rows, hashed{input, idsFrom(100*i+1, blocksOf(int32(input), 16))})
				input += 33
			}
		}
		return rows
	}},
	{name: "ids of full blocks only", full: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 {
			return append([]uint64{1}, idsFrom(100+100*i, input/16-1)...)
		})
	}},
	{name: "more ids than tokens can have", bad: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 { return idsFrom(100*i, n+2) })
	}},
	{name: "fewer ids than full blocks", bad: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 { return idsFrom(100*i, n/3) })
	}},
	{name: "ids of places", refused: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 { return idsFrom(0, n) })
	}},
	{name: "ids of places from 1, of full blocks only", refused: true, make: func(rng *rand.Rand) []hashed {
		return eachRequest(rng, func(i, input, n int) []uint64 { return idsFrom(1, input/16) })
	}},
}

func idsFrom(first, n int) (ids []uint64) {
	for i := range n {
		ids = append(ids, uint64(first+i))
	}
	return ids
}

// eachRequest makes requests of lengths that are no whole number of blocks.
func eachRequest(rng *rand.Rand, ids func(i, input, n int) []uint64) (rows []hashed) {
	for i := range 60 {
		input := 16*(4+rng.IntN(40)) + 1 + rng.IntN(15)
		rows = append(rows, hashed{input, ids(i, input, blocksOf(int32(input), 16))})
	}
	return rows
}

// Ids are read rightly or refused, whichever format has them: the length of each request is that of
// the source, and it has a block for each part of it or, where it is said, none.
func TestBlockIDsAsTheyCome(t *testing.T) {
	for format, reader := range hashedReaders {
		for k, kind := range kindsOfIDs {
			t.Run(format+"/"+kind.name, func(t *testing.T) {
				rows := kind.make(rand.New(rand.NewPCG(uint64(k), uint64(len(format)))))
				all, info, err := read(strings.NewReader(reader.write(t, rows)), reader.o)
				said := strings.Join(info.Notes, "\n")
				switch {
				case kind.refused:
					if err == nil || !strings.Contains(err.Error(), "number places") {
						t.Fatalf("%v\n%s", err, said)
					}
					return
				case kind.bad && err != nil:
					if !strings.Contains(err.Error(), "its block ids are not one for each") {
						t.Fatal(err)
					}
					return
				case kind.bad:
					// Readers with a rule of their own leave the ids out, or fill them up, and say so.
					if !strings.Contains(said, "left out") && !strings.Contains(said, noteWekaFloor) && !strings.Contains(said, noteWekaNone) {
						t.Fatalf("nothing is said: %s", said)
					}
				case err != nil || info.Bad != 0 || len(all) != len(rows):
					t.Fatalf("%d of %d, %v, %+v", len(all), len(rows), err, info.FirstBad)
				case strings.Contains(said, noteMixed) != kind.noted:
					t.Errorf("it is said: %s", said)
				case kind.full && format != "bailian" && format != "baseten" && format != "weka" && !strings.Contains(said, noteFullOnly):
					t.Errorf("it is said: %s", said)
				}
				for i := range all {
					n := blocksOf(*all[i].InputTokens, 16)
					if int(*all[i].InputTokens) != rows[i].input || len(all[i].SourceBlocks) != n && !(kind.bad && all[i].SourceBlocks == nil) {
						t.Fatalf("request %d of %d tokens: %d tokens, %d blocks", i, rows[i].input, *all[i].InputTokens, len(all[i].SourceBlocks))
					}
				}
			})
		}
	}
	for _, f := range Formats() {
		for _, field := range f.reads {
			named := strings.Join(field.Paths, " ")
			if slices.Contains(field.Columns, "blocks") && field.How == "" && strings.Contains(named, "hash") && hashedReaders[cmp.Or(sameReader[f.Name], f.Name)].write == nil {
				t.Errorf("%s reads ids of blocks from %s, and stands in no table of this test", f.Name, named)
			}
		}
	}
}

// Ids are watched in bounded memory, and what is said of a sample is about what is so.
func TestBlockIDsAreSampled(t *testing.T) {
	var s sourceIDs
	const n = 3 * watchedIDs
	for i := range n {
		rest := uint64(2*i + 1)
		if i%10 == 0 { // its end comes back
			s.see([]uint64{uint64(2 * i), rest, uint64(1e9 + float64(i))}, 40, 16)
		}
		s.see([]uint64{uint64(2 * i), rest}, 20, 16)
		if len(s.forms) > watchedIDs {
			t.Fatalf("%d ids are kept", len(s.forms))
		}
	}
	var said int64
	notes := s.notes()
	if len(notes) != 1 {
		t.Fatal(notes)
	}
	if _, err := fmt.Sscanf(notes[0][strings.LastIndex(notes[0], ": ")+2:], "%d", &said); err != nil || said < n/10*9/10 || said > n/10*11/10 {
		t.Errorf("%s; it is %d", notes[0], n/10)
	}
}

// FuzzSourceIDs watches any ids: what is kept is bounded, and few requests are never refused.
func FuzzSourceIDs(f *testing.F) {
	f.Add([]byte{40, 1, 2, 3, 20, 1, 2}, uint8(16))
	f.Add([]byte{255, 0, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var s sourceIDs
		requests := 0
		for len(data) > 0 {
			input, n := int32(data[0]), min(len(data)-1, blocksOf(int32(data[0]), max(1, int(size))))
			ids := make([]uint64, n)
			for i, b := range data[1 : 1+n] {
				ids[i] = uint64(b)
			}
			s.see(ids, input, int(size))
			data, requests = data[1+n:], requests+1
		}
		if len(s.forms) > 256 || s.refuse() != nil && requests < leastPlaced || len(s.notes()) > 1 {
			t.Errorf("%d requests: %d ids, %v, %q", requests, len(s.forms), s.refuse(), s.notes())
		}
	})
}
