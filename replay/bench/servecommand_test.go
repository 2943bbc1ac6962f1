package bench

import (
	"slices"
	"testing"
)

func TestServeCommandWords(t *testing.T) {
	for line, want := range map[string][]string{
		`vllm serve m  --port {port}`:          {"vllm", "serve", "m", "--port", "{port}"},
		`a 'b c' "d e"f g\ h`:                  {"a", "b c", "d ef", "g h"},
		`a --cfg '{"x": [1, 2]}' ""`:           {"a", "--cfg", `{"x": [1, 2]}`, ""},
		`"a\"b\\c\d" '\e'`:                     {`a"b\c\d`, `\e`},
		"a \\\n  b":                            {"a", "b"},
		`sh -c 'exec vllm serve >/dev/null'`:   {"sh", "-c", "exec vllm serve >/dev/null"},
		`env CUDA_VISIBLE_DEVICES=0 engine $X`: {"env", "CUDA_VISIBLE_DEVICES=0", "engine", "$X"},
	} {
		c, err := ParseServeCommand(line)
		if err != nil || !slices.Equal(c.Words(), want) {
			t.Errorf("%s: %q, %v", line, c.Words(), err)
		}
	}
	for _, bad := range []string{"", "  ", `a 'b`, `a "b`, `a \`, "a \x00"} {
		if c, err := ParseServeCommand(bad); err == nil {
			t.Errorf("%q: %q", bad, c.Words())
		}
	}
}

func TestServeCommandFill(t *testing.T) {
	c, err := ParseServeCommand(`engine --port {port} --seqs {x} --cfg '{"port":1}' --name {x}-{y_2}`)
	if err != nil || !slices.Equal(c.Placeholders(), []string{"x", "y_2"}) || !c.HasPort() {
		t.Fatalf("%q, %v", c.Placeholders(), err)
	}
	f, err := c.Fill(map[string]string{"x": "6 4", "y_2": "{port}"})
	if want := []string{"engine", "--port", "{port}", "--seqs", "6 4", "--cfg", `{"port":1}`, "--name", "6 4-{port}"}; err != nil || !slices.Equal(f.Words(), want) {
		t.Errorf("%q, %v", f.Words(), err)
	}
	for _, bad := range []map[string]string{{"x": "1"}, {"x": "1", "y_2": "2", "z": "3"}, {"x": "1", "y_2": "2", "port": "3"}} {
		if f, err := c.Fill(bad); err == nil {
			t.Errorf("%v: %q", bad, f.Words())
		}
	}
}

// What is taken apart and joined again is taken apart into the same words.
func FuzzServeCommand(f *testing.F) {
	for _, s := range []string{`a 'b' "c\"" d\ e`, `'`, `{x} {port}`, "a\\\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := ParseServeCommand(line)
		if err != nil {
			return
		}
		again, err := ParseServeCommand(c.String())
		if err != nil || !slices.Equal(again.Words(), c.Words()) {
			t.Errorf("%q, %q: %v", c.Words(), again.Words(), err)
		}
	})
}
