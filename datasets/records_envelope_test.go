package datasets

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
)

// membersOf reads the records of an input, each with its place.
func membersOf(in string) (out []string) {
	r := newJSONReader(bufio.NewReaderSize(strings.NewReader(in), 16), []byte(in))
	for {
		raw, err := r.next()
		if err == io.EOF {
			return out
		}
		if f, ok := err.(*fault.Fault); ok {
			return append(out, fmt.Sprintf("%d:%d: %s", f.Line, f.Col, f.Reason))
		}
		line, col := r.place(0)
		out = append(out, fmt.Sprintf("%d:%d %s", line, col, raw))
	}
}

// The records of an answer of an API are the members of its list.
func TestEnvelopes(t *testing.T) {
	for in, want := range map[string]string{
		`{"data":[{"a":1},{"a":"]}"}],"meta":{"page":1}}`:                `1:10 {"a":1}|1:18 {"a":"]}"}`,
		"{\n \"object\" : \"list\",\n \"data\" :\n [ {\"a\":1} ,\n{} ]}": "4:4 {\"a\":1}|5:1 {}",
		// Pages one after the other, the last of them empty.
		`{"data":[{"a":1}],"cursor":"x"}` + "\n" + `{"cursor":null,"data":[{"a":2}]}{"data":[]}`: `1:10 {"a":1}|2:24 {"a":2}`,
		`{"result":[{"a":1}],"success":true,"result_info":{"page":1}}`:                           `1:12 {"a":1}`,
		// These are records: a list beside other fields, one of no objects, one of another name.
		`{"id":"r","events":[{"name":"x"}]}`: `1:1 {"id":"r","events":[{"name":"x"}]}`,
		`{"events":[{"name":"x"}],"id":"r"}`: `1:1 {"events":[{"name":"x"}],"id":"r"}`,
		`{"data":[1,2]}`:                     `1:1 {"data":[1,2]}`,
		`{"requests":[{"a":1}]}`:             `1:1 {"requests":[{"a":1}]}`,
		// What is wrong is located.
		`{"data":[{"a":1},`:              `1:10 {"a":1}|1:18: unexpected end of file: the JSON array is not closed`,
		`{"data":[{"a":1}]`:              `1:10 {"a":1}|1:18: unexpected end of file: the JSON array is not closed`,
		`{"data":[{"a":1}]} {"meta":{}}`: `1:10 {"a":1}|1:30: ` + wantEnvelope,
		`{"data":[{"a":1}]} [{"a":2}]`:   `1:10 {"a":1}|1:20: ` + wantEnvelope,
		`{"data":[{"a":1}],"meta" 5}`:    `1:10 {"a":1}|1:26: ` + wantMember,
		`{"data":[{"a":1}],5}`:           `1:10 {"a":1}|1:19: ` + wantMember,
		`{"data":[{"a":1}{"a":2}]}`:      `1:10 {"a":1}|1:17: want an element, a comma or the end of the JSON array`,
	} {
		if got := strings.Join(membersOf(in), "|"); got != want {
			t.Errorf("%s\n  %s\n  want %s", in, got, want)
		}
	}
	// The list goes on after what is looked at.
	long := `{"meta":{"page":1},"data":[` + strings.Repeat(`{"messages":[{"role":"user","content":"hello"}]},`, 3000)
	if list, records := envelopeList([]byte(long[:detectBytes])); list != "data" || len(records) != detectBytes-len(`{"meta":{"page":1},"data":`) {
		t.Errorf("%q, %d bytes", list, len(records))
	}
	info := wantEntries(t, `{"data":[{"messages":[{"role":"user","content":"q"}]}],"has_more":false}`, Options{}, `user:"q" chat`)
	if info.Format != "openai-log" {
		t.Errorf("read as %s", info.Format)
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"data":[{"messages":[{"role":"user","content":"MARK"}]},{"MARK":MARK`))
	f.Add([]byte(`{"meta":"MARK","data":[{"prompt":"MARK"}]}` + "\n" + `{"data":[{"prompt":5}],"MARK":1} MARK`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "openai-log"}) })
}
