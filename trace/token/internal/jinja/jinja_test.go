package jinja

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var roomy = Limits{Steps: 1 << 20, Bytes: 1 << 24, Depth: 50}

// TestReference holds what Jinja2 gives: testdata/reference.py made it.
func TestReference(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "jinja.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		Vars  json.RawMessage
		Cases []struct {
			Source string
			Want   *string
			Fails  string
		}
	}
	if err := json.Unmarshal(file, &ref); err != nil {
		t.Fatal(err)
	}
	vars := varsOf(t, string(ref.Vars))
	for _, c := range ref.Cases {
		got, err := renderText(c.Source, vars)
		switch {
		case c.Want == nil && err == nil:
			t.Errorf("%q gives %q, want an error: %s", c.Source, got, c.Fails)
		case c.Want != nil && err != nil:
			t.Errorf("%q: %v", c.Source, err)
		case c.Want != nil && got != *c.Want:
			t.Errorf("%q gives\n%q, want\n%q", c.Source, got, *c.Want)
		}
	}
}

func varsOf(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	d := v.(*Dict)
	vars := make(map[string]any)
	for _, k := range d.Keys() {
		vars[k], _ = d.Get(k)
	}
	return vars
}

func renderText(source string, vars map[string]any) (string, error) {
	p, err := Compile(source)
	if err != nil {
		return "", err
	}
	return p.Render(vars, roomy)
}

func TestCompileRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"{{ x":                       "line 1 of the template: a tag that is not closed",
		"a\nb{% if x %}":             "line 2 of the template: want endif here",
		"{% endif %}":                "line 1 of the template: a tag that closes a block that is not open",
		"{# x":                       "line 1 of the template: a comment that is not closed",
		"{% include 'x' %}":          "the statement include is not supported",
		"{% filter upper %}":         "the statement filter is not supported",
		"{{ f(**x) }}":               "arguments of a dict, or behind a list of arguments, are not supported",
		"{{ x | e + y }}":            "safe or escape beside an operator is not supported",
		"{% call x %}":               "want a call here",
		"{% call(y) f() %}":          "a call statement with arguments of its own is not supported",
		"{{ '\\N{BULLET}' }}":        "a character by its name",
		"{{ 'x }}":                   "a string that is not closed",
		"{% break %}":                "a jump outside a loop",
		"{{ x ? y }}":                "a character that has no meaning here",
		"{{ }}":                      "want a value here",
		"{{ x[] }}":                  "want a value here",
		"{% for x in y recursive %}": "a recursive loop is not supported",
		"{% raw %}":                  "raw that is not closed",
		"{{ '\\u12' }}":              "an escape that is not whole",
		"{{ '\\xzz' }}":              "an escape that is no character",
		"{{ x | safe + y }}":         "safe or escape beside an operator is not supported",
		"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}": "nested too deeply",
		"{{ 1" + strings.Repeat("+1", 2000) + " }}":                               "too many operators in a row",
		"{{ x" + strings.Repeat(".x", 2000) + " }}":                               "too many operators in a row",
		strings.Repeat("{% if x %}", 300):                                         "nested too deeply",
		"{{ " + strings.Repeat("not ", 300) + "x }}":                              "nested too deeply",
	} {
		_, err := Compile(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", source, err, want)
		}
	}
}

// What other renderings of Jinja have and this one has not fails by name, once it is reached.
func TestRenderRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"{{ x | frobnicate }}":                     "the filter frobnicate is not supported",
		"{{ '%s' | format(1) }}":                   "the filter format is not supported",
		"{{ x is frobnicated }}":                   "the test frobnicated is not supported",
		"{{ 'a'.partition(' ') }}":                 "the method partition, which is not supported",
		"{{ f(1) }}":                               "a call of f, which is not defined",
		"{{ [1] | map('string') }}":                "put | list behind it",
		"{{ {'a': 1}.items() }}":                   "put | list behind it",
		"{{ ([1] | select)[0] }}":                  "put | list behind it",
		"{{ {'a': 1}.keys()[:1] }}":                "put | list behind it",
		"{{ 'a'.startswith('a', 1) }}":             "takes no place here",
		"{{ 9223372036854775807 + 1 }}":            "an integer beyond 64 bits",
		"{{ '1f' | int(0, 16) }}":                  "int of another base",
		"{{ 'a\n'.splitlines(true) }}":             "splitlines keeps no line ends",
		"{{ [1] | unique(attribute='a') | list }}": "unique takes no attribute",
	} {
		if got, err := renderText(source, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %q, %v, want %s", source, got, err, want)
		}
	}
}

// Templates that would go on, or grow, without end are errors.
func TestLimits(t *testing.T) {
	// A value of 60 lists, each of them twice in the next, is 2^60 numbers where it is walked.
	const twice = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
	const twiceByKey = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}"
	vars := varsOf(t, `{"secret":"hunter2 hunter2","list":[1,2,3,4,5,6,7,8,9,10]}`)
	for name, source := range map[string]string{
		"a loop within a loop":    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
		"a large range":           "{{ range(999999999999) | length }}",
		"a range of 100,001":      "{{ range(100001) | length }}",
		"a range downwards":       "{{ range(0, -9999999, -1) | length }}",
		"a range past numbers":    "{{ range(-9223372036854775807, 9223372036854775807) | length }}",
		"a macro":                 "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"two macros":              "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
		"doubling":                "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"doubling a list":         "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"repeating":               "{{ 'x' * 999999999999 }}",
		"replacing":               "{% set x = 'aaaaaaaaaaaaaaaa' * 9999 %}{{ x.replace('a', x) }}",
		"output":                  "{% set x = 'aaaaaaaaaaaaaaaa' * 9999 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
		"nesting":                 "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		"nested JSON":             "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
		"a list of itself":        twice + "{{ ns.x }}",
		"a dict of itself":        twiceByKey + "{{ ns.x ~ 'a' }}",
		"JSON of itself":          twice + "{{ ns.x | tojson }}",
		"JSON of itself in lines": twiceByKey + "{{ ns.x | tojson(indent=2) }}",
		"itself joined":           twice + "{{ [ns.x, ns.x] | join('a') }}",
		"itself in capitals":      twiceByKey + "{{ ns.x | upper }}",
		"comparing with itself":   twice + "{% set y = ns.x %}" + twice + "{{ ns.x == y }}",
		"comparing":               "{% set x = 'ab' * 999999 %}{% set y = 'ab' * 999999 %}{% for i in range(99999) %}{{ x == y }}{% endfor %}",
		"secret key":              "{{ {list: 1} }}",
		"secret call":             "{{ secret(1) }}",
		"secret order":            "{{ secret < 1 }}",
		"secret loop":             "{% for a, b, c in [secret] %}{% endfor %}",
		"secret filter":           "{{ list | map(secret) | list }}",
	} {
		got, err := renderText(source, vars)
		if err == nil {
			t.Errorf("%s: gives %d bytes, want an error", name, len(got))
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes: %v", name, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`{"z": 1, "a": [1.0, 1e3, true, null, "é\u00e9"]}`: `{"z": 1, "a": [1.0, 1000.0, true, null, "éé"]}`,
		`123456789012345678901`:                            `123456789012345678901`,
		` [ ] `:                                            `[]`,
		`{}`:                                               `{}`,
		`"<&>"`:                                            `"<&>"`,
	} {
		v, err := Decode(in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if got, ok := JSON(v); got != want || !ok {
			t.Errorf("%s comes back as %s, %v; want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "{", "[1,]", "1 2", "nul", `{"a"}`, strings.Repeat("[", 5000), "secret"} {
		if _, err := Decode(in); err == nil || err.Error() != "not JSON" {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

// FuzzRender renders any template with any messages: no panic, and no more than the limits allow.
func FuzzRender(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}", `[{"role":"user","content":"x"}]`)
	f.Add("{% macro f(a, b=2) %}{{ a[::-1] }}{% endmacro %}{{ f('x', *3) }}", `{"a":[1,2.5,null]}`)
	f.Add("{%- set ns = namespace(x=1) -%}{% set ns.x = messages | tojson(indent=2) %}{{ ns.x.split('\n')[-1:] | join }}", `["\u0000é"]`)
	f.Add("{% raw %}{{ x }}{% endraw %}{# c #}{{ 1 // 0 if messages is mapping else -7 % 3 }}", `1e400`)
	f.Fuzz(func(t *testing.T, source, messages string) {
		p, err := Compile(source)
		if err != nil {
			return
		}
		v, err := Decode(messages)
		if err != nil {
			v = messages
		}
		limits := Limits{Steps: 20_000, Bytes: 1 << 20, Depth: 20}
		got, err := p.Render(map[string]any{"messages": v}, limits)
		if len(got) > limits.Bytes {
			t.Errorf("%d bytes", len(got))
		}
		again, err2 := p.Render(map[string]any{"messages": v}, limits)
		if got != again || (err == nil) != (err2 == nil) {
			t.Error("not the same again")
		}
	})
}

// ExampleTemplate_Render renders two messages in the manner of ChatML.
func ExampleTemplate_Render() {
	t, err := Compile("{% for m in messages %}\n<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := Decode(`[{"role": "system", "content": "Be brief. "}, {"role": "user", "content": "Hello"}]`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Render(map[string]any{"messages": messages}, Limits{Steps: 1000, Bytes: 1000}))
	// Output:
	// <|im_start|>system
	// Be brief.<|im_end|>
	// <|im_start|>user
	// Hello<|im_end|>
	//  <nil>
}
