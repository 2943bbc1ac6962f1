package datasets

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
)

// Fields that are not read are counted, by the kind of their values, and not named,
// at all depths and in members of lists.
func TestFields(t *testing.T) {
	mapped := func(specs ...string) Options {
		m, err := ParseMapping(specs)
		if err != nil {
			t.Fatal(err)
		}
		return Options{Map: m}
	}
	tokens := mapped("input_tokens=usage.in|n", "user=meta.user")
	for _, c := range []struct {
		name, in string
		o        Options
		want     string
	}{
		{"none", `{"usage":{"in":1}}`, tokens, "&{jsonl [input_tokens user] 0 map[] false}"},
		{"several", `{"usage":{"in":1,"cost":0.5},"meta":{"user":"u","tags":["x"]},"n":7,"note":"secret"}` + "\n" +
			`{"usage":{"in":1},"note":"again","cached":true,"later":null}`, tokens, "&{jsonl [input_tokens user] 4 map[flag:1 list:1 number:1 text:1] false}"},
		{"another place", `{"n":1}` + "\n" + `{"usage":{"in":2}}`, tokens, "&{jsonl [input_tokens user] 0 map[] false}"},
		{"below what is read", `{"prompt":"x","usage":{"prompt_tokens":1},"response":{"id":"r","choices":[{"text":"y","logprobs":{}}]}}`,
			Options{Format: "openai-log"}, "&{openai-log [] 1 map[text:1] false}"},
		{"csv", "in,user,a,b\n1,u,2,\n", mapped("input_tokens=in", "user=user"), "&{csv [input_tokens user] 2 map[] false}"},
		{"mooncake", `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}`, Options{}, "&{mooncake [] 0 map[] false}"},
		{"more than mooncake", `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}` + "\n" +
			`{"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": [0], "type": "text"}`, Options{}, "&{mooncake [] 1 map[text:1] false}"},
		{"members of lists", `{"messages":[{"role":"user","content":"x"}],"choices":[{"text":"y","logprobs":{"n":1}},{"seed":3}]}`, Options{Format: "openai-log"},
			"&{openai-log [] 2 map[number:2] false}"},
		{"packed", "request_json,b\n" + `"{""messages"":[{""role"":""user"",""content"":""x""}],""extra"":{""n"":1}}",2` + "\n", Options{},
			"&{gateway-csv [] 2 map[number:1] false}"},
		{"of structs", `[{"id":"x_0","conversations":[{"from":"human","value":"Hello","\u0074one":{"warm":true,"n":null}},{"From":"gpt","value":"Hi!","tone":{"warm":false,"n":1e3}}],"tags":["a",{"b":1}]}]`, Options{},
			"&{sharegpt [] 3 map[flag:1 list:1 number:1] false}"},
	} {
		_, info := mustRead(t, c.in, c.o)
		if got := fmt.Sprint(info.Fields); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var keys string
	for i := range 10_000 + 5 {
		keys += fmt.Sprintf(`,"k%d":1`, i)
	}
	if _, info := mustRead(t, `{"n":1`+keys+`}`, tokens); !info.Fields.More || info.Fields.Dropped > 10_000 ||
		info.Fields.Dropped < row.MaxFields-1 {
		t.Errorf("fields without end: %+v", info.Fields)
	}
}

// What the table does not name is gone before a decoder sees the row.
func TestDecodersSeeTheTableAlone(t *testing.T) {
	known, _ := newFieldCounter(*(&Options{Format: "azure-2023"}).named(), nil)
	rows := row.JSON{Records: record.NewLines(bufio.NewReader(strings.NewReader(`{"TIMESTAMP":1,"user":"jane","ContextTokens":{"n":2}}`))), Fields: known}
	r, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Value("user"); ok {
		t.Error("a decoder sees a field that the table does not name")
	}
	if _, ok := r.Value("TIMESTAMP"); !ok {
		t.Error("a decoder does not see a field of the table")
	}
	columns, err := row.NewCSV(strings.NewReader("user,TIMESTAMP\njane,1\n"), row.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	columns.Admit(known, nil)
	if _, err := columns.Next(); err != nil {
		t.Fatal(err)
	}
	if _, ok := columns.Value("user"); ok {
		t.Error("a decoder sees a column that the table does not name")
	}
	if v, _ := columns.Value("TIMESTAMP"); v != "1" {
		t.Errorf("the column of the table is %v", v)
	}
}

func TestFieldsOfParquet(t *testing.T) {
	type log struct {
		In    int64 `parquet:"in"`
		Usage struct {
			Out  int64 `parquet:"out"`
			Cost int64 `parquet:"cost"`
		} `parquet:"usage"`
		Note string `parquet:"note"`
	}
	path := filepath.Join(t.TempDir(), "log.parquet")
	if err := parquet.WriteFile(path, []log{{In: 1}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, _ := ParseMapping([]string{"input_tokens=in", "output_tokens=usage.out"})
	if _, info, err := read(f, Options{Map: m}); err != nil || fmt.Sprint(info.Fields) != "&{parquet [input_tokens output_tokens] 1 map[] false}" {
		t.Errorf("%v, %v", info.Fields, err)
	}
}
