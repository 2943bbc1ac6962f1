package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// line makes a record; ' stands for ". at is in seconds.
func claudeLine(kind, uuid, parent string, at float64, more string) string {
	if parent = "'" + parent + "'"; parent == "''" {
		parent = "null"
	}
	more = strings.TrimSuffix(","+more, ",")
	if !strings.Contains(more, "'sessionId'") {
		more += ",'sessionId':'s'"
	}
	if !strings.Contains(more, "'isSidechain'") {
		more += ",'isSidechain':false"
	}
	line := fmt.Sprintf("{'parentUuid':%s,'type':'%s','uuid':'%s','timestamp':'1970-01-01T00:00:%06.3fZ'%s}\n", parent, kind, uuid, at, more)
	return strings.ReplaceAll(line, "'", `"`)
}

func claudeAsks(uuid, parent string, at float64, more ...string) string {
	return claudeLine("user", uuid, parent, at, strings.Join(append(more, "'message':{'role':'user','content':'zebra'}"), ","))
}

func claudeResult(uuid, parent string, at float64, tool string, more ...string) string {
	return claudeLine("user", uuid, parent, at, strings.Join(append(more, "'message':{'role':'user','content':[{'type':'tool_result','tool_use_id':'"+tool+"','content':'zebra'}]}"), ","))
}

// claudeSays makes a part of a call: in is of all three kinds.
func claudeSays(uuid, parent string, at float64, id string, in [3]int, out int, content string, more ...string) string {
	return claudeLine("assistant", uuid, parent, at, strings.Join(append(more, fmt.Sprintf("'requestId':'r%s','message':{'id':'%s','role':'assistant','model':'m','stop_reason':'tool_use','content':[%s],"+
		"'usage':{'input_tokens':%d,'cache_creation_input_tokens':%d,'cache_read_input_tokens':%d,'output_tokens':%d}}", id, id, content, in[0], in[1], in[2], out)), ","))
}

func claudeTools(ids ...string) string {
	var blocks []string
	for _, id := range ids {
		name, id, spawns := strings.Cut(id, ":")
		if !spawns {
			name, id = "Bash", name
		}
		blocks = append(blocks, "{'type':'tool_use','id':'"+id+"','name':'"+name+"','input':{'prompt':'do "+id+"'}}")
	}
	return strings.Join(blocks, ",")
}

// A call has a record for each part of its answer, with the results of its tools
// between them, and the same usage in all but the placeholders of the first.
func TestClaudeParts(t *testing.T) {
	log := "" + `{"type":"mode","mode":"normal","sessionId":"s"}` + "\n" +
		claudeAsks("u1", "", 1) +
		claudeLine("attachment", "x1", "u1", 1.001, "'attachment':{'type':'zebra'}") +
		claudeSays("a1", "x1", 4, "m1", [3]int{3, 900, 27000}, 6, "{'type':'text','text':'zebra'}") +
		claudeSays("a2", "a1", 5, "m1", [3]int{3, 900, 27000}, 6, claudeTools("t1")) +
		claudeResult("u2", "a2", 5.25, "t1") +
		claudeSays("a3", "u2", 6, "m1", [3]int{3, 900, 27000}, 210, claudeTools("t2", "t3")) +
		claudeResult("u3", "a3", 9, "t3") +
		claudeResult("u4", "a3", 8, "t2") +
		claudeSays("a4", "u4", 11, "m2", [3]int{1, 100, 27903}, 40, "") +
		claudeLine("system", "y1", "a4", 11.5, "'subtype':'turn_duration'") +
		claudeAsks("u5", "y1", 20) +
		claudeSays("a5", "u5", 22, "m3", [3]int{7, 0, 0}, 1, "")
	info := reads(t, log, Options{},
		"1s session=s model=m turn=0 after=[] in=27903 out=210 cached=27000 chat tool_calls e2e=5s",
		"9s session=s model=m turn=1 after=[0] in=28004 out=40 cached=27903 chat tool_calls e2e=2s tool=3s",
		"20s session=s model=m turn=2 after=[1] in=7 out=1 cached=0 chat tool_calls e2e=2s think=9s")
	if info.Format != "claude-code" || !info.HasTimes || !info.HasSessions || info.HasText || info.TimeUnit != "date" {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteClaudeArrival, noteClaudeLengths)
}

const aside = "'isSidechain':true"

// Sub-agents in the file of the session, told by their prompts, and in files of their
// own, told by their ids. Those in the background are not waited for.
func TestClaudeAgents(t *testing.T) {
	main := claudeAsks("u1", "", 1) +
		claudeSays("a1", "u1", 2, "m1", [3]int{10, 0, 0}, 5, claudeTools("Task:t1", "Agent:t2", "Agent:t3")) +
		claudeResult("u2", "a1", 20, "t1") +
		claudeResult("u3", "u2", 10, "t2", "'toolUseResult':{'agentId':'x','status':'completed'}") +
		claudeResult("u4", "u3", 3, "t3", "'toolUseResult':{'agentId':'y','status':'async_launched'}") +
		claudeSays("a2", "u4", 22, "m2", [3]int{20, 0, 0}, 5, "")
	inFile := strings.Replace(claudeAsks("b1", "", 2.5, aside), "zebra", "do t1", 1) +
		claudeSays("b2", "b1", 4, "n1", [3]int{30, 0, 0}, 5, claudeTools("t9"), aside) +
		claudeResult("b3", "b2", 5, "t9", aside) +
		claudeSays("b4", "b3", 19, "n2", [3]int{40, 0, 0}, 5, "", aside)
	agentX := claudeAsks("c1", "", 2.75, aside, "'agentId':'x'") + claudeSays("c2", "c1", 9, "n3", [3]int{50, 0, 0}, 5, "", aside, "'agentId':'x'")
	agentY := claudeAsks("d1", "", 2.875, aside, "'agentId':'y'") + claudeSays("d2", "d1", 30, "n4", [3]int{60, 0, 0}, 5, "", aside, "'agentId':'y'")
	lost := claudeAsks("e1", "", 40, aside, "'agentId':'z'") + claudeSays("e2", "e1", 41, "n5", [3]int{70, 0, 0}, 5, "", aside, "'agentId':'z'")
	all, info, err := readTogether(textFiles(agentY, main+inFile, agentX, lost), Options{Format: "claude-code"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range all {
		got = append(got, spell(&all[i]))
	}
	want := []string{
		"1s session=s model=m turn=0 after=[] in=10 out=5 cached=0 chat tool_calls e2e=1s",
		"2.5s session=s model=m turn=1 after=[0] in=30 out=5 cached=0 chat tool_calls e2e=1.5s tool=500ms",
		"2.75s session=s model=m turn=2 after=[0] in=50 out=5 cached=0 chat tool_calls e2e=6.25s tool=750ms",
		"2.875s session=s model=m turn=3 after=[0] in=60 out=5 cached=0 chat tool_calls e2e=27.125s tool=875ms",
		"5s session=s model=m turn=4 after=[1] in=40 out=5 cached=0 chat tool_calls e2e=14s tool=1s",
		"20s session=s model=m turn=5 after=[0 2 4] in=20 out=5 cached=0 chat tool_calls e2e=2s tool=1s",
		"40s session=s model=m turn=6 after=[] in=70 out=5 cached=0 chat tool_calls e2e=1s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	notesAre(t, info, noteClaudeArrival, noteClaudeLengths, noteClaudeAlone+": 1")
}

// Agents of a workflow are in the folder of its run, which the result of the tool
// names.
func TestClaudeWorkflow(t *testing.T) {
	main := claudeSays("a1", "", 2, "m1", [3]int{10, 0, 0}, 5, claudeTools("Workflow:t1")) +
		claudeResult("u2", "a1", 3, "t1", "'toolUseResult':{'status':'async_launched','runId':'wf_1'}") +
		claudeSays("a2", "u2", 22, "m2", [3]int{20, 0, 0}, 5, "")
	agent := claudeAsks("c1", "", 2.5, aside, "'agentId':'x'") + claudeSays("c2", "c1", 9, "n3", [3]int{50, 0, 0}, 5, "", aside, "'agentId':'x'")
	files := textFiles(main, agent, `{"type":"started","key":"v2:1","agentId":"x"}`+"\n", "# notes")
	for i, name := range []string{"p/s.jsonl", "p/s/subagents/workflows/wf_1/agent-x.jsonl", "p/s/subagents/workflows/wf_1/journal.jsonl", "p/memory.md"} {
		files[i].Name = name
	}
	all, info, err := readTogether(files, Options{})
	if err != nil || len(all) != 3 || fmt.Sprint(all[1].Parents, all[2].Parents) != "[0] [0]" || info.Format != "claude-code" {
		t.Errorf("%d of %+v: %v", len(all), info, err)
	}
	if len(info.LeftOut) != 1 {
		t.Errorf("left out: %q", info.LeftOut)
	}
	notesAre(t, info, noteClaudeArrival, noteClaudeLengths)
}

// A session that was resumed begins with a copy of the one before, under new names.
func TestClaudeResumed(t *testing.T) {
	old := claudeAsks("u1", "", 1) + claudeSays("a1", "u1", 2, "m1", [3]int{10, 0, 0}, 5, claudeTools("t1"))
	resumed := strings.NewReplacer(`"s"`, `"s2"`, `"u1"`, `"v1"`, `"a1"`, `"b1"`).Replace(old) +
		claudeAsks("v2", "b1", 50, "'sessionId':'s2'") + claudeSays("b2", "v2", 55, "m2", [3]int{20, 0, 0}, 5, "", "'sessionId':'s2'")
	same := old + claudeAsks("u2", "a1", 10) + claudeSays("a2", "u2", 12, "m3", [3]int{30, 0, 0}, 5, "")
	files := textFiles(old, resumed, same)
	for i := range files {
		files[i].Name += ".jsonl"
	}
	all, info, err := readTogether(files, Options{})
	if err != nil || len(all) != 3 {
		t.Fatal(len(all), err)
	}
	if all[2].Session.Reveal() != "s" || fmt.Sprint(all[1].Parents, all[2].Parents) != "[0] [0]" || all[2].Think.Seconds() != 48 {
		t.Errorf("%s after %v", all[2].Session.Reveal(), all[2].Parents)
	}
	notesAre(t, info, noteClaudeArrival, noteClaudeLengths, noteClaudeCopies+": 1")
}

// What is said aside copies messages of the main conversation; a compaction begins a
// new prompt; what the client made up is no call.
func TestClaudeAsidesAndCompactions(t *testing.T) {
	log := claudeAsks("u1", "", 1) +
		strings.Replace(claudeSays("x1", "u1", 3, "m1", [3]int{10, 0, 0}, 5, "", aside), `"rm1"`, `"other"`, 1) +
		claudeSays("a1", "u1", 2, "m1", [3]int{10, 0, 0}, 5, "") +
		strings.Replace(claudeSays("a2", "a1", 3, "m2", [3]int{10, 0, 0}, 5, ""), `"model":"m"`, `"model":"<synthetic>"`, 1) +
		claudeSays("a3", "a2", 4, "m3", [3]int{10, 0, 0}, 5, "", "'isApiErrorMessage':true") +
		strings.Replace(claudeLine("system", "c1", "", 5, "'subtype':'compact_boundary','logicalParentUuid':'a3'"), "null", `""`, 1) +
		claudeAsks("u2", "c1", 6, "'isCompactSummary':true") +
		claudeSays("a4", "u2", 8, "m4", [3]int{7, 0, 0}, 5, "") +
		strings.Replace(claudeSays("a5", "a4", 9, "m5", [3]int{7, 0, 0}, 2, "{'type':'text','text':'"+strings.Repeat("z", 300)+"'}"), `"tool_use"`, "null", 1)
	info := reads(t, log, Options{},
		"1s session=s model=m turn=0 after=[] in=10 out=5 cached=0 chat tool_calls e2e=1s",
		"6s session=s model=m turn=1 after=[0] in=7 out=5 cached=0 chat tool_calls e2e=2s",
		"9s session=s model=m turn=2 after=[1] in=7 out=100 cached=0 chat")
	notesAre(t, info, noteClaudeArrival, noteClaudeLengths, noteClaudeCopies+": 1", noteClaudeLocal+": 2", noteClaudeCompact+": 1", noteClaudeOutput+": 1")
}

func TestClaudeFaults(t *testing.T) {
	usage := func(old, new string) string {
		return strings.Replace(claudeSays("a1", "", 2, "m1", [3]int{10, 0, 0}, 5, ""), old, new, 1)
	}
	for in, want := range map[string]string{
		usage(`"output_tokens":5`, `"output_tokens":-5`):                       "log:1:206: message.usage: want whole numbers from 0 to 2147483647",
		usage(`"input_tokens":10`, `"input_tokens":2147483647,"x":1`) + "{}":   "",
		usage(`"cache_read_input_tokens":0`, `"cache_read_input_tokens":1e10`): "log:1:",
		usage("1970-01-01T00:00:02.000Z", "yesterday"):                         "log:1:63: timestamp: want a date such as 2026-01-02T15:04:05.000Z",
		usage(`"uuid":"a1"`, `"uuid":{"zebra":1}`):                             "log:1:46: a value of the record is not of its kind",
		usage(`"uuid":"a1"`, `"uuid":zebra`):                                   "log:1:46: it is not valid JSON",
		usage("", "")[:100]:                                                    "log:1:100: unexpected end of file: the last record is not whole",
	} {
		if want == "" {
			mustRead(t, in, Options{Format: "claude-code"})
			continue
		}
		wantBad(t, in+strings.Repeat("\n", min(1, strings.Count(in, "\n"))), Options{Format: "claude-code"}, want)
	}
}
