package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The prompt of a turn goes on from that of the turn before and its answer, and streams of a
// group begin with one prompt.
func TestRollouts(t *testing.T) {
	in := `{"group":0,"stream":0,"prompt_len":40,"out_lens":[10,5,7],"obs_lens":[14,3,9],"tool_times":[1.5,0.25,1]}
{"group":0,"stream":1,"prompt_len":41,"out_lens":[100],"obs_lens":[]}
{"group":1,"stream":0,"prompt_len":16,"out_lens":[1,2],"obs_lens":[0]}
`
	all, info := mustRead(t, in, Options{})
	if info.Format != "rl-rollouts" || info.BlockSize != 16 || !info.HasSessions {
		t.Fatalf("%+v", info)
	}
	var got []string
	for _, e := range all {
		tool := "-"
		if e.Tool != nil {
			tool = e.Tool.String()
		}
		got = append(got, fmt.Sprint(e.Session.Reveal(), " ", *e.InputTokens, " ", *e.OutputTokens, " ", e.Parents, " ", tool, " ", e.SourceBlocks))
	}
	want := []string{
		"0/0 40 10 [] - [0 1 2]",
		"0/0 64 5 [0] 1.5s [0 1 3 4]",
		"0/0 72 7 [1] 250ms [0 1 3 4 5]",
		"0/1 40 100 [] - [0 1 6]", // as long as the first stream's
		"1/0 16 1 [] - [7]",
		"1/0 17 2 [4] 0s [7 8]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, err := readTimed(t, Timed((*entries)(&all), processOf(t, "constant:1"), distOf(t, "constant:3s", "service"), distOf(t, "constant:9s", "think")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if e := &all[i]; e.Session.Reveal() == "0/0" && *e.Turn == 1 {
			if d := e.Time.Sub(all[0].Time); d != 4500*time.Millisecond {
				t.Errorf("the second turn comes %v after the first, want the service and the tool's time", d)
			}
		}
	}
}

func TestRolloutFaults(t *testing.T) {
	for fields, want := range map[string]string{
		`"prompt_len":0,"out_lens":[1],"obs_lens":[]`:                                                                         "prompt_len: want a whole number from 1 to 16777216",
		`"prompt_len":9,"out_lens":[],"obs_lens":[]`:                                                                          "obs_lens: want a length for each of out_lens but the last, and one of out_lens at least",
		`"prompt_len":9,"out_lens":[1,2],"obs_lens":[]`:                                                                       "obs_lens: want a length for each of out_lens but the last, and one of out_lens at least",
		`"prompt_len":9,"out_lens":[1,2],"obs_lens":[-1]`:                                                                     "out_lens, obs_lens: want whole numbers from 0, of a prompt of at most 16777216 tokens",
		`"prompt_len":9,"out_lens":[1,2],"obs_lens":[3],"tool_times":[]`:                                                      "tool_times: want a time for each of out_lens but the last",
		`"prompt_len":9,"out_lens":[1,2],"obs_lens":[3],"tool_times":[-1]`:                                                    "tool_times: want seconds that are not negative",
		`"prompt_len":16777216,"out_lens":[` + strings.Repeat("0,", 16) + `0],"obs_lens":[` + strings.Repeat("0,", 16) + `0]`: "the prompts of its trajectory have more than 16777216 blocks: say a larger size with --source-block-size",
	} {
		_, info, err := read(strings.NewReader(`{"group":0,"stream":0,`+fields+"}\n"), Options{MaxBad: 1})
		if err != nil || len(info.FirstBad) != 1 || !strings.HasSuffix(info.FirstBad[0].Error(), ": "+want) {
			t.Errorf("%.100s: %v, %v, want %s", fields, info.FirstBad, err, want)
		}
	}
}

func FuzzRollouts(f *testing.F) {
	f.Add([]byte(`{"group":0,"stream":0,"prompt_len":40,"out_lens":[10,5],"obs_lens":[14],"tool_times":[1.5]}` + "\n" + `{"group":0,"stream":1,"prompt_len":40,"out_lens":[3],"obs_lens":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "rl-rollouts"}) })
}
