package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// requestEnd is a row of a request of a session that ran from one millisecond to another.
func requestEnd(id, session, above string, from, to int64, more string) string {
	context := fmt.Sprintf(`"agent_context":{"session_id":%q,"parent_session_id":%q},`, session, above)
	switch {
	case session == "":
		context = ""
	case above == "":
		context = fmt.Sprintf(`"agent_context":{"session_id":%q},`, session)
	}
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"event_source":"dynamo",%s"request":{"request_id":%q,"request_received_ms":%d,"output_tokens":4%s}}`,
		1777312800000+to, context, id, 1777312800000+from, more)
}

func toolEnd(session string, from, to int64) string {
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":%d,"agent_context":{"session_id":%q},"tool":{"tool_class":"web","started_at_unix_ms":%d,"ended_at_unix_ms":%d}}`,
		1777312800000+to, session, 1777312800000+from, 1777312800000+to)
}

const (
	replayed = `,"replay":{"trace_block_size":64,"input_length":128,"input_sequence_hashes":[14879255164371896291,18446744073709551615]}`
	dynamoAt = "493698h0m"
)

// Hashes keep all of their 64 bits, lengths are those of the replay, and a sink's
// envelope and marker lines are passed over.
func TestDynamoRequests(t *testing.T) {
	const want = dynamoAt + "0s in=128 out=4 blocks=[14879255164371896291 18446744073709551615] chat e2e=1s"
	row := requestEnd("q1", "", "", 0, 1000, `,"input_tokens":130`+replayed)
	info := reads(t, row+"\n"+requestEnd("q1", "", "", 0, 1000, replayed)+"\n", Options{}, want)
	notesAre(t, info, "rows of requests that stood before were left out: 1")
	if info.BlockSize != 64 || !info.BlocksHashed || info.HasSessions {
		t.Errorf("%+v", info)
	}
	reads(t, `{"timestamp":1,"event":`+row+"}\n"+`{"verification":"trace-uploader"}`+"\n", Options{}, want)
	reads(t, requestEnd("q", "", "", 0, 1000, `,"input_tokens":70,"cached_tokens":64,"model":"m","ttft_ms":90.5,"total_time_ms":900.25,"finish_reason_metadata":{"finish_reason":"stop"}`), Options{},
		dynamoAt+"0s model=m in=70 out=4 cached=64 chat stop ttft=90.5ms e2e=900.25ms")
	// Without the time of arrival it is that of the end less the length.
	reads(t, strings.Replace(requestEnd("q", "", "", 0, 1000, `,"input_tokens":70,"total_time_ms":400`), `"request_received_ms":1777312800000,`, "", 1), Options{},
		dynamoAt+"0.6s in=70 out=4 chat e2e=400ms")
}

// What a request waits for, and how the time before it was spent.
func TestDynamoRequestsTree(t *testing.T) {
	length := `,"input_tokens":70`
	tools := length + `,"finish_reason_metadata":{"finish_reason":"tool_calls"}`
	in := strings.Join([]string{
		requestEnd("q0", "a", "", 0, 1000, length),
		requestEnd("q1", "a", "", 3000, 4000, tools), // 2 s after a person read the answer
		toolEnd("a", 4100, 4600), toolEnd("a", 4500, 4900), toolEnd("b", 1, 2),
		requestEnd("q2", "a", "", 5000, 6000, tools), // of 1 s tools ran 0.8 s
		requestEnd("q3", "c", "a", 6500, 7000, length),
		requestEnd("q4", "d", "a", 6600, 9000, tools),
		requestEnd("q5", "d", "a", 9100, 9500, length),
		requestEnd("q6", "a", "", 9600, 9900, length), // joins both
		requestEnd("q7", "a", "", 9700, 9950, length), // beside it
		requestEnd("q8", "", "", 9700, 9990, length),
	}, "\n")
	info := reads(t, in, Options{},
		dynamoAt+"0s session=a turn=0 after=[] in=70 out=4 chat e2e=1s",
		dynamoAt+"3s session=a turn=1 after=[0] in=70 out=4 chat tool_calls e2e=1s think=2s",
		dynamoAt+"5s session=a turn=2 after=[1] in=70 out=4 chat tool_calls e2e=1s think=200ms tool=800ms",
		dynamoAt+"6.5s session=c turn=0 after=[2] in=70 out=4 chat e2e=500ms tool=500ms",
		dynamoAt+"6.6s session=d turn=0 after=[2] in=70 out=4 chat tool_calls e2e=2.4s tool=600ms",
		dynamoAt+"9.1s session=d turn=1 after=[4] in=70 out=4 chat e2e=400ms tool=100ms",
		dynamoAt+"9.6s session=a turn=3 after=[2 3 5] in=70 out=4 chat e2e=300ms tool=100ms",
		dynamoAt+"9.7s session=a turn=4 after=[2] in=70 out=4 chat e2e=250ms tool=3.7s",
		dynamoAt+"9.7s in=70 out=4 chat e2e=290ms")
	notesAre(t, info, "requests without block ids: 9",
		"some requests have a session and some have none: the latter are taken as independent")
	// In several files as in one.
	lines := strings.Split(in, "\n")
	all, _, err := readTogether(textFiles(strings.Join(lines[:4], "\n"), strings.Join(lines[4:], "\n")), Options{})
	if err != nil || len(all) != 9 || spell(&all[2]) != dynamoAt+"5s session=a turn=2 after=[1] in=70 out=4 chat tool_calls e2e=1s think=200ms tool=800ms" {
		t.Errorf("%v, %d entries, %s", err, len(all), spell(&all[2]))
	}
}

func TestDynamoRequestsFaults(t *testing.T) {
	good := requestEnd("q1", "", "", 0, 1000, replayed)
	for in, want := range map[string]string{
		strings.Replace(good, "trace.v1", "trace.v2", 1):                                              "log:1:11: schema: want dynamo.request.trace.v1",
		strings.Replace(good, "18446744073709551615", "18446744073709551616", 1):                      "log:1:281: blocks: want an array of whole numbers",
		strings.Replace(good, `"trace_block_size":64`, `"trace_block_size":0`, 1):                     "log:1:235: trace_block_size: want",
		strings.Replace(good, "[14879255164371896291,", "[", 1):                                       "log:1:1: its block ids are not one for each",
		good + "\n" + strings.Replace(requestEnd("q2", "", "", 0, 1000, replayed), ":64,", ":65,", 1): "log:2:235: its blocks are of another size",
		requestEnd("q1", "", "", 0, 1000, ""):                                                         "log:1:1: it has neither a prompt nor the length of one",
	} {
		wantBad(t, in, Options{}, want)
	}
}
