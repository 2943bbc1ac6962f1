package token

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/trace/token/internal/jinja"
)

var gptOSS = &style{
	name: "gpt-oss", about: "GPT-OSS (Harmony), which tells the date of the request; tools as TypeScript in the " +
		"developer's message",
	tools:  true,
	models: []string{"gpt-oss"},
	format: harmonyFormat{},
}

// A harmonyFormat leaves out the messages of the system after the first, and all but the first of several calls, as the
// published template does.
type harmonyFormat struct{}

func (harmonyFormat) answer(r *Renderer) { r.harmonyStart("assistant") }

func (r *Renderer) harmonyStart(role string) {
	r.mark("<|start|>")
	r.text(role)
}

// harmonyMessage writes a message without its end mark.
func (r *Renderer) harmonyMessage(role, channel string, parts ...string) {
	r.harmonyStart(role)
	if channel != "" {
		r.mark("<|channel|>")
		r.text(channel)
	}
	r.mark("<|message|>")
	r.text(parts...)
}

func (harmonyFormat) render(r *Renderer, c *Chat) {
	r.harmonyMessage("system", "",
		"You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: ",
		c.Time.UTC().Format("2006-01-02"), "\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "+
			"Channel must be included for every message.")
	if c.Tools != "" {
		r.text("\nCalls to these tools must go to the commentary channel: 'functions'.")
	}
	r.mark("<|end|>")
	messages, developer := c.Messages, ""
	if c.beginsWithSystem() {
		developer, messages = messages[0].Content, messages[1:]
	}
	if developer != "" || c.Tools != "" {
		r.harmonyMessage("developer", "")
		if developer != "" {
			r.text("# Instructions\n\n", developer, "\n\n")
		}
		if c.Tools != "" {
			r.text("# Tools\n\n", typeScript(r.parseTools(c.Tools)))
		}
		r.mark("<|end|>")
	}
	final := len(messages) - 1 // the last message of the assistant that calls nothing
	for final >= 0 && !(messages[final].Role == "assistant" && len(r.parseCalls(messages[final].Calls)) == 0) {
		final--
	}
	tool := ""
	for i := range messages {
		m := &messages[i]
		calls := r.parseCalls(m.Calls)
		switch {
		case m.Role == "user":
			r.harmonyMessage("user", "", m.Content)
			r.mark("<|end|>")
		case m.Role == "tool":
			r.harmonyMessage("functions."+tool+" to=assistant", "commentary", dumps(m.Content))
			r.mark("<|end|>")
		case m.Role == "assistant" && len(calls) > 0:
			if m.Content != "" && i > final {
				r.harmonyMessage("assistant", "analysis", m.Content)
				r.mark("<|end|>")
			}
			tool = calls[0].name
			r.harmonyMessage("assistant to=functions."+tool, "commentary json", calls[0].json)
			r.mark("<|call|>")
		case m.Role == "assistant":
			r.harmonyMessage("assistant", "final", m.Content)
			r.mark("<|end|>")
		}
	}
}

func (harmonyFormat) reply(r *Renderer, content, calls string) {
	parsed := r.parseCalls(calls)
	if len(parsed) == 0 {
		r.mark("<|channel|>")
		r.text("final")
		r.mark("<|message|>")
		r.text(content)
		return
	}
	r.text(" to=functions.", parsed[0].name)
	r.mark("<|channel|>")
	r.text("commentary json")
	r.mark("<|message|>")
	r.text(parsed[0].json)
}

// typeScript writes the definitions of tools as the published template does, with its line ends.
func typeScript(tools []*jinja.Dict) string {
	var b strings.Builder
	b.WriteString("## functions\n\nnamespace functions {\n\n")
	for _, t := range tools {
		function, _ := get(t, "function").(*jinja.Dict)
		function = cmp.Or(function, t)
		b.WriteString("// " + stringAt(function, "description") + "\ntype " + stringAt(function, "name") + " = ")
		parameters, _ := get(function, "parameters").(*jinja.Dict)
		properties := dictAt(parameters, "properties")
		if properties.Len() == 0 {
			b.WriteString("() => any;\n\n")
			continue
		}
		b.WriteString("(_: {\n")
		for _, name := range properties.Keys() {
			spec := dictAt(properties, name)
			if about := stringAt(spec, "description"); about != "" {
				b.WriteString("// " + about + "\n")
			}
			b.WriteString(name + optionalMark(parameters, name) + ": " + typeOf(spec, 0))
			if value, ok := spec.Get("default"); ok {
				text, isText := value.(string)
				switch {
				case len(listAt(spec, "enum")) > 0 && isText:
					b.WriteString(", // default: " + text)
				case len(listAt(spec, "oneOf")) > 0 && isText:
					b.WriteString("// default: " + text)
				default:
					b.WriteString(", // default: " + dumps(value))
				}
			}
			b.WriteString(",\n")
		}
		b.WriteString("}) => any;\n\n")
	}
	b.WriteString("} // namespace functions")
	return b.String()
}

// dictAt is the object at a key, empty where there is none.
func dictAt(d *jinja.Dict, key string) *jinja.Dict {
	if d != nil {
		if inner, ok := get(d, key).(*jinja.Dict); ok {
			return inner
		}
	}
	return jinja.NewDict()
}

func listAt(d *jinja.Dict, key string) []any {
	if list, ok := get(d, key).(*jinja.List); ok {
		return list.Items
	}
	return nil
}

// optionalMark is the mark after the name of a property that is not required.
func optionalMark(d *jinja.Dict, name string) string {
	if slices.Contains(listAt(d, "required"), any(name)) {
		return ""
	}
	return "?"
}

// maxTypes bounds how deep types are nested.
const maxTypes = 50

// typeOf is the type that a schema describes.
func typeOf(spec *jinja.Dict, depth int) string {
	kind, isText := get(spec, "type").(string)
	nullable := ""
	if yes, _ := get(spec, "nullable").(bool); yes {
		nullable = " | null"
	}
	several := listAt(spec, "type")
	switch {
	case depth > maxTypes:
		return "any"
	case kind == "array":
		return arrayType(dictAt(spec, "items"), depth) + nullable
	case len(several) > 0:
		return joinTexts(several, " | ")
	case len(listAt(spec, "oneOf")) > 0:
		return variants(listAt(spec, "oneOf"), depth)
	case kind == "string" && len(listAt(spec, "enum")) > 0:
		return `"` + joinTexts(listAt(spec, "enum"), `" | "`) + `"`
	case kind == "string":
		return "string" + nullable
	case kind == "number", kind == "integer":
		return "number"
	case kind == "boolean":
		return "boolean"
	case kind == "object" && isText:
		properties := dictAt(spec, "properties")
		if properties.Len() == 0 {
			return "object"
		}
		var b strings.Builder
		b.WriteString("{\n")
		for i, name := range properties.Keys() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(name + optionalMark(spec, name) + ": \n" + strings.Repeat(" ", 16) +
				typeOf(dictAt(properties, name), depth+1))
		}
		b.WriteString("}")
		return b.String()
	}
	return "any"
}

func joinTexts(items []any, sep string) string {
	texts := make([]string, len(items))
	for i, v := range items {
		s, ok := v.(string)
		if !ok {
			s = dumps(v)
		}
		texts[i] = s
	}
	return strings.Join(texts, sep)
}

// arrayType is the type of a list of items. Items whose type is long have none.
func arrayType(items *jinja.Dict, depth int) string {
	if items.Len() == 0 {
		return "any[]"
	}
	switch stringAt(items, "type") {
	case "string":
		return "string[]"
	case "number", "integer":
		return "number[]"
	case "boolean":
		return "boolean[]"
	}
	inner := typeOf(items, depth+1)
	if inner == "object | object" || utf8.RuneCountInString(inner) > 50 {
		return "any[]"
	}
	return inner + "[]"
}

// variants is the union of the types that oneOf lists.
func variants(list []any, depth int) string {
	var b strings.Builder
	for i, v := range list {
		variant, ok := v.(*jinja.Dict)
		if !ok {
			variant = jinja.NewDict()
		}
		b.WriteString(typeOf(variant, depth+1))
		if about := stringAt(variant, "description"); about != "" {
			b.WriteString("// " + about)
		}
		if value, ok := variant.Get("default"); ok {
			b.WriteString(strings.Repeat(" ", 20) + "// default: " + dumps(value))
		}
		if i < len(list)-1 {
			b.WriteString(" | \n")
		}
	}
	return b.String()
}
