package record

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
	r := NewJSON(bufio.NewReaderSize(strings.NewReader(in), 16), []byte(in))
	for {
		raw, err := r.Next()
		if err == io.EOF {
			return out
		}
		if f, ok := err.(*fault.Fault); ok {
			return append(out, fmt.Sprintf("%d:%d: %s", f.Line, f.Col, f.Reason))
		}
		line, col := r.Place(0)
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
	if list, records := EnvelopeList([]byte(long[:HeadBytes])); list != "data" ||
		len(records) != HeadBytes-len(`{"meta":{"page":1},"data":`) {
		t.Errorf("%q, %d bytes", list, len(records))
	}
}
