package datasets

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// trtllmTraceOf makes an execution trace of events, for which ' stands for ".
func trtllmTraceOf(id string, events ...string) string {
	return strings.ReplaceAll(`{'trace_id':'`+id+`','events':[`+strings.Join(events, ",\n")+"]}\n", "'", `"`)
}

// trtllmMessage is a message; an assistant's is a call.
func trtllmMessage(branch string, conversation, index int, role, more string) string {
	return fmt.Sprintf(`{'event_type':'message','branch_path':[%s],'conversation_id':%d,'role':'%s','message_index':%d,%s}`, branch, conversation, role, index, more)
}

func trtllmEventAt(kind, branch, more string) string {
	return `{'event_type':'` + kind + `','branch_path':[` + branch + `]` + more + `}`
}

// The prompts of a conversation grow. What a tool took is between two calls.
func TestTRTLLMConversation(t *testing.T) {
	in := trtllmTraceOf("a",
		trtllmMessage("", 0, 0, "system", `'system_prompt_id':'s','tokens':8`), trtllmMessage("", 0, 1, "user", `'tokens':5`),
		trtllmMessage("", 0, 2, "assistant", `'prompt_tokens':13,'completion_tokens':6,'reasoning_tokens':2,'finish_reason':'tool_calls','tool_calls':['x'],'llm_duration_ms':1500.25,'llm_request_params':{'model':'m'}`),
		trtllmEventAt("tool_call", "", `,'tool_name':'x','duration_ms':152.5`), trtllmEventAt("tool_call", "", `,'tool_name':'y','duration_ms':2`),
		trtllmMessage("", 0, 3, "tool", `'tokens':3`),
		trtllmMessage("", 0, 4, "assistant", `'prompt_tokens':21,'completion_tokens':1,'finish_reason':'stop'`),
		// The user's message is another one now, and the prompt is that of its messages.
		trtllmMessage("", 0, 1, "user", `'tokens':7`), trtllmMessage("", 0, 2, "assistant", `'completion_tokens':1`),
		trtllmEventAt("drop_kv_cache", "", ""), trtllmEventAt("tool_call", "", `,'duration_ms':5`),
	) + trtllmTraceOf("b", // begins with the same system prompt
		trtllmMessage("", 7, 0, "system", `'system_prompt_id':'s','tokens':9`), trtllmMessage("", 7, 1, "assistant", `'prompt_tokens':12,'completion_tokens':2`),
	) + trtllmTraceOf("a", trtllmMessage("", 0, 0, "assistant", `'prompt_tokens':1,'completion_tokens':1`)) + trtllmTraceOf("c")
	info := reads(t, in, Options{BlockSize: 4},
		"session=a model=m turn=0 after=[] in=13 out=6 reasoning=2 blocks=[0 1 2 3] chat tool_calls e2e=1.50025s",
		"session=a turn=1 after=[0] in=21 out=1 blocks=[0 1 2 4 5 6] chat stop think=0s tool=154.5ms",
		"session=a turn=2 after=[1] in=15 out=1 blocks=[0 1 7 8] chat think=0s tool=0s",
		"session=b turn=0 after=[] in=12 out=2 blocks=[0 1 9] chat")
	if info.Format != "trtllm-trace" || info.BlockSize != 4 || !info.BlocksHashed || info.HasTimes || !info.HasSessions || info.HasText {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteTRTLLMDrops+": 1", noteTRTLLMTwice+": 1", noteTRTLLMNone+": 1")
}

// Branches wait for what was before them, and what follows waits for all of them.
func TestTRTLLMBranches(t *testing.T) {
	call := func(branch string, conversation int) string {
		return trtllmMessage(branch, conversation, 9, "assistant", `'prompt_tokens':40,'completion_tokens':1`)
	}
	tool := func(branch string, ms int) string {
		return trtllmEventAt("tool_call", branch, fmt.Sprintf(`,'duration_ms':%d`, ms))
	}
	for name, c := range map[string]struct {
		events []string
		want   []string // what each call waits for, and how long tools ran
	}{
		"agents": {
			[]string{call("", 0), tool("", 5), trtllmEventAt("parallel_start", "", `,'num_branches':2`), call("0", 1), call("1", 2), tool("0", 7), call("0", 1), tool("1", 3),
				trtllmEventAt("parallel_end", "", ""), tool("", 1), call("", 0)},
			[]string{"[]", "[0] 5ms", "[0] 5ms", "[1] 7ms", "[2 3] 4ms"},
		},
		"tools at once": {
			[]string{call("", 0), trtllmEventAt("parallel_start", "", `,'num_branches':2`), tool("0", 50), tool("1", 30), trtllmEventAt("parallel_end", "", ""), call("", 0)},
			[]string{"[]", "[0] 50ms"},
		},
		"branches in branches": {
			[]string{trtllmEventAt("parallel_start", "", ""), call("0", 1), trtllmEventAt("parallel_start", "0", ""), call("0,0", 2), call("0,1", 3), trtllmEventAt("parallel_end", "0", ""),
				call("1", 4), trtllmEventAt("parallel_end", "", ""), call("", 0), trtllmEventAt("parallel_start", "", ""), call("1", 5), trtllmEventAt("parallel_end", "", ""), call("", 0)},
			[]string{"[]", "[0] 0s", "[0] 0s", "[]", "[1 2 3] 0s", "[4] 0s", "[5] 0s"},
		},
		"older, without an end": {
			[]string{call("", 0), trtllmEventAt("parallel_start", "", `,'children':[`+call("", 1)+","+call("", 2)+`]`), call("", 0), trtllmEventAt("parallel_start", "", ""), call("0", 1), call("", 0)},
			[]string{"[]", "[0] 0s", "[0] 0s", "[1 2] 0s", "[3] 0s", "[4] 0s"},
		},
	} {
		all, _ := mustRead(t, trtllmTraceOf("a", c.events...), Options{})
		var got []string
		for i := range all {
			e := &all[i]
			got = append(got, fmt.Sprint(e.Parents))
			if e.Tool != nil {
				got[i] += " " + e.Tool.String()
			}
		}
		if strings.Join(got, ", ") != strings.Join(c.want, ", ") {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), strings.Join(c.want, ", "))
		}
	}
}

func TestTRTLLMFaults(t *testing.T) {
	for events, want := range map[string]string{
		trtllmMessage("", 0, 0, "assistant", `'completion_tokens':1`):  "prompt_tokens: want a whole number from 1 to 16777216, or the tokens of each message",
		trtllmMessage("", 0, 0, "assistant", `'prompt_tokens':9`):      "completion_tokens and reasoning_tokens: want whole numbers from 0 to 2147483647",
		trtllmMessage("", 0, 0, "user", `'tokens':-1`):                 "tokens: want a whole number from 0 to 16777216",
		trtllmEventAt("tool_call", "", `,'duration_ms':-1`):            "want milliseconds that are not negative",
		trtllmEventAt("tool_call", strings.Repeat("0,", 1000)+"0", ""): "branch_path: want at most 1000 numbers",
		trtllmEventAt("other", "", ""):                                 "event_type: want message, tool_call, parallel_start, parallel_end or drop_kv_cache",
		strings.Repeat(trtllmMessage("", 0, 0, "assistant", `'prompt_tokens':16777216,'completion_tokens':1`)+",", 33) + trtllmEventAt("parallel_end", "", ""): "the prompts of its trace have more than 16777216 blocks: say a larger size with --source-block-size",
	} {
		_, info, err := read(strings.NewReader(trtllmTraceOf("a", events)), Options{MaxBad: 1})
		if err != nil || len(info.FirstBad) != 1 || !strings.HasSuffix(info.FirstBad[0].Error(), ": "+want) {
			t.Errorf("%.100s: %v, %v, want %s", events, info.FirstBad, err, want)
		}
	}
}

// A call begins when those that it waits for have ended, where that is known.
func TestTRTLLMTimed(t *testing.T) {
	in := trtllmTraceOf("a", trtllmMessage("", 0, 0, "assistant", `'prompt_tokens':9,'completion_tokens':1,'llm_duration_ms':1500`), trtllmEventAt("tool_call", "", `,'duration_ms':250`),
		trtllmMessage("", 0, 1, "assistant", `'prompt_tokens':12,'completion_tokens':1`), trtllmMessage("", 0, 2, "assistant", `'prompt_tokens':15,'completion_tokens':1`))
	all, _ := mustRead(t, in, Options{})
	all, err := readAll(Timed((*entries)(&all), processOf(t, "poisson:1"), distOf(t, "constant:3s", "service"), distOf(t, "constant:9s", "think")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, 1750 * time.Millisecond, 4750 * time.Millisecond} {
		if got := all[i].Time.Sub(Epoch); got != want {
			t.Errorf("call %d at %v, want %v", i, got, want)
		}
	}
}
