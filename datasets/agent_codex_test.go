package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// codexLine makes a record; ' stands for ". at is in seconds, with an ordinal behind a
// comma if there is one.
func codexLine(at, kind, payload string) string {
	at, ordinal, _ := strings.Cut(at, ",")
	if ordinal != "" {
		ordinal = "'ordinal':" + ordinal + ","
	}
	var seconds float64
	fmt.Sscan(at, &seconds)
	return strings.ReplaceAll(fmt.Sprintf("{'timestamp':'1970-01-01T00:00:%06.3fZ',%s'type':'%s','payload':{%s}}\n", seconds, ordinal, kind, payload), "'", `"`)
}

func codexMetaLine(at, id, more string) string {
	return codexLine(at, "session_meta", strings.TrimSuffix("'id':'"+id+"',"+more, ","))
}

// codexTurn is what comes before a call and its answer: a turn_context, and a tool call.
func codexTurn(at, turn string) string {
	return codexLine(at, "turn_context", "'turn_id':'"+turn+"','model':'m'")
}

func codexCalls(at, tool, call string) string {
	return codexLine(at, "response_item", "'type':'function_call','name':'"+tool+"','call_id':'"+call+"','arguments':'zebra'")
}

func codexResult(at, call string) string {
	return codexLine(at, "response_item", "'type':'function_call_output','call_id':'"+call+"','output':'zebra'")
}

func codexCount(at string, total, last [4]int) string {
	spell := func(u [4]int) string {
		return fmt.Sprintf("{'input_tokens':%d,'cached_input_tokens':%d,'output_tokens':%d,'reasoning_output_tokens':%d}", u[0], u[1], u[2], u[3])
	}
	return codexLine(at, "event_msg", "'type':'token_count','info':{'total_token_usage':"+spell(total)+",'last_token_usage':"+spell(last)+"}")
}

const (
	codexSays = "'type':'message','role':'assistant'"
	codexAsks = "'type':'user_message','message':'zebra'"
)

// A count stands twice for a call, and once for none; in newer files it comes after the
// results of the call's tools.
func TestCodexCalls(t *testing.T) {
	log := codexMetaLine("1", "s", "'base_instructions':{'text':'"+strings.Repeat("z", 100_000)+"'}") +
		codexLine("1", "event_msg", codexAsks) + codexTurn("1.25", "t1") +
		codexLine("2", "event_msg", "'type':'token_count','info':null") +
		codexLine("3", "response_item", "'type':'reasoning'") + codexCalls("4", "exec", "c1") + codexCalls("4.5", "exec", "c2") +
		codexCount("4.75", [4]int{900, 640, 40, 20}, [4]int{900, 640, 40, 20}) +
		codexResult("6", "c1") + codexResult("5", "c2") + codexTurn("6.25", "t1") +
		codexCount("7", [4]int{900, 640, 40, 20}, [4]int{900, 640, 40, 20}) +
		codexCalls("8", "exec", "c3") + codexResult("9", "c3") +
		codexCount("9", [4]int{1900, 1540, 60, 20}, [4]int{1000, 900, 20, 0}) +
		codexLine("10", "response_item", codexSays) +
		strings.Replace(codexCount("10.5", [4]int{3000, 2500, 70, 20}, [4]int{0, 0, 0, 0}), `,"last_token_usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}`, "", 1) +
		codexLine("11", "event_msg", "'type':'task_complete'") +
		codexLine("20", "event_msg", codexAsks) + codexLine("21", "response_item", codexSays) +
		codexCount("21", [4]int{100, 0, 5, 0}, [4]int{100, 0, 5, 0})
	info := reads(t, log, Options{},
		"1.25s session=s model=m turn=0 after=[] in=900 out=40 cached=640 reasoning=20 chat e2e=3.25s",
		"6.25s session=s model=m turn=1 after=[0] in=1000 out=20 cached=900 reasoning=0 chat e2e=1.75s tool=1.75s",
		"9s session=s model=m turn=2 after=[1] in=1100 out=10 cached=960 reasoning=0 chat e2e=1s tool=1s",
		"20s session=s model=m turn=3 after=[2] in=100 out=5 cached=0 reasoning=0 chat e2e=1s think=10s")
	if info.Format != "codex" || !info.HasTimes || !info.HasSessions || info.TimeUnit != "date" {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteAgentArrival, noteCodexLengths)
}

// Newer files have a record for each response, and the count beside it; a compaction
// has records of calls before it, and begins a new prompt.
func TestCodexRecordsAndCompactions(t *testing.T) {
	usage := "'usage':{'input_tokens':900,'cached_input_tokens':640,'output_tokens':40,'reasoning_output_tokens':20}"
	record := func(at, response string) string {
		return codexLine(at, "token_usage_record", "'thread_id':'s','response_id':'"+response+"',"+usage)
	}
	four := [4]int{900, 640, 40, 20}
	log := codexMetaLine("1", "s", "") + codexTurn("1", "t1") +
		codexLine("2", "response_item", codexSays) + record("2", "r1") + codexCount("2", four, four) +
		codexLine("3", "event_msg", codexAsks) + codexLine("4", "response_item", codexSays) + record("4", "r2") + codexCount("4", [4]int{1800, 1280, 80, 40}, four) +
		codexLine("5", "compacted", "'message':'zebra','replacement_history':[{'type':'token_usage_record',"+usage+"}],"+usage) +
		codexCount("5", [4]int{1801, 1280, 80, 40}, [4]int{}) + codexTurn("6", "t1") + codexLine("7", "response_item", codexSays) + record("7", "r3")
	info := reads(t, log, Options{},
		"1s session=s model=m turn=0 after=[] in=900 out=40 cached=640 reasoning=20 chat e2e=1s",
		"3s session=s model=m turn=1 after=[0] in=900 out=40 cached=640 reasoning=20 chat e2e=1s think=1s",
		"6s session=s model=m turn=2 after=[1] in=900 out=40 cached=640 reasoning=20 chat e2e=1s")
	notesAre(t, info, noteAgentArrival, noteCodexLengths, noteCodexCompact+": 1")
	// The same file again, as an archive has it.
	files := textFiles(log, log)
	files[0].Name, files[1].Name = "sessions/rollout-1.jsonl", "archived_sessions/rollout-1.jsonl"
	all, info, err := readTogether(files, Options{})
	if err != nil || len(all) != 3 {
		t.Errorf("%d: %v", len(all), err)
	}
	wantNote(t, info, noteCodexTwice+": 3")
}

// Forks and sub-agents copy what was before them, under new times. Sub-agents belong
// to the tree of their caller.
func TestCodexForksAndAgents(t *testing.T) {
	const root, old, born, own = "00000000-0000-7000-8000-000000000000", "00000000-0001-7000-8000-000000000000", "00000000-0002-7000-8000-000000000000", "00000000-0003-7000-8000-000000000000"
	count := func(at string, n int) string {
		return codexCount(at, [4]int{n * 100, 0, n, 0}, [4]int{100, 0, 1, 0})
	}
	parent := codexMetaLine("1", root, "") + codexTurn("1", old) + codexCalls("2", "spawn_agent", "c1") + count("2", 1) + codexResult("3", "c1") +
		codexCalls("4", "wait_agent", "c2") + count("4", 2) + codexResult("30", "c2") + codexLine("31", "response_item", codexSays) + count("31", 3)
	agent := func(at, meta, begin string) string {
		return codexMetaLine(at, born, meta) + codexMetaLine(at, root, "") + codexTurn(at, old) + codexLine(at, "response_item", codexSays) + count(at, 1) +
			begin + codexLine("12", "response_item", codexSays) + count("12", 2)
	}
	spawned := "'source':{'subagent':{'thread_spawn':{'parent_thread_id':'" + root + "'}}},'session_id':'" + root + "'"
	const tree = "1s[]  3s[0] tool=1s 11s[0] tool=9s 30s[1 2] tool=18s"
	for name, c := range map[string]struct{ child, want string }{
		"by the turn":    {agent("2.5", spawned+",'forked_from_id':'"+root+"'", codexTurn("11", own)), tree},
		"by the message": {agent("2.5", spawned, codexLine("11", "inter_agent_communication_metadata", "'trigger_turn':true")), tree},
		"by the start":   {agent("2.5", spawned, codexLine("11", "event_msg", "'type':'task_started','turn_id':'x','started_at':11")+codexLine("11", "event_msg", codexAsks)), tree},
		"no ordinals":    {agent("2.5", spawned+",'subagent_history_start_ordinal':5", codexTurn("11", own)), tree},
		"by the ordinal": {codexMetaLine("2.5,0", born, spawned+",'subagent_history_start_ordinal':3") + codexLine("2.5,1", "response_item", codexSays) +
			strings.Replace(count("2.5", 1), `"type"`, `"ordinal":2,"type"`, 1) + codexTurn("11,3", old) + codexLine("12,4", "response_item", codexSays) + count("12", 2), tree},
		"forked by hand": {agent("5", "'forked_from_id':'"+root+"'", codexTurn("11", own)), "1s[]  3s[0] tool=1s 11s[1]  30s[1] tool=26s"},
	} {
		files := textFiles(c.child, parent)
		files[0].Name, files[1].Name = "2026/rollout-b.jsonl", "2026/rollout-a.jsonl"
		all, info, err := readTogether(files, Options{})
		var got []string
		for i := range all {
			tool := ""
			if all[i].Tool != nil {
				tool = fmt.Sprint("tool=", *all[i].Tool)
			}
			got = append(got, fmt.Sprintf("%v%v %s", all[i].Time.Sub(Epoch), all[i].Parents, tool))
			if session := all[i].Session.Reveal(); session != root {
				t.Errorf("%s: it is in session %s", name, session)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, strings.Join(got, " "), c.want)
		}
		wantNote(t, info, noteCodexCopied+": 1")
	}
}

func TestCodexFaults(t *testing.T) {
	for in, want := range map[string]string{
		codexCount("1", [4]int{1, 2, 3, 0}, [4]int{1, 2, 3, 0}):  "log:1:70: payload: want whole numbers from 0 to 2147483647, with the cached tokens part of the input",
		codexMetaLine("1", "", ""):                               "log:1:73: payload: want the id of the session, and other fields of their kinds",
		codexLine("1", "turn_context", "'model':{'zebra':1}"):    "log:1:73: payload: a value is not of its kind",
		`{"type":"event_msg","payload":{}}` + "\n":               "log:1:1: timestamp: want a date such as 2026-01-02T15:04:05.000Z",
		`{"timestamp":7,"type":"event_msg","payload":{}}` + "\n": "log:1:14: a value of the record is not of its kind",
		`{"timestamp":"zebra","type":"event_msg","payl`:          "log:1:45: unexpected end of file: the last record is not whole",
	} {
		wantBad(t, in, Options{Format: "codex"}, want)
	}
}
