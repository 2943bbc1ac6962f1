package datasets

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func quoted(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "'", `"`)
}

// A message of Gemini CLI is written again when it grows; a rewind goes back to one, and
// a sub-agent is in a folder named for its parent.
func TestGemini(t *testing.T) {
	meta := func(id, kind, at string) string {
		return "{'sessionId':'" + id + "','projectHash':'zebra','startTime':'1970-01-01T00:00:" + at + "Z','lastUpdated':'zebra','kind':'" + kind + "'}"
	}
	asks := func(id, at string) string {
		return "{'id':'" + id + "','timestamp':'1970-01-01T00:00:" + at + "Z','type':'user','content':'zebra'}"
	}
	says := func(id, at, tokens, tools string) string {
		if tokens != "" {
			tokens = ",'tokens':" + tokens
		}
		if tools != "" {
			tools = ",'toolCalls':[{'id':'c','name':'zebra','timestamp':'1970-01-01T00:00:" + tools + "Z'}]"
		}
		return "{'id':'" + id + "','timestamp':'1970-01-01T00:00:" + at + "Z','type':'gemini','model':'m','content':'zebra'" + tokens + tools + "}"
	}
	const used = "{'input':900,'output':28,'cached':640,'thoughts':12,'tool':10,'total':950}"
	main := quoted(meta("s", "main", "00"), asks("u1", "01"), says("g1", "03", "", ""), says("g1", "03", used, "08"), says("g2", "10", used, ""), "{'$set':{'lastUpdated':'zebra'}}",
		asks("u2", "20"), says("g3", "22", used, ""), "{'$rewindTo':'g2'}", asks("u3", "30"), says("g4", "33", used, ""))
	info := reads(t, main, Options{},
		"1s session=s model=m turn=0 after=[] in=910 out=40 cached=640 reasoning=12 chat e2e=2s",
		"8s session=s model=m turn=1 after=[0] in=910 out=40 cached=640 reasoning=12 chat e2e=2s tool=5s",
		"20s session=s model=m turn=2 after=[1] in=910 out=40 cached=640 reasoning=12 chat e2e=2s think=10s",
		"30s session=s model=m turn=3 after=[1] in=910 out=40 cached=640 reasoning=12 chat e2e=3s think=20s")
	notesAre(t, info, noteAgentArrival)
	// The file of before 2026 is one object, over many lines or in one.
	first, messages, _ := strings.Cut(strings.TrimSpace(main), "\n")
	old := strings.TrimSuffix(strings.TrimPrefix(first, "{"), "}") + `,"messages":[` + strings.ReplaceAll(messages, "\n", ",\n") + "]}"
	want, _ := mustRead(t, main, Options{})
	for _, in := range []string{"{\n" + old, "{" + strings.ReplaceAll(old, "\n", "")} {
		files := textFiles(in)
		files[0].Name = "chats/session-1.json"
		all, _, err := readTogether(files, Options{})
		if alone, _ := mustRead(t, in, Options{}); err != nil || !reflect.DeepEqual(all,
			want) || !reflect.DeepEqual(alone, want) {
			t.Errorf("%s: %v, %v", in, all, err)
		}
	}
	wantBad(t, "{\n"+strings.Replace(old, "00:08Z", "00.08Z", 1), Options{}, "log:4:")
	files := textFiles(quoted(meta("k", "subagent", "04"), asks("u", "04"), says("g", "06", used, "")), main)
	files[0].Name, files[1].Name = "chats/s/k.jsonl", "chats/session-1.jsonl"
	all, _, err := readTogether(files, Options{})
	if err != nil || len(all) != 5 || spell(&all[1]) != "4s session=s model=m turn=1 after=[0] in=910 out=40 cached=640 reasoning=12 chat e2e=2s tool=1s" || len(all[2].Parents) != 2 {
		t.Fatalf("%d: %v", len(all), err)
	}
	wantBad(t, quoted(says("g", "06", "{'input':-1}", "")), Options{}, "log:1:101: tokens: want whole numbers from 0 to 2147483647, with the cached tokens part of the input")
	wantBad(t, quoted(says("g", "66", used, "")), Options{}, "log:1:23: timestamp: want a date such as 2026-01-02T15:04:05.000Z")
}

// Qwen Code tells a call once, and its telemetry tells it again.
func TestQwen(t *testing.T) {
	line := func(kind, uuid, at, more string) string {
		return quoted("{'uuid':'" + uuid + "','parentUuid':'p','sessionId':'q','timestamp':'1970-01-01T00:00:" + at + "Z','type':'" + kind + "'" + more + "}")
	}
	const used = ",'model':'m','message':{'role':'model','parts':[{'text':'zebra'}]},'usageMetadata':{'promptTokenCount':900,'cachedContentTokenCount':640,'candidatesTokenCount':28,'thoughtsTokenCount':12,'totalTokenCount':940}"
	log := line("user", "1", "01", "") + line("assistant", "2", "03", used) + line("system", "3", "03", ",'subtype':'ui_telemetry','usageMetadata':{'promptTokenCount':900}") +
		line("tool_result", "4", "05", "") + line("assistant", "5", "06", used) + line("assistant", "5", "06", used) + line("user", "6", "10", "") + line("assistant", "7", "12", used)
	info := reads(t, log, Options{},
		"1s session=q model=m turn=0 after=[] in=900 out=40 cached=640 reasoning=12 chat e2e=2s",
		"5s session=q model=m turn=1 after=[0] in=900 out=40 cached=640 reasoning=12 chat e2e=1s tool=2s",
		"10s session=q model=m turn=2 after=[1] in=900 out=40 cached=640 reasoning=12 chat e2e=2s think=4s")
	if info.Format != "qwen-code" {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteAgentArrival)
	// Behind OpenAI's protocol the thoughts are within the candidates, as the total shows.
	reads(t, line("assistant", "2", "03", strings.Replace(used, "940", "928", 1)), Options{}, "3s session=q model=m turn=0 after=[] in=900 out=28 cached=640 reasoning=12 chat")
	wantBad(t, strings.Replace(line("assistant", "2", "03", used), "900", "1", 1), Options{}, "log:1:182: usageMetadata: want whole numbers from 0 to 2147483647, with the cached tokens part of the input")
}

// A task of Cline has the tokens of a call in a text; the protocol says what the input holds.
func TestCline(t *testing.T) {
	sent := func(at, usage string) string {
		return `{"ts":17673230` + at + `,"type":"say","say":"api_req_started","text":"` + strings.ReplaceAll(usage, "'", `\"`) + `"}`
	}
	named := strings.Replace(sent("50000", "{'tokensIn':900,'tokensOut':40,'cacheWrites':0,'cacheReads':640,'apiProtocol':'openai'}"), `"type"`, `"modelInfo":{"providerId":"p","modelId":"m","mode":"act"},"type"`, 1)
	task := "[" + strings.Join([]string{`{"ts":1767323040000,"type":"say","say":"task","text":"zebra"}`,
		sent("45100", "{'request':'zebra','tokensIn':20,'tokensOut':40,'cacheWrites':240,'cacheReads':640}"),
		`{"ts":1767323046000,"type":"ask","ask":"tool","text":"{\"tokensIn\":1}"}`,
		named,
		sent("60000", "{'request':'zebra'}")}, ",\n") + "]"
	files := textFiles(task, task, "{}")
	files[0].Name, files[1].Name, files[2].Name = "tasks/1/ui_messages.json", "tasks/2/ui_messages.json", "tasks/1/task_metadata.json"
	all, info, err := readTogether(files, Options{})
	var got []string
	for i := range all {
		got = append(got, spell(&all[i]))
	}
	want := "490923h4m5.1s session=task 1 1 turn=0 after=[] in=900 out=40 cached=640 chat; 490923h4m5.1s session=task 2 2 turn=0 after=[] in=900 out=40 cached=640 chat; " +
		"490923h4m10s session=task 1 1 model=m turn=1 after=[0] in=900 out=40 cached=640 chat; 490923h4m10s session=task 2 2 model=m turn=1 after=[1] in=900 out=40 cached=640 chat"
	if err != nil || strings.Join(got, "; ") != want || info.Format != "cline" {
		t.Errorf("%v %s", err, strings.Join(got, "; "))
	}
	if len(info.LeftOut) != 1 {
		t.Errorf("left out: %q", info.LeftOut)
	}
	notesAre(t, info, noteClineUnended+": 2")
	wantBad(t, "["+sent("45100", "{'tokensIn':-1,'tokensOut':40}")+"]", Options{}, "log:1:66: text: want whole numbers from 0 to 2147483647")
}

// A session of OpenCode has its calls as messages; a sub-agent names its parent.
func TestOpenCode(t *testing.T) {
	said := func(role, created, completed, finish string) string {
		return "{'info':{'role':'" + role + "','modelID':'m','finish':'" + finish + "','time':{'created':17673230" + created + ",'completed':17673230" + completed + "},'tokens':{'input':20,'output':28,'reasoning':12,'cache':{'read':640,'write':240}}},'parts':['zebra']}"
	}
	session := func(info string, messages ...string) string {
		return quoted("{'info':{" + info + "},'messages':[" + strings.Join(messages, ",") + "]}")
	}
	root := session("'id':'s'", "{'info':{'role':'user','time':{'created':1}}}", said("assistant", "45000", "47000", "tool-calls"), said("assistant", "57000", "58000", "stop"),
		"{'info':{'role':'user'}}", said("assistant", "70000", "71000", "end_turn"))
	child := session("'id':'k','parentID':'s'", said("assistant", "48000", "55000", "stop"))
	info := reads(t, child+root, Options{},
		"490923h4m5s session=s model=m turn=0 after=[] in=900 out=40 cached=640 reasoning=12 chat tool_calls e2e=2s",
		"490923h4m8s session=s model=m turn=1 after=[0] in=900 out=40 cached=640 reasoning=12 chat stop e2e=7s tool=1s",
		"490923h4m17s session=s model=m turn=2 after=[0 1] in=900 out=40 cached=640 reasoning=12 chat stop e2e=1s tool=2s",
		"490923h4m30s session=s model=m turn=3 after=[2] in=900 out=40 cached=640 reasoning=12 chat stop e2e=1s think=12s")
	if info.Format != "opencode" || info.TimeUnit != "ms" {
		t.Errorf("%+v", info)
	}
	notesAre(t, info)
	wantBad(t, session("'title':'zebra'"), Options{}, "log:1:9: info: want the id of the session")
	wantBad(t, strings.Replace(root, `"read":640`, `"read":-1`, 1), Options{}, "log:1:31: messages: want whole numbers from 0 to 2147483647")
}

// These have one seed with what may be in a file and one that is broken.
// A line that is broken, such as the first of a file that was cut, is left out alone.
func TestBrokenLinesOfAgents(t *testing.T) {
	for _, f := range []Format{aiderFormat(), codexFormat(), geminiFormat(), qwenFormat()} {
		all, info, err := read(strings.NewReader("{\"a\":\n"+f.Example+"\n"), Options{Format: f.Name, MaxBad: 1})
		if err != nil || len(all) != 1 || info.Bad != 1 {
			t.Errorf("%s: %d calls, %d bad records, %v", f.Name, len(all), info.Bad, err)
		}
	}
}

// A log without tokens has no calls, and says why.
func TestAgentsWithoutTokens(t *testing.T) {
	for _, in := range []string{quoted("{'timestamp':'2026-01-01T00:00:00Z','type':'session_meta','payload':{'id':'s'}}",
		"{'timestamp':'2026-01-01T00:00:05Z','type':'response_item','payload':{'type':'message','role':'assistant'}}"),
		quoted("{'sessionId':'s','projectHash':'p','startTime':'2026-01-01T00:00:00Z'}",
			"{'id':'g','timestamp':'2026-01-01T00:00:05Z','type':'gemini'}")} {
		all, info := mustRead(t, in, Options{})
		if len(all) != 0 || !slices.Contains(info.Notes, noteNoTokens) {
			t.Errorf("%s: %d calls, %q", in, len(all), info.Notes)
		}
	}
}
