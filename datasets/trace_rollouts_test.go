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
	all, err := readAll(Timed((*entries)(&all), processOf(t, "constant:1"), distOf(t, "constant:3s", "service"), distOf(t, "constant:9s", "think")))
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

// A line of trie is a session: calls that end in a tool, and a final one. Sessions share
// nothing, in one file or in two.
func TestTrie(t *testing.T) {
	const in = `{"num_turns":2,"input_prompt_length":40,"assistant_response_length":[10,5],"tool_call_output_length":[14,3],"tool_call_latency":[1.5,0.25],"final_assistant_response_length":7}
{"input_prompt_length":16,"assistant_response_length":[],"num_turns":0,"tool_call_latency":[],"tool_call_output_length":[],"final_assistant_response_length":100}
`
	all, info, err := readTogether(textFiles(in, in), Options{})
	if err != nil || info.Format != "trie" || info.BlockSize != 16 || !info.HasSessions || info.Bad != 0 {
		t.Fatalf("%+v, %v", info, err)
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
		"0 40 10 [] - [0 1 2]",
		"0 64 5 [0] 1.5s [0 1 3 4]",
		"0 72 7 [1] 250ms [0 1 3 4 5]",
		"1 16 100 [] - [6]",
		"2 40 10 [] - [7 8 9]",
		"2 64 5 [4] 1.5s [7 8 10 11]",
		"2 72 7 [5] 250ms [7 8 10 11 12]",
		"3 16 100 [] - [13]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	const counts = "num_turns: want as many lengths and latencies, and a final_assistant_response_length"
	for fields, want := range map[string]string{
		`"num_turns":2,"input_prompt_length":4,"assistant_response_length":[1],"tool_call_output_length":[1],"tool_call_latency":[1],"final_assistant_response_length":7`:  counts,
		`"num_turns":1,"input_prompt_length":4,"assistant_response_length":[1],"tool_call_output_length":[1],"tool_call_latency":[1]`:                                      counts,
		`"num_turns":0,"input_prompt_length":0,"assistant_response_length":[],"tool_call_output_length":[],"tool_call_latency":[],"final_assistant_response_length":7`:     "input_prompt_length: want a whole number from 1 to 16777216",
		`"num_turns":1,"input_prompt_length":4,"assistant_response_length":[1],"tool_call_output_length":[1],"tool_call_latency":[-1],"final_assistant_response_length":7`: "tool_call_latency: want seconds that are not negative",
	} {
		_, info, err := read(strings.NewReader("{"+fields+"}\n"), Options{MaxBad: 1})
		if err != nil || len(info.FirstBad) != 1 || !strings.HasSuffix(info.FirstBad[0].Error(), ": "+want) {
			t.Errorf("%.100s: %v, %v, want %s", fields, info.FirstBad, err, want)
		}
	}
}

// Groups of the same number in two files are two groups.
func TestRolloutsOfTwoFiles(t *testing.T) {
	const in = `{"group":0,"stream":0,"prompt_len":16,"out_lens":[10,5],"obs_lens":[14]}` + "\n"
	all, _, err := readTogether(textFiles(in, in), Options{})
	if err != nil || len(all) != 4 || all[0].SourceBlocks[0] == all[2].SourceBlocks[0] || all[0].Session.Reveal() == all[2].Session.Reveal() || all[3].Parents[0] != 2 {
		t.Errorf("%d entries, %v: %v", len(all), err, all)
	}
}
