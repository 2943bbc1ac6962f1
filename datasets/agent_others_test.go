package datasets

import (
	"strings"
	"testing"
)

// A call of OpenHands ends with the first event of its response; those without one have
// no time.
func TestOpenHands(t *testing.T) {
	quotes := func(s string) string { return strings.ReplaceAll(s, "'", `"`) }
	event := func(at, source, action, response string) string {
		return "{'id':1,'timestamp':'1970-01-01T00:00:" + at + "','source':'" + source + "','action':'" + action + "','tool_call_metadata':{'model_response':{'id':'" + response + "','choices':['zebra']}}}"
	}
	said := "{'id':0,'timestamp':'1970-01-01T00:00:00','source':'user','action':'message','tool_call_metadata':null,'message':'zebra'}"
	usage := func(response string) string {
		return "{'model':'m','prompt_tokens':50,'completion_tokens':5,'cache_read_tokens':30,'cache_write_tokens':9,'response_id':'" + response + "'}"
	}
	run := func(usages ...string) string {
		return quotes("{'instance_id':'zebra','instruction':'zebra','history':[" + strings.Join([]string{said, event("05", "agent", "run", "a"), event("06", "environment", "", "a"), event("08.5", "agent", "run", "b"),
			said, event("20", "agent", "finish", "c")}, ",") + "],'metrics':{'accumulated_cost':1,'token_usages':[" + strings.Join(usages, ",") +
			"],'response_latencies':[{'latency':2.5,'response_id':'a'},{'latency':1,'response_id':'b'},{'latency':4,'response_id':'c'},{'latency':1,'response_id':'d'}]}}\n")
	}
	info := reads(t, run(usage("a"), usage("b"), usage("d"), usage("c"))+run(), Options{},
		"2.5s session=log:1 model=m turn=0 after=[] in=50 out=5 cached=30 chat e2e=2.5s",
		"7.5s session=log:1 model=m turn=1 after=[0] in=50 out=5 cached=30 chat e2e=1s tool=2.5s",
		"16s session=log:1 model=m turn=2 after=[1] in=50 out=5 cached=30 chat e2e=4s think=7.5s")
	notesAre(t, info, noteOpenHandsTimes+": 1", noteOpenHandsNone+": 1")
	wantBad(t, strings.Replace(run(usage("a")), `"prompt_tokens":50`, `"prompt_tokens":-1`, 1), Options{}, "log:1:")
	wantBad(t, strings.Replace(run(usage("a")), `00:05"`, `00:65"`, 1), Options{}, "log:1:56: history: want a date such as 2026-01-02T15:04:05.000Z")
}

// A call of Aider is begun by one event and ended by another; chats are cleared.
func TestAider(t *testing.T) {
	event := func(name, user, at, properties string) string {
		return strings.ReplaceAll("{'event':'"+name+"','properties':{"+properties+"},'user_id':'"+user+"','time':"+at+"}\n", "'", `"`)
	}
	sent := "'main_model':'m','prompt_tokens':900,'completion_tokens':40,'cost':0.1"
	log := event("launched", "u", "1700000000", "") + event("message_send_starting", "u", "1700000010", "") + event("message_send", "u", "1700000015", sent) +
		event("message_send_starting", "v", "1700000020", "") + event("message_send_starting", "v", "1700000021", "") + event("message_send", "v", "1700000025", sent) +
		event("message_send_starting", "u", "1700000030", "") + event("message_send", "u", "1700000040", sent) +
		event("command_clear", "u", "1700000050", "") + event("message_send", "u", "1700000060", sent)
	info := reads(t, log, Options{},
		"472222h13m30s user=u session=u:1700000000000000000 model=m turn=0 after=[] in=900 out=40 chat e2e=5s",
		"472222h13m41s user=v session=v model=m turn=0 after=[] in=900 out=40 chat e2e=4s",
		"472222h13m50s user=u session=u:1700000000000000000 model=m turn=1 after=[0] in=900 out=40 chat e2e=10s",
		"472222h14m20s user=u session=u:1700000050000000000 model=m turn=0 after=[] in=900 out=40 chat")
	if info.Format != "aider" || !info.HasUsers || info.TimeUnit != "s" {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteAiderUnended+": 1")
	wantBad(t, event("message_send", "u", "1700000000", "'prompt_tokens':-1"), Options{}, "log:1:38: properties: want whole numbers from 0 to 2147483647")
}

// A step of SWE-agent has all of the history before it, or a prompt of its own.
func TestSWEAgent(t *testing.T) {
	message := func(role, content, more string) string {
		return "{'role':'" + role + "','content':'" + content + "','agent':'primary'" + more + "}"
	}
	step := func(more string) string { return "{'action':'zebra','observation':'zebra'" + more + "}" }
	traj := strings.ReplaceAll("{\n 'environment': 'zebra',\n 'trajectory': ["+strings.Join([]string{step(",'execution_time':0.25"), step(""), step(",'query':[{'role':'user','content':'q'}]")}, ",")+
		"],\n 'history': ["+strings.Join([]string{message("system", "s", ""), message("assistant", "d", ",'is_demo':true"), message("user", "u", ""), message("assistant", "a", ",'thought':'zebra'"),
		message("tool", "o", ",'tool_call_ids':['c']"), message("assistant", "b", ""), message("user", "v", ""), message("assistant", "c", "")}, ",")+"],\n 'info': {}\n}\n", "'", `"`)
	want := []string{
		`session=trajectory 1 turn=0 after=[] system:"s" assistant:"d" user:"u" reply="a" chat`,
		`session=trajectory 1 turn=1 after=[0] system:"s" assistant:"d" user:"u" assistant:"a" tool:"o" reply="b" chat tool=250ms`,
		`session=trajectory 1 turn=2 after=[1] user:"q" reply="c" chat`,
	}
	info := reads(t, traj, Options{}, want...)
	if info.Format != "swe-agent" || info.HasTimes || !info.HasText || !info.HasSessions || info.Records != 1 {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteSWELengths)
	files := textFiles(traj, traj, "config: 1")
	files[0].Name, files[1].Name = "run/a/a.traj", "run/b/b.traj"
	all, info, err := readTogether(files, Options{})
	if err != nil || len(all) != 6 || all[5].Parents[0] != 4 || all[5].Session.Reveal() != "trajectory 2" {
		t.Errorf("%d entries: %v", len(all), err)
	}
	if len(info.LeftOut) != 1 {
		t.Errorf("left out: %q", info.LeftOut)
	}
	notesAre(t, info, noteSWELengths)
	wantBad(t, strings.Replace(traj, `"role":"tool"`, `"role":"zebra"`, 1), Options{}, "log:4:13: history: a role is not one of")
	wantBad(t, `{"trajectory":[{"action":"","observation":""}],"history":[{"role":"assistant","content":"x"}]}`+"\n", Options{}, "log:1:58: history: an answer stands before any message")
}
