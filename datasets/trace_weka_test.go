package datasets

import (
	"errors"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

const (
	noteWekaTimes = "times count from the start of each conversation, and the source does not tell when that was"
)

// conversationOf makes a conversation of requests, for which ' stands for ".
func conversationOf(id string, requests ...string) string {
	return strings.ReplaceAll(`{'id':'`+id+`','models':['m'],'block_size':4,'tool_tokens':1,'system_tokens':2,'requests':[`+strings.Join(requests, ",")+"]}", "'", `"`)
}

// The same conversations as lines, in an array, over several lines and by
// themselves.
func TestWekaRows(t *testing.T) {
	a := conversationOf("a",
		`{'t':0.0,'type':'s','model':'m','in':9,'out':2,'hash_ids':[1,2],'input_types':['text'],'stop':'tool_use','api_time':1.5,'think_time':0.0,'ttft':0.25}`,
		`{'t':4.25,'type':'n','model':'n','in':12,'out':0,'hash_ids':[1,2,3],'stop':'end_turn','api_time':1,'think_time':2.75}`,
		`{'t':9,'type':'n','in':3,'out':1,'stop':''}`)
	b := conversationOf("b", `{'t':1,'type':'s','model':'m','in':5,'out':1,'hash_ids':[1],'stop':'refusal','think_time':7,'api_time':null}`)
	want := []string{
		"0s session=a model=m turn=0 after=[] in=9 out=2 blocks=[0 1 2] stream=true tool_calls ttft=250ms e2e=1.5s",
		"4.25s session=a model=n thread=1 turn=0 after=[0] in=12 out=0 blocks=[0 1 3] stream=false stop e2e=1s think=2.75s",
		"9s session=a turn=1 after=[0 1] in=3 out=1 blocks=[4] stream=false",
		"1s session=b model=m turn=0 after=[] in=5 out=1 blocks=[5 6] stream=true content_filter",
	}
	for name, in := range map[string]string{
		"lines": a + "\n" + b + "\n", "array": "[" + a + ",\n" + b + "]", "spread out": strings.ReplaceAll(a, ",", ",\n ") + "\n" + strings.ReplaceAll(b, ",", ",\n"),
	} {
		info := reads(t, in, Options{}, want...)
		if info.Format != "weka" || info.BlockSize != 4 || !info.BlocksHashed || !info.HasTimes || !info.SessionTimes || info.TimeUnit != "s" || !info.HasSessions || info.Records != 2 {
			t.Errorf("%s: %+v", name, info)
		}
		notesAre(t, info, noteWekaTimes, noteWekaLocal+": 2")
	}
	reads(t, a, Options{}, want[:3]...)
	s, err := Open(strings.NewReader(a), Options{})
	if err != nil || s.Info().BlockSize != 4 {
		t.Errorf("the block size is not known from the start: %+v, %v", s.Info(), err)
	}
}

// What the prompts of one client begin with, its tools and its system prompt, is shared
// by conversations whose ids do not show it; told by their lengths and the model.
func TestWekaTrunk(t *testing.T) {
	with := func(tools, c string) string {
		return strings.Replace(c, `"tool_tokens":1`, `"tool_tokens":`+tools, 1) + "\n"
	}
	in := with("7", conversationOf("a", `{'t':0,'type':'s','model':'m','in':17,'out':1,'hash_ids':[1,2,3,4]}`, `{'t':1,'type':'s','model':'m','in':13,'out':1,'hash_ids':[1,2,9]}`,
		`{'t':2,'type':'subagent','tool_tokens':4,'system_tokens':0,'requests':[{'t':2,'type':'s','model':'m','in':8,'out':1,'hash_ids':[20,21]}]}`)) +
		with("7", conversationOf("b", `{'t':0,'type':'s','model':'m','in':13,'out':1,'hash_ids':[1,2,3]}`,
			// Its first block is another one now, which is of no trunk.
			`{'t':1,'type':'s','model':'m','in':8,'out':1,'hash_ids':[5,2]}`)) +
		with("7", conversationOf("c", `{'t':0,'type':'s','model':'n','in':8,'out':1,'hash_ids':[1,2]}`)) + // another model
		with("4", conversationOf("d", `{'t':0,'type':'s','model':'m','in':8,'out':1,'hash_ids':[1,2]}`)) + // another client
		with("7", conversationOf("e", `{'t':0,'type':'s','model':'m','in':5,'out':1,'hash_ids':[1]}`)) // shorter than the trunk
	info := reads(t, in, Options{},
		"0s session=a model=m turn=0 after=[] in=17 out=1 blocks=[0 1 2 3 4] stream=true",
		"1s session=a model=m turn=1 after=[0] in=13 out=1 blocks=[0 1 5 6] stream=true",
		"2s session=a model=m thread=1 turn=0 after=[1] in=8 out=1 blocks=[7 8] stream=true",
		"0s session=b model=m turn=0 after=[] in=13 out=1 blocks=[0 1 9 10] stream=true",
		"1s session=b model=m turn=1 after=[3] in=8 out=1 blocks=[11 1] stream=true",
		"0s session=c model=n turn=0 after=[] in=8 out=1 blocks=[12 13] stream=true",
		"0s session=d model=m turn=0 after=[] in=8 out=1 blocks=[14 15] stream=true",
		"0s session=e model=m turn=0 after=[] in=5 out=1 blocks=[0 16] stream=true")
	notesAre(t, info, noteWekaTimes, noteWekaTrunk+": 5")
}

// Ids: the same number is the same block within a conversation and, with the
// scope global, in others of that scope.
func TestWekaScopes(t *testing.T) {
	one := func(id, scope string) string {
		return strings.Replace(conversationOf(id, `{'t':0,'type':'s','in':8,'out':1,'hash_ids':[1,2]}`), `"models"`, `"hash_id_scope":"`+scope+`","models"`, 1) + "\n"
	}
	info := reads(t, one("a", "local")+one("b", "global")+one("c", "local")+one("d", "global"), Options{},
		"0s session=a turn=0 after=[] in=8 out=1 blocks=[0 1] stream=true",
		"0s session=b turn=0 after=[] in=8 out=1 blocks=[2 3] stream=true",
		"0s session=c turn=0 after=[] in=8 out=1 blocks=[4 5] stream=true",
		"0s session=d turn=0 after=[] in=8 out=1 blocks=[2 3] stream=true")
	notesAre(t, info, noteWekaTimes, noteWekaLocal+": 2")
	wantBad(t, one("a", "planet"), Options{}, "log:1:27: hash_id_scope: want local or global")
}

// Conversations whose ids are not those of full blocks only.
func TestWekaBlockCounts(t *testing.T) {
	info := reads(t, conversationOf("a",
		`{'t':0,'type':'s','in':8,'out':1,'hash_ids':[1,2]}`,             // as it should be, without a rest
		`{'t':1,'type':'s','in':9,'out':1,'hash_ids':[1,2,3]}`,           // an id for the rest
		`{'t':2,'type':'s','in':9,'out':1,'hash_ids':[1,2,3,4]}`,         // and one more
		`{'t':3,'type':'s','in':8,'out':1,'hash_ids':[1,2,3]}`,           // one too many, without a rest
		`{'t':4,'type':'s','in':17,'out':1,'hash_ids':[1,2]}`,            // half of them
		`{'t':5,'type':'s','in':17,'out':1,'hash_ids':[1]}`,              // a quarter
		`{'t':6,'type':'s','in':17,'out':1}`,                             // none
		`{'t':7,'type':'s','in':3,'out':1}`,                              // less than a block
		`{'t':8,'type':'s','in':2147483647,'out':1,'hash_ids':[1,1,1]}`), // far too few
		Options{},
		"0s session=a turn=0 after=[] in=8 out=1 blocks=[0 1] stream=true",
		"1s session=a turn=1 after=[0] in=9 out=1 blocks=[0 1 2] stream=true",
		"2s session=a turn=2 after=[1] in=9 out=1 blocks=[0 1 2] stream=true",
		"3s session=a turn=3 after=[2] in=8 out=1 blocks=[0 1] stream=true",
		"4s session=a turn=4 after=[3] in=17 out=1 blocks=[0 1 3 4 5] stream=true",
		"5s session=a turn=5 after=[4] in=17 out=1 stream=true",
		"6s session=a turn=6 after=[5] in=17 out=1 stream=true",
		"7s session=a turn=7 after=[6] in=3 out=1 blocks=[6] stream=true",
		"8s session=a turn=8 after=[7] in=2147483647 out=1 stream=true")
	notesAre(t, info, noteWekaTimes, noteWekaFloor+": 4", noteWekaNone+": 3", noteWekaLocal+": 1")
}

// request makes one with its times only.
func request(at, took string) string {
	return `{'t':` + at + `,'type':'s','in':0,'out':1,'api_time':` + took + `}`
}

func subagent(at string, requests ...string) string {
	return `{'t':` + at + `,'type':'subagent','agent_id':'x','status':'completed','requests':[` + strings.Join(requests, ",") + `]}`
}

func lasting(at, ms string, requests ...string) string {
	return strings.Replace(subagent(at, requests...), `'agent_id'`, `'duration_ms':`+ms+`,'agent_id'`, 1)
}

// What waits for what, by the order of times.
func TestWekaParents(t *testing.T) {
	for name, c := range map[string]struct {
		requests []string
		want     string // at after, for each entry
	}{
		"in turn":               {[]string{request("0", "1"), request("1", "2"), request("4", "1")}, "0s[] 1s[0] 4s[1]"},
		"times as rounded":      {[]string{request("0", "1.0000009"), request("1", "1")}, "0s[] 1s[0]"},
		"overlap":               {[]string{request("0", "1"), request("2", "9"), request("3", "1"), request("12", "1")}, "0s[] 2s[0] 3s[0] 12s[2]"},
		"nothing ended":         {[]string{request("0", "9"), request("1", "1")}, "0s[] 1s[]"},
		"no api_time":           {[]string{request("0", "null"), request("0", "null"), request("1", "null")}, "0s[] 0s[0] 1s[1]"},
		"out of order":          {[]string{request("5", "1"), request("0", "1"), request("7", "1")}, "0s[] 5s[] 7s[0]"},
		"subagent, joined":      {[]string{request("0", "1"), subagent("1.5", request("2", "1"), request("4", "1")), request("6", "1")}, "0s[] 2s[0] 4s[1] 6s[0 2]"},
		"subagents":             {[]string{request("0", "1"), subagent("1", request("1", "1")), subagent("1", request("1", "3")), request("3", "1"), request("5", "1")}, "0s[] 1s[0] 1s[0] 3s[0 1] 5s[2 3]"},
		"spawned in mid-answer": {[]string{request("0", "9"), subagent("1", request("1", "1")), request("10", "1")}, "0s[] 1s[] 10s[0 1]"},
		"from the subagent":     {[]string{request("0", "1"), subagent("10", request("0", "1"), request("5", "1"), request("20", "1")), request("40", "1")}, "0s[] 10s[0] 15s[1] 30s[2] 40s[0 3]"},
		"nested":                {[]string{request("0", "1"), subagent("10", request("0", "1"), subagent("2", request("0.5", "1")), request("5", "1"))}, "0s[] 10s[0] 12.5s[1] 15s[1 2]"},
		"subagent first":        {[]string{subagent("1", request("1", "1")), request("5", "1")}, "1s[] 5s[0]"},
		"subagent ran longer":   {[]string{request("0", "1"), lasting("1.5", "3500", request("2", "1")), request("4", "0.5"), request("6", "1")}, "0s[] 2s[0] 4s[0] 6s[1 2]"},
		"subagent ran shorter":  {[]string{request("0", "1"), lasting("1.5", "1000", request("2", "9")), request("4", "0.5")}, "0s[] 2s[0] 4s[0 1]"},
		"empty subagent":        {[]string{request("0", "1"), subagent("1"), request("5", "1")}, "0s[] 5s[0]"},
	} {
		all, info := mustRead(t, conversationOf("a", c.requests...), Options{})
		var got []string
		turns := map[int32]int32{}
		for i := range all {
			got = append(got, all[i].Time.Sub(Epoch).String()+strings.TrimPrefix(strings.TrimPrefix(strings.Join(strings.Fields(spellParents(&all[i])), " "), "after="), ""))
			checkEntry(t, &all[i], int64(i), &info)
			if n := turns[*all[i].Thread]; *all[i].Turn != n {
				t.Errorf("%s: turn %d of thread %d at %d, want %d", name, *all[i].Turn, *all[i].Thread, i, n)
			}
			turns[*all[i].Thread]++
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func spellParents(e *trace.Entry) string {
	s := spell(e)
	return s[strings.Index(s, "after=") : strings.IndexByte(s, ']')+1]
}

func TestWekaFaults(t *testing.T) {
	good := conversationOf("g", request("0", "1"))
	for in, want := range map[string]string{
		`{"block_size":4,"requests":[]}`:                                        "log:1:1: it has no id",
		`{"id":"a","requests":[]}`:                                              "log:1:1: block_size: want",
		`{"id":"a","block_size":-4,"requests":[]}`:                              "log:1:24: block_size: want",
		`{"id":5,"block_size":4,"requests":[]}`:                                 "log:1:7: a value of the conversation is not of its kind",
		`{"id":"a","block_size":"4","requests":[]}`:                             "log:1:26: a value",
		conversationOf("a", `{'t':0,'type':'x','in':1,'out':1}`):                "log:1:101: type: want s, n or subagent",
		conversationOf("a", `{'t':0,'type':'s','out':1}`):                       "log:1:87: in: want a whole number",
		conversationOf("a", `{'t':0,'type':'s','in':1,'out':-1}`):               "log:1:118: out: want a whole number",
		conversationOf("a", `{'t':-1,'type':'s','in':1,'out':1}`):               "log:1:92: want seconds",
		conversationOf("a", `{'type':'s','in':1,'out':1}`):                      "log:1:87: want seconds",
		conversationOf("a", `{'t':1e9,'type':'s','in':1,'out':1}`):              "log:1:92: want seconds",
		conversationOf("a", `{'t':0,'type':'s','in':1,'out':1,'ttft':-1}`):      "log:1:127: want seconds",
		conversationOf("a", `{'t':'abc','type':'s','in':1,'out':1}`):            "log:1:1: a value of the conversation",
		conversationOf("a", `{'t':0,'type':'s','in':1,'out':1,'hash_ids':[-1]`): "log:1:",
		conversationOf("a", subagent("1", request("2", "-1"))):                  "log:1:204: want seconds",
		conversationOf("a", subagent("-1", request("2", "1"))):                  "log:1:92: want seconds",
		`{"id":"a","block_size":4,"requests":[{]}`:                              "log:1:39: it is not valid JSON",
		`{"id":"a","block_size":4,"requests":{"a":1}}`:                          "log:1:",
		good + "\n" + strings.Replace(good, `size":4`, `size":8`, 1):            "log:2:39: its blocks are of another size",
	} {
		wantBad(t, in+"\n"+good+"\n", Options{Format: "weka"}, want)
	}
	// All of a conversation is skipped, and those around it keep their places.
	reads(t, good+"\n"+conversationOf("a", request("0", "1"), request("1", "-1"))+"\n"+conversationOf("h", request("0", "1"), request("2", "1"))+"\n", Options{MaxBad: 0.5},
		"0s session=g turn=0 after=[] in=0 out=1 blocks=[] stream=true e2e=1s",
		"0s session=h turn=0 after=[] in=0 out=1 blocks=[] stream=true e2e=1s",
		"2s session=h turn=1 after=[1] in=0 out=1 blocks=[] stream=true e2e=1s")
	wantBad(t, conversationOf("a", request("0", "1"), request("5184001", "1")), Options{}, "log:1:")
	if info := reads(t, conversationOf("a")+"\n"+good, Options{}, "0s session=g turn=0 after=[] in=0 out=1 blocks=[] stream=true e2e=1s"); info.Records != 2 {
		t.Errorf("%+v", info)
	}
	if _, _, err := read(strings.NewReader(good), Options{TimeUnit: "s"}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a unit: %v", err)
	}
}

// Conversations get starts, and keep the times within them.
func TestSpread(t *testing.T) {
	in := conversationOf("a", request("3", "1"), request("5", "1")) + "\n" + conversationOf("b", request("0", "1"), request("9.5", "1")) + "\n" + conversationOf("c", request("1", "1"))
	src, err := Open(strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(Spread(src, processOf(t, "constant:0.1")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, 2 * time.Second, 10 * time.Second, 19500 * time.Millisecond, 20 * time.Second} {
		if at := got[i].Time.Sub(Epoch); at != want {
			t.Errorf("entry %d at %v, want %v", i, at, want)
		}
	}
}

// Requests without a session each have a start, and no time is before that of
// the first entry of its session.
func TestSpreadWithoutSessions(t *testing.T) {
	s := trace.NewText("s")
	at := func(d time.Duration) time.Time { return Epoch.Add(d) }
	src := &entries{{Time: at(50)}, {Session: s, Time: at(time.Hour)}, {Time: at(7)}, {Session: s, Time: at(0)}, {Session: s, Time: at(time.Hour + 1)}}
	got, err := readAll(Spread(src, processOf(t, "constant:1")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, time.Second, time.Second + 1} {
		if d := got[i].Time.Sub(Epoch); d != want {
			t.Errorf("entry %d at %v, want %v", i, d, want)
		}
	}
}

// A corpus is a file for each conversation.
func TestWekaFiles(t *testing.T) {
	a := conversationOf("a", `{'t':0,'type':'s','in':8,'out':1,'hash_ids':[1,2]}`)
	b := strings.ReplaceAll(conversationOf("b", `{'t':1,'type':'n','in':8,'out':1,'hash_ids':[1,2]}`), ",", ",\n")
	f := wekaFormat()
	if !f.detectFiles(textFiles(a, b)) || f.detectFiles(textFiles(a, oneRow)) {
		t.Error("a corpus is not told by its files")
	}
	all, info, err := readAs(f.Name, textFiles(a, b), Options{})
	if err != nil || len(all) != 2 || spell(&all[1]) != "1s session=b turn=0 after=[] in=8 out=1 blocks=[2 3] stream=false" || info.BlockSize != 4 {
		t.Errorf("%d entries, %+v, %v", len(all), info, err)
	}
	_, _, err = readAs(f.Name, textFiles(a, b[:40]), Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "file2:") {
		t.Errorf("a file that is cut: %v", err)
	}
}

// Times that the source recorded stand when Timed gives the rest.
func TestTimedKeepsRecordedTimes(t *testing.T) {
	src := &entries{{}, {Parents: []int64{0}, Think: trace.Ptr(time.Second)}, {Parents: []int64{1}, Tool: trace.Ptr(time.Minute)}}
	got, err := readAll(Timed(src, processOf(t, "constant:1"), distOf(t, "constant:2s", "service"), distOf(t, "constant:5s", "think")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, 3 * time.Second, 70 * time.Second} {
		if at := got[i].Time.Sub(Epoch); at != want {
			t.Errorf("entry %d at %v, want %v", i, at, want)
		}
	}
	if *got[1].Think != time.Second || *got[2].Think != 5*time.Second {
		t.Errorf("think %v and %v", *got[1].Think, *got[2].Think)
	}
}
