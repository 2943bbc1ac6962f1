package datasets

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// capture is a record of SageMaker's; a payload that starts with = is Base64.
func capture(in, out string) string {
	side := func(payload string) string {
		encoding := "JSON"
		if text, ok := strings.CutPrefix(payload, "="); ok {
			payload, encoding = base64.StdEncoding.EncodeToString([]byte(text)), "BASE64"
		}
		data, _ := json.Marshal(payload)
		return `{"observedContentType":"application/json","mode":"INPUT","data":` + string(data) + `,"encoding":"` + encoding + `"}`
	}
	record := `{"captureData":{"endpointInput":` + side(in)
	if out != "" {
		record += `,"endpointOutput":` + side(out)
	}
	return record + `},"eventMetadata":{"eventId":"e","customAttributes":["zqxSECRETzqx"],"inferenceTime":"2026-01-02T03:04:05Z"},"eventVersion":"0"}`
}

func TestSageMaker(t *testing.T) {
	const when = "490923h4m5s "
	const chat = `{"messages":[{"role":"user","content":"q"}],"max_tokens":5,"temperature":0.5,"stream":true,"model":"m"}`
	for _, c := range [][3]string{
		{chat, "", `user:"q" chat max=5 temperature=0.5 stream=true model=m`},
		{"=" + chat, `={"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`,
			`user:"q" reply="a" in=9 out=2 cached=4 chat stop max=5 temperature=0.5 stream=true model=m`},
		{`{"inputs":"q","parameters":{"max_new_tokens":5,"temperature":0.5}}`, `[{"generated_text":"a","details":{"generated_tokens":2}}]`, `user:"q" reply="a" out=2 completion max=5 temperature=0.5`},
		{`{"inputs":"q"}`, `{"generated_text":"a","details":{"generated_tokens":2}}`, `user:"q" reply="a" out=2 completion`},
		{`{"prompt":"q"}`, `{"choices":[{"text":"a"}]}`, `user:"q" reply="a" completion`},
		{`{"prompt":"q"}`, `{"error":"x"}`, `user:"q" completion failed`},
	} {
		info := wantEntries(t, capture(c[0], c[1]), Options{}, when+c[2])
		if len(info.Notes) > 1 {
			t.Errorf("%q", info.Notes)
		}
	}
	wantNote(t, wantEntries(t, capture(`{"prompt":"q"}`, "=data: {}"), Options{}, when+`user:"q" completion`), noteOtherResponses+": 1")
	unnamed := strings.Replace(capture("="+chat, ""), `,"encoding":"BASE64"`, "", 1)
	wantEntries(t, unnamed, Options{}, when+`user:"q" chat max=5 temperature=0.5 stream=true model=m`)
	all, _, err := readTogether(textFiles(capture(`{"prompt":"q"}`, ""), capture(`{"prompt":"r"}`, "")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all, []string{when + `user:"q" completion`, when + `user:"r" completion`})
}

func TestSageMakerFaults(t *testing.T) {
	wantBad(t, capture(`{"zqx`, ""), Options{}, "log:1:97: the request is not JSON, plain or as Base64")
	wantBad(t, strings.Replace(capture("=zqx", ""), `"data":"`, `"data":"!`, 1), Options{}, "log:1:97: the request is not JSON, plain or as Base64")
	wantBad(t, capture(`{"messages":[{"role":"zqx"}]}`, ""), Options{}, "log:1:97: messages: a role is not one of")
	wantBad(t, `{"captureData":{},"eventMetadata":{}}`, Options{}, "log:1:1: it has neither a prompt nor the length of one")
}

func TestGatewayCSV(t *testing.T) {
	const when = "490923h4m5s "
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	const request = `{"model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":5,"temperature":0.5,"stream":false,"cache_salt":"s","user":"u"}`
	for in, want := range map[string]string{
		"timestamp,request_json\n2026-01-02T03:04:05Z," + quote(request) + "\n":                                                                                                                                       `model=m salt=s user=u user:"q" chat max=5 temperature=0.5 stream=false`,
		"api_key,request_json,created_at,user_id,session_id,status_code,latency_ms,ttft_ms\nzqx," + quote(request) + ",1767323045,v,c,503,1500,250\n":                                                                 `model=m salt=s user=v session=c user:"q" chat failed max=5 temperature=0.5 stream=false e2e=1.5s ttft=250ms`,
		"time,request_json,response_json,prompt_tokens\n2026-01-02 03:04:05," + quote(`{"prompt":"q"}`) + "," + quote(`{"choices":[{"text":"a","finish_reason":"length"}],"usage":{"completion_tokens":2}}`) + ",7\n": `user:"q" reply="a" in=7 out=2 completion length`,
		"time,request_json\n2026-01-02 03:04:05," + quote(`"{\"prompt\":\"q\"}"`) + "\n":                                                                                                                              `user:"q" completion`, // packed twice
	} {
		wantEntries(t, in, Options{}, when+want)
	}
	info := wantEntries(t, "time,request_json,response_json\n2026-01-02 03:04:05,"+quote(`{"prompt":"q"}`)+",data: x\n", Options{}, when+`user:"q" completion`)
	wantNote(t, info, noteOtherResponses+": 1")
	info = wantEntries(t, "request_json,session\n"+quote(`{"prompt":"q"}`)+",c\n"+quote(`{"prompt":"r"}`)+",c\n", Options{},
		`session=c turn=0 after=[] user:"q" completion`, `session=c turn=1 after=[0] user:"r" completion`)
	if info.HasTimes {
		t.Error("times were made of nothing")
	}
	wantEntries(t, "ts,request_json\n5,"+quote(`{"prompt":"q"}`)+"\n", Options{TimeUnit: "s"}, `5s user:"q" completion`)
	wantBad(t, "time,request_json\n2026-01-02 03:04:05,zqx\n", Options{}, "log:2:21: the request is not JSON")
	wantBad(t, "time,request_json\n2026-01-02 03:04:05,"+quote(`{"messages":[{"role":"zqx"}]}`)+"\n", Options{}, "log:2:21: messages: a role is not")
	wantBad(t, "time,request_json\n2026-01-02 03:04:05,\n", Options{}, "log:2:1: it has neither a prompt")
}
