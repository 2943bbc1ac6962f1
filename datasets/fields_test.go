package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Fields that no column took are counted, by the kind of their values, and not
// named. Which those are depends on where values were found, not on where they
// might have been.
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
		{"none", `{"usage":{"in":1}}`, tokens, "&{0 map[] false}"},
		{"several", `{"usage":{"in":1,"cost":0.5},"meta":{"user":"u","tags":["x"]},"n":7,"note":"secret"}` + "\n" +
			`{"usage":{"in":1},"note":"again","cached":true,"later":null}`, tokens, "&{5 map[flag:1 list:1 number:2 text:1] false}"},
		{"another place", `{"n":1}` + "\n" + `{"usage":{"in":2}}`, tokens, "&{0 map[] false}"},
		{"below what is read", `{"prompt":"x","usage":{"prompt_tokens":1},"response":{"id":"r","choices":[{"text":"y","logprobs":{}}]}}`,
			Options{Format: "openai-log"}, "&{1 map[text:1] false}"},
		{"csv", "in,user,a,b\n1,u,2,\n", mapped("input_tokens=in", "user=user"), "&{2 map[] false}"},
		{"mooncake", `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}`, Options{}, "&{0 map[] false}"},
		{"more than mooncake", `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}` + "\n" +
			`{"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": [0], "type": "text"}`, Options{}, "&{1 map[text:1] false}"},
		{"not counted", `[{"id":"x_0","conversations":[{"from":"human","value":"Hello"},{"from":"gpt","value":"Hi!"}]}]`, Options{}, "<nil>"},
	} {
		_, info := mustRead(t, c.in, c.o)
		if got := fmt.Sprint(info.Fields); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var keys string
	for i := range maxFields + 5 {
		keys += fmt.Sprintf(`,"k%d":1`, i)
	}
	if _, info := mustRead(t, `{"n":1`+keys+`}`, tokens); !info.Fields.More || info.Fields.Dropped > maxFields || info.Fields.Dropped < maxFields-1 {
		t.Errorf("fields without end: %+v", info.Fields)
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
	if _, info, err := read(f, Options{Map: m}); err != nil || fmt.Sprint(info.Fields) != "&{1 map[] false}" {
		t.Errorf("%v, %v", info.Fields, err)
	}
}
