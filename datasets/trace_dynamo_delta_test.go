package datasets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// AIPerf's rows for coding agents: the first turn with its prefix, later ones
// with what is new.
func TestDeltaRows(t *testing.T) {
	in := rowsOf(
		`{'session_id':'a','input_length':1100,'output_length':30,'hash_ids':[0,1,2],'timestamp':0.0,'group_id':4}`,
		`{'session_id':'b','input_length':700,'output_length':10,'hash_ids':[0,9],'timestamp':0.0,'group_id':4,'is_restart':true}`,
		`{'session_id':'a','input_length':600,'output_length':20,'hash_ids':[3,4],'delay':2450.3}`,
		`{'session_id':'a','input_length':1,'output_length':5,'hash_ids':[5],'delay':1.0}`,
		`{'session_id':'b','input_length':300,'output_length':5,'hash_ids':[6],'delay':7}`,
		`{'session_id':'a','input_length':1024,'output_length':5,'hash_ids':[7,8],'delay':1,'prefix_reset':true}`,
		`{'session_id':'a','input_length':0,'output_length':5,'hash_ids':[],'delay':1}`)
	const f = "922337203685477580"
	info := reads(t, in, Options{Rows: "delta"},
		"0s session=a turn=0 after=[] in=1100 out=30 blocks=[0 1 2]",
		"0s session=b turn=0 after=[] in=700 out=10 blocks=[0 9]",
		"2.4503s session=a turn=1 after=[0] in=1730 out=20 blocks=[0 1 "+f+"8 "+f+"9] think=2.4503s",         // 1100 + 30 + 600
		"2.4513s session=a turn=2 after=[2] in=1751 out=5 blocks=[0 1 "+f+"8 9223372036854775810] think=1ms", // the partial block is a new one
		"7ms session=b turn=1 after=[1] in=1010 out=5 blocks=[0 9223372036854775811] think=7ms",
		"2.4523s session=a turn=3 after=[3] in=1024 out=5 blocks=[7 8] think=1ms", // anew
		"2.4533s session=a turn=4 after=[5] in=1029 out=5 blocks=[7 8 9223372036854775812] think=1ms")
	notesAre(t, info, noteEarly+"5", noteTogether)
	wantBad(t, in, Options{}, "log:3:68: the rows of a session may hold its whole context")
}

func TestDeltaFaults(t *testing.T) {
	first := rowsOf(`{'session_id':'s','timestamp':0,'input_length':600,'output_length':1,'hash_ids':[0,1]}`)
	const stop = "; rows of new parts cannot be read past one at fault"
	for row, want := range map[string]string{
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[0]}`:                     "log:2:77: " + wrongBlocks + stop,
		`{'session_id':'s','delay':1,'input_length':1,'output_length':1,'hash_ids':[9223372036854775808]}`:     "log:2:75: " + reservedID + stop,
		`{'session_id':'t','timestamp':1,'input_length':1,'output_length':1,'hash_ids':[9223372036854775808]}`: "log:2:79: " + reservedID + stop,
		`{'session_id':'s','delay':1,'input_length':16776616,'output_length':1}`:                               "log:2:44: the context of its session has grown beyond 16777216",
		`{'session_id':'s','delay':1,'output_length':1}`:                                                       "log:2:1: input_tokens is missing" + stop,
		`{'session_id':'t','delay':1,'input_length':5,'output_length':1,'hash_ids':[2]}`:                       "log:2:27: it has a delay, and nothing before it that the delay could follow" + stop,
		`{'session_id':'s'`: "log:2:18: it is not valid JSON",
	} {
		_, _, err := read(strings.NewReader(first+rowsOf(row)+first), Options{Rows: "delta", MaxBad: 1})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n  %v\n  want %s", row, err, want)
		}
	}
	reads(t, first+rowsOf(`{'session_id':'s','delay':1,'input_length':16776615,'output_length':1}`), Options{Rows: "delta", BlockSize: 512}, // 2^24 in all
		"0s session=s turn=0 after=[] in=600 out=1 blocks=[0 1]", spellLong(t, first))
}

// spellLong spells the entry of the longest context.
func spellLong(t *testing.T, first string) string {
	all, _ := mustRead(t, first+rowsOf(`{'session_id':'s','delay':1,'input_length':16776615,'output_length':1}`), Options{Rows: "delta"})
	if e := &all[1]; *e.InputTokens != 1<<24 || len(e.SourceBlocks) != 1<<15 || e.SourceBlocks[0] != 0 || e.SourceBlocks[1] != firstFresh {
		t.Errorf("%d tokens in %d blocks", *e.InputTokens, len(e.SourceBlocks))
	}
	return spell(&all[1])
}

// A session whose first turn has no ids has none later.
func TestDeltaWithoutIDs(t *testing.T) {
	info := reads(t, rowsOf(
		`{'session_id':'s','timestamp':0,'input_length':20,'output_length':1}`,
		`{'session_id':'s','delay':0,'input_length':20,'output_length':2,'hash_ids':[1,2]}`,
		`{'session_id':'t','timestamp':1,'input_length':20,'output_length':2,'hash_ids':[1,2]}`,
		`{'session_id':'t','delay':0,'input_length':5,'output_length':2}`,
	), Options{Rows: "delta", BlockSize: 16},
		"0s session=s turn=0 after=[] in=20 out=1",
		"0s session=s turn=1 after=[0] in=41 out=2 think=0s",
		"1ms session=t turn=0 after=[] in=20 out=2 blocks=[1 2]",
		"1ms session=t turn=1 after=[2] in=27 out=2 blocks=[1 9223372036854775808] think=0s")
	notesAre(t, info, "requests without block ids: 2", noteEarly+"2")
}

// The truth computed another way: contexts as tokens, in which a source id stands
// for tokens of its own and every output is unlike all others; blocks are equal
// when all tokens up to their ends are.
func TestDeltaAgainstTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const size, sessions = 4, 6
	var in strings.Builder
	var truth [][]string // the tokens of each row's context
	context := make([][]string, sessions)
	nextID, outputs := 100, 0
	for row := range 400 {
		s := rng.IntN(sessions)
		n, out := 1+rng.IntN(11), 1+rng.IntN(6)
		first := context[s] == nil
		reset := !first && rng.IntN(15) == 0
		if first || reset {
			context[s] = nil
		}
		var ids []int
		for i := 0; i*size < n; i++ {
			id := nextID
			if nextID++; (first || reset) && (i+1)*size <= n { // first turns share full blocks at equal places
				id = 10*i + rng.IntN(2)
				if i > 0 && ids[i-1] >= 100 {
					id = nextID
				} else if i > 0 {
					id += 2 * (ids[i-1] % 10) // chained: another prefix is another block
				}
			}
			ids = append(ids, id)
			for k := range min(size, n-i*size) {
				context[s] = append(context[s], fmt.Sprint(id, "+", k))
			}
		}
		truth = append(truth, slices.Clone(context[s]))
		for k := range out {
			context[s] = append(context[s], fmt.Sprint("output ", outputs, "+", k))
		}
		outputs++
		when := `"delay":1`
		if first {
			when = fmt.Sprintf(`"timestamp":%d`, row)
		}
		fmt.Fprintf(&in, `{"session_id":%d,%s,"input_length":%d,"output_length":%d,"hash_ids":%s,"prefix_reset":%t}`+"\n",
			s, when, n, out, strings.ReplaceAll(fmt.Sprint(ids), " ", ","), first || reset)
	}
	all, _ := mustRead(t, in.String(), Options{Rows: "delta", BlockSize: size})
	idOf, prefixOf := map[string]uint64{}, map[uint64]string{}
	shared := 0
	for i := range all {
		if int(*all[i].InputTokens) != len(truth[i]) {
			t.Fatalf("row %d has %d tokens, want %d", i, *all[i].InputTokens, len(truth[i]))
		}
		for j, id := range all[i].SourceBlocks {
			prefix := strings.Join(truth[i][:min((j+1)*size, len(truth[i]))], " ")
			known, ok := idOf[prefix]
			if ok && known != id {
				t.Fatalf("row %d block %d: the same tokens are %d and %d", i, j, known, id)
			}
			if p, ok := prefixOf[id]; ok && p != prefix {
				t.Fatalf("row %d block %d: id %d has two meanings", i, j, id)
			}
			if ok {
				shared++
			}
			idOf[prefix], prefixOf[id] = id, prefix
		}
	}
	if shared < 1000 || len(idOf) < 500 {
		t.Errorf("only %d references are shared and %d blocks distinct", shared, len(idOf))
	}
}
