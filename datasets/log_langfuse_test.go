package datasets

import (
	"strings"
	"testing"
)

// observation is a generation with the given fields.
func observation(more string) string {
	return `{"id":"o","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:05.500000","end_time":"2026-01-02 03:04:07.000000","usage_details":{"input":10,"output":3}` + more + "}"
}

func TestLangfuseUsage(t *testing.T) {
	const when = "490923h4m5.5s session=t e2e=1.5s "
	for usage, want := range map[string]string{
		`{"input":10,"output":3}`:            "in=10 out=3",
		`{"input":10,"output":3,"total":13}`: "in=10 out=3",
		// As Langfuse stores a usage of OpenAI's: the details are taken out.
		`{"input":10,"input_cached_tokens":6,"output":3,"output_reasoning_tokens":2,"total":21}`: "in=16 out=5 cached=6 reasoning=2",
		`{"input":10,"input_cached_tokens":6,"output":3}`:                                        "in=16 out=3 cached=6",
		// As Anthropic counts: written to the cache is not read from it.
		`{"input":10,"cache_read_input_tokens":6,"cache_creation_input_tokens":4,"output":3}`: "in=20 out=3 cached=6",
		// As logged by hand: the total tells that input holds the details.
		`{"input":10,"input_cached_tokens":6,"output":3,"total":13}`: "in=10 out=3 cached=6",
		`{"input":10,"input_cached_tokens":0,"output":3,"total":13}`: "in=10 out=3 cached=0",
		`{"input_tokens":10,"output_tokens":3}`:                      "in=10 out=3",
		`{"input":10,"input_audio":null,"output":3,"other":7}`:       "in=10 out=3",
		`"{\"input\":10,\"output\":3}"`:                              "in=10 out=3",
	} {
		in := strings.Replace(observation(""), `{"input":10,"output":3}`, usage, 1)
		wantEntries(t, in, Options{}, when+want)
	}
}

func TestLangfuseFields(t *testing.T) {
	const when = "490923h4m5.5s in=10 out=3 e2e=1.5s "
	for more, want := range map[string]string{
		`,"session_id":"s","user_id":"u","provided_model_name":"m"`:                            "session=s user=u model=m",
		`,"completion_start_time":"2026-01-02 03:04:05.750000"`:                                "session=t ttft=250ms",
		`,"completion_start_time":"2026-01-02 03:04:07"`:                                       "session=t",
		`,"level":"ERROR","status_message":"x"`:                                                "session=t failed",
		`,"model_parameters":{"max_tokens":"100","temperature":0.5}`:                           "session=t max=100 temperature=0.5",
		`,"model_parameters":"{\"max_tokens\":\"inf\",\"temperature\":\"None\"}"`:              "session=t",
		`,"input":[{"role":"user","content":"q"}],"output":{"role":"assistant","content":"a"}`: `session=t user:"q" reply="a" chat`,
		`,"input":{"messages":[{"role":"user","content":"q"}],"tools":[]},"output":"a"`:        `session=t user:"q" reply="a" chat`,
		`,"input":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","output":"\"a\""`:   `session=t user:"q" reply="a" chat`,
		`,"input":"plain","output":[{"role":"assistant","content":"a"}]`:                       `session=t user:"plain" reply="a" completion`,
		`,"input":{"question":"q"},"output":7`:                                                 "session=t",
		`,"input":[{"role":"alien"}],"output":["x"]`:                                           "session=t",
	} {
		wantEntries(t, observation(more), Options{}, when+want)
	}
	wantNote(t, wantEntries(t, observation(`,"input":{"question":"q"}`), Options{}, when+"session=t"), noteNoMessages+": 1")
}

// The forms of an export: CSV, an array, lines, files, and the API's spelling.
func TestLangfuseForms(t *testing.T) {
	const want = "490923h4m5.5s session=t in=10 out=3 e2e=1.5s"
	one := observation("")
	wantEntries(t, one+"\n"+one+"\n", Options{}, want, want)
	wantEntries(t, "["+one+",\n"+one+"]", Options{}, want, want)
	api := `{"id":"o","traceId":"t","type":"GENERATION","startTime":"2026-01-02T03:04:05.500Z","endTime":"2026-01-02T03:04:07Z","completionStartTime":"2026-01-02T03:04:05.600Z","usageDetails":{"input":10,"output":3},"modelParameters":{"max_tokens":5},"sessionId":null,"userId":"u","model":"m"}`
	wantEntries(t, api, Options{}, want+" ttft=100ms max=5 user=u model=m")
	header := "id,trace_id,type,start_time,end_time,usage_details,input,session_id\n"
	csv := header + `o,t,GENERATION,2026-01-02 03:04:05.500000,2026-01-02 03:04:07.000000,"{""input"":10,""output"":3}","[{""role"":""user"",""content"":""q""}]",` + "\n" +
		"o,t,SPAN,2026-01-02 03:04:05.500000,,,,\n"
	info := wantEntries(t, csv, Options{}, want+` user:"q" chat`)
	wantNote(t, info, noteOtherObservations+": 1")
	all, _, err := readTogether(textFiles(one, "["+one+"]", header+csv[len(header):]), Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all, []string{want, want, want + ` user:"q" chat`})
	for _, kind := range []string{"SPAN", "EVENT", "AGENT", "TOOL", "EMBEDDING", ""} {
		wantEntries(t, strings.Replace(one, "GENERATION", kind, 1), Options{})
	}
}

func TestLangfuseFaults(t *testing.T) {
	wantBad(t, strings.Replace(observation(""), "2026-01-02 03:04:05.500000", "zqx", 1), Options{}, "log:1:59: time: want a number")
	wantBad(t, strings.Replace(observation(""), `{"input":10,"output":3}`, `"zqx"`, 1), Options{}, "log:1:144: usage_details: want JSON")
	wantBad(t, strings.Replace(observation(""), `{"input":10,"output":3}`, `{}`, 1), Options{}, "log:1:1: it has neither a prompt nor the length of one")
	wantBad(t, "["+observation("")+",", Options{}, "log:1:170: unexpected end of file")
}

func FuzzLangfuse(f *testing.F) {
	f.Add([]byte(logFixtures["langfuse"]))
	f.Add([]byte(observation(`,"input":"MARK","model_parameters":{"max_tokens":"MARK"},"MARK":MARK`)))
	f.Add([]byte("type,start_time,usage_details,input\nGENERATION,2026-01-02 03:04:05,\"{\"\"input\"\":5}\",MARK\nGENERATION,MARK,MARK,MARK\n"))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "langfuse"}) })
}
