package datasets

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// spend is a CSV of spend logs with a row for each list of columns and values.
func spend(rows ...map[string]string) string {
	columns := []string{"request_id", "call_type", "api_key", "startTime", "endTime", "completionStartTime", "prompt_tokens", "completion_tokens", "model",
		"model_id", "api_base", "user", "end_user", "cache_hit", "requester_ip_address", "session_id", "status", "metadata", "messages", "response", "proxy_server_request"}
	usual := map[string]string{"call_type": "acompletion", "startTime": "2026-01-02 03:04:05.5", "endTime": "2026-01-02 03:04:07", "prompt_tokens": "40", "completion_tokens": "3",
		"metadata": "{}", "messages": "{}", "response": "{}", "proxy_server_request": "{}", "api_key": "sk-zqxSECRETzqx", "requester_ip_address": "10.zqxSECRETzqx"}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(columns)
	for _, row := range rows {
		var record []string
		for _, c := range columns {
			v, ok := row[c]
			if !ok {
				v = usual[c]
			}
			record = append(record, v)
		}
		w.Write(record)
	}
	w.Flush()
	return b.String()
}

const spent = "490923h4m5.5s in=40 out=3 chat e2e=1.5s "

func TestLiteLLMSpendRows(t *testing.T) {
	for _, c := range []struct {
		row  map[string]string
		want string
	}{
		{nil, spent},
		{map[string]string{"model": "m", "model_id": "i", "api_base": "b", "user": "u", "end_user": "e", "session_id": "s"}, spent + "model=m replica=i user=e session=s"},
		{map[string]string{"api_base": "b", "user": "u"}, spent + "replica=b user=u"},
		{map[string]string{"completionStartTime": "2026-01-02 03:04:06"}, spent + "ttft=500ms"},
		{map[string]string{"completionStartTime": "2026-01-02 03:04:07"}, spent}, // not streamed
		{map[string]string{"status": "success"}, spent + "ok"},
		{map[string]string{"status": "failure", "completion_tokens": "0", "prompt_tokens": "0"}, "490923h4m5.5s in=0 out=0 chat e2e=1.5s failed"},
		{map[string]string{"metadata": `{"status":"failure","additional_usage_values":{"cache_read_input_tokens":16}}`}, spent + "cached=16 failed"},
		{map[string]string{"metadata": `{"usage_object":{"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":2}}}`}, spent + "cached=16 reasoning=2"},
		{map[string]string{"metadata": `"{\"status\":\"success\"}"`}, spent + "ok"}, // packed twice
		{map[string]string{"messages": `[{"role":"user","content":"q"}]`, "response": `{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`}, spent + `user:"q" reply="a" stop`},
		{map[string]string{"proxy_server_request": `{"messages":[{"role":"user","content":"q"}],"max_tokens":9,"temperature":0.5,"stream":true}`}, spent + `user:"q" max=9 temperature=0.5 stream=true`},
		{map[string]string{"call_type": "atext_completion", "proxy_server_request": `{"prompt":"q"}`}, strings.Replace(spent, "chat", "completion", 1) + `user:"q"`},
		{map[string]string{"call_type": "aembedding", "proxy_server_request": `{"input":"q"}`}, strings.Replace(spent, "chat", "embedding", 1) + `user:"q"`},
		{map[string]string{"call_type": "aresponses", "proxy_server_request": `{"input":[]}`}, strings.Replace(spent, "chat", "responses", 1)},
		{map[string]string{"cache_hit": "False"}, spent},
		{map[string]string{"cache_hit": "None", "startTime": "2026-01-02 03:04:05.5+00", "endTime": "2026-01-02 03:04:07+00"}, spent},
	} {
		wantEntries(t, spend(c.row), Options{}, c.want)
	}
}

// Calls that no engine saw, or that are not of text, are left out and counted.
func TestLiteLLMLeavesOut(t *testing.T) {
	info := wantEntries(t, spend(map[string]string{"cache_hit": "True"}, map[string]string{"cache_hit": "true"}, map[string]string{"call_type": "aimage_generation"}, nil), Options{}, spent)
	wantNote(t, info, noteGatewayCache+": 2")
	wantNote(t, info, noteOtherCalls+": 1")
	wantNote(t, info, noteNoPrefix+": 1")
}

// Text that LiteLLM cut or redacted is not used; its lengths are.
func TestLiteLLMCutText(t *testing.T) {
	for _, text := range []string{"redacted-by-litellm", "aaa... (litellm_truncated skipped 12 chars) ...bbb", "aaa... (litellm_truncated 12982 chars)", "aaa... (truncated 12 chars)"} {
		row := map[string]string{"proxy_server_request": `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"` + text + `"}]}],"max_tokens":9}`}
		info := wantEntries(t, spend(row), Options{}, spent+"max=9")
		wantNote(t, info, noteCutText+": 1")
		wantNote(t, info, noteNoPrefix+": 1")
		row = map[string]string{"messages": `[{"role":"user","content":"q"}]`, "response": `{"choices":[{"message":{"content":"` + text + `"}}]}`}
		wantNote(t, wantEntries(t, spend(row), Options{}, spent+`user:"q"`), noteCutText+": 1")
	}
	wantEntries(t, spend(map[string]string{"proxy_server_request": `{"litellm_truncated":true,"messages":{"litellm_truncated":"x"}}`}), Options{}, spent)
}

func TestLiteLLMBlocks(t *testing.T) {
	row := func(length int, metadata string) map[string]string {
		return map[string]string{"prompt_tokens": fmt.Sprint(length), "metadata": metadata, "messages": `[{"role":"user","content":"q"}]`}
	}
	read := func(rows ...map[string]string) ([]trace.Entry, Info) {
		return mustRead(t, spend(rows...), Options{MaxBad: 1})
	}

	all, info := read(
		row(40, `{"prefix_block_hashes":["0xff","00ff00ff00ff00ffdeadbeef",-1],"prefix_block_size":16}`),
		row(32, `{"spend_logs_metadata":{"prefix_block_hashes":[1,2],"block_size":16}}`),
		row(40, `{"requester_metadata":{"prefix_block_hashes":[1,2],"prefix_block_size":16}}`),
		row(40, `{"prefix_block_hashes":[1,2],"prefix_block_size":16}`))
	if info.BlockSize != 16 || !info.BlocksHashed || info.Bad != 0 || len(all) != 4 {
		t.Fatalf("%+v", info)
	}
	wantNote(t, info, noteBlocksOver+": 4")
	if got := fmt.Sprint(all[0].SourceBlocks, all[1].SourceBlocks); got != "[255 71777214294589695 18446744073709551615] [1 2]" {
		t.Error(got)
	}
	// Full blocks only: the rest has an id of its own in each record.
	a, b := all[2].SourceBlocks, all[3].SourceBlocks
	if len(a) != 3 || len(b) != 3 || a[0] != 1 || a[1] != 2 || a[2] == b[2] || a[2] < 3 {
		t.Errorf("%v, %v", a, b)
	}
	for i := range all {
		if all[i].Messages != nil || all[i].Reply != nil {
			t.Error("an entry has both text and blocks")
		}
	}

	for metadata, want := range map[string]string{
		`{"prefix_block_hashes":[1,2,3],"prefix_block_size":32}`:    "its blocks differ in size",
		`{"prefix_block_hashes":[1],"prefix_block_size":16}`:        wrongBlocks,
		`{"prefix_block_hashes":[1,2,"x"],"prefix_block_size":16}`:  "its block ids are neither",
		`{"prefix_block_hashes":[1,2,1.5],"prefix_block_size":16}`:  "its block ids are neither",
		`{"prefix_block_hashes":[1,2,null],"prefix_block_size":16}`: "its block ids are neither",
		`{"prefix_block_hashes":[1,2,""],"prefix_block_size":16}`:   "its block ids are neither",
		`{"prefix_block_hashes"`:                                    "metadata: want JSON",
	} {
		_, info := read(row(32, `{"prefix_block_hashes":[1,2],"prefix_block_size":16}`), row(40, metadata))
		if info.Bad != 1 || !strings.HasPrefix(info.FirstBad[0].Reason, want) || info.FirstBad[0].Line != 3 {
			t.Errorf("%s: %+v", metadata, info.FirstBad)
		}
	}
	all, info = read(row(40, `{"prefix_block_hashes":[1,2,3]}`))
	wantNote(t, info, noteNoBlockSize+": 1")
	if info.BlockSize != 0 || all[0].Messages == nil {
		t.Errorf("%+v", info)
	}
}

// The export has every column that is read and none that is secret.
func TestLiteLLMQuery(t *testing.T) {
	query := LiteLLMQuery()
	if !strings.HasPrefix(query, "COPY (SELECT ") || !strings.HasSuffix(query, ` TO STDOUT CSV HEADER \g spend.csv`) {
		t.Errorf("psql writes a query of several lines to a file with COPY and \\g: %s", query)
	}
	for line := range strings.Lines(query) {
		if len(line) > 79 || strings.Count(line, "'")%2 != 0 || strings.Count(line, `"`)%2 != 0 {
			t.Errorf("%q is wide, or ends within quotes", line)
		}
	}
	for _, secret := range []string{"api_key", "ip_address", "headers", "cache_key", "team"} {
		if strings.Contains(query, secret) {
			t.Errorf("the query asks for %s", secret)
		}
	}
	asked := regexp.MustCompile(`[A-Za-z_]+`).FindAllString(query, -1)
	have := map[string]bool{"kind": true, "ttft": true, "e2e": true, "asked": true, "text": true, "blocks": true, "trace_id": true}
	for _, name := range asked {
		have[name] = true
	}
	for target, paths := range litellmFields {
		for _, p := range paths {
			if p == knownMembers {
				continue
			}
			if column, _, _ := strings.Cut(p, "."); !have[column] {
				t.Errorf("%s reads %s, which the query does not ask for", target, column)
			}
		}
	}
	if !sniff.Columns("call_type", "startTime", "prompt_tokens")(sniff.New([]byte("request_id,call_type,startTime,endTime,completionStartTime,prompt_tokens\n"))) {
		t.Error("the export is not recognised")
	}
}

// Keys, addresses and headers are in no field of an entry.
func TestLiteLLMKeepsNoSecrets(t *testing.T) {
	in := spend(map[string]string{"metadata": `{"user_api_key":"zqxSECRETzqx","requester_ip_address":"zqxSECRETzqx"}`,
		"proxy_server_request": `{"headers":{"authorization":"zqxSECRETzqx"},"api_key":"zqxSECRETzqx","messages":[{"role":"user","content":"q"}]}`})
	all, _ := mustRead(t, in, Options{})
	if len(all) != 1 || strings.Contains(summary(&all[0]), marker) {
		t.Error("a secret was kept")
	}
}

func TestLiteLLMLog(t *testing.T) {
	object := func(more string) string {
		return `{"id":"r","trace_id":"t","call_type":"acompletion","status":"success","startTime":1767323045.5,"endTime":1767323047.0,"completionStartTime":1767323047.0,"prompt_tokens":40,"completion_tokens":3,"requester_ip_address":"10.0.0.1"` + more + "}"
	}
	const want = spent + "session=t ok"
	for more, extra := range map[string]string{
		``:                                       ``,
		`,"messages":"plain","response":"plain"`: `user:"plain"`,
		`,"messages":[{"role":"user","content":"redacted-by-litellm"}]`: ``,
		`,"messages":[{"role":"user","content":"q"}],"response":{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]},"stream":true,"model_parameters":{"max_tokens":7,"temperature":0.5}`: `user:"q" reply="a" stop stream=true max=7 temperature=0.5`,
		`,"metadata":{"user_api_key_user_id":"u","spend_logs_metadata":null},"model_id":"i","end_user":null`:                                                                                          "user=u replica=i",
	} {
		wantEntries(t, object(more), Options{}, want+" "+extra)
	}
	info := wantEntries(t, object(`,"cache_hit":true`)+"\n"+object(`,"cache_hit":null`), Options{}, want)
	wantNote(t, info, noteGatewayCache+": 1")

	// Files of their own, written over several lines, put end to end or not.
	spread := strings.ReplaceAll(object(``), ",", ",\n\t")
	spread = "{\n" + spread[1:]
	wantEntries(t, spread+spread+"\n"+spread, Options{}, want, want, want)
	files := textFiles(spread, object(``), "\xef\xbb\xbf"+spread+"\n")
	all, _, err := readTogether(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all, []string{want, want, want})
	_, _, err = readTogether(textFiles(object(``), spread[:60]), Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "file2:") {
		t.Errorf("%v", err)
	}
	// The rests of records in files of their own are told apart.
	blocks := object(`,"metadata":{"prefix_block_hashes":[1,2],"prefix_block_size":16}`)
	all, info, err = readTogether(textFiles(blocks, object(``), blocks), Options{})
	if err != nil || len(all) != 3 || all[0].SourceBlocks[2] == all[2].SourceBlocks[2] || !info.BlocksHashed || info.BlockSize != 16 {
		t.Errorf("%d entries, %+v, %v", len(all), info, err)
	}
}

func TestLiteLLMFaults(t *testing.T) {
	wantBad(t, spend(map[string]string{"startTime": ""}), Options{}, "log:2:1: it has no time")
	wantBad(t, spend(map[string]string{"prompt_tokens": "zqx"}), Options{}, "log:2:73: input_tokens: want a whole number")
	wantBad(t, spend(map[string]string{"response": "zqx"}), Options{}, "log:2:108: response: want JSON")
	wantBad(t, `{"call_type":"acompletion","startTime":1767323045.5,"endTime":1,"prompt_tokens":"zqx"}`, Options{}, "log:1:81: input_tokens: want a whole number")
	all, info := mustRead(t, `{"call_type":"acompletion","startTime":1767323045.5,"endTime":1767323044.5,"prompt_tokens":1}`, Options{})
	if len(all) != 1 || all[0].E2E != nil {
		t.Error("a latency is negative")
	}
	wantNote(t, info, "records that end before they start: their latencies are left out: 1")
}
