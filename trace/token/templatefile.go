package token

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/trace/objectstore"
	"reprise/trace/token/internal/jinja"
)

const (
	configName   = "tokenizer_config.json"
	jinjaName    = "chat_template.jinja"
	chatName     = "chat_template.json" // of models with a processor, beside their tokenizer_config.json
	maxTemplate  = 1 << 20              // bytes of a template; published ones have up to 20 KB
	maxConfig    = 64 << 20             // of the file that it stands in
	templateName = "jinja:"
)

// A fileTemplate is a Jinja template from a file.
type fileTemplate struct {
	plain    *jinja.Template
	tools    *jinja.Template // for chats with tools, where the file has one of its own
	bos, eos string
	limits   jinja.Limits
}

// OpenTemplateAny gives a template by its name, as [OpenTemplate] does, or reads a chat template in Jinja as it comes
// with a model, by the path of a file of it alone (chat_template.jinja), of a chat_template.json or a
// tokenizer_config.json with a chat_template, or of a directory that has one of them, of which the first in this order
// is taken, as servers do.
//
// A template in a file is rendered as transformers' apply_chat_template does, with add_generation_prompt. Messages are
// given to it as vLLM gives them: arguments of calls as objects, a missing content as an empty text. The date that
// strftime_now tells is that of the request. bos_token and eos_token are those of the tokenizer_config.json, which may
// stand beside the template; without it they are empty.
//
// Such a template may take 10 million steps and make 256 MiB of text for one chat. Its name is "jinja:" and the first
// 16 digits of its SHA-256.
func OpenTemplateAny(nameOrPath string) (Template, error) {
	t, err := OpenTemplate(nameOrPath)
	if err == nil {
		return t, nil
	}
	if _, statErr := objectstore.Stat(nameOrPath); statErr != nil {
		return Template{}, fmt.Errorf("%w, or the path of a Jinja template or of a %s", err, configName)
	}
	if t, err = readTemplate(nameOrPath); err != nil {
		return Template{}, fmt.Errorf("open chat template %s: %w", nameOrPath, err)
	}
	return t, nil
}

// readTemplate reads a template from a file or a directory.
func readTemplate(path string) (Template, error) {
	if info, err := objectstore.Stat(path); err == nil && info.IsDir() {
		dir := path
		for _, name := range []string{jinjaName, chatName, configName} {
			path = objectstore.Join(dir, name)
			if _, err := objectstore.Stat(path); err == nil {
				break
			}
		}
	}
	text, err := readAtMost(path, maxConfig)
	if err != nil {
		return Template{}, err
	}
	config, isConfig := parseConfig(text)
	if !isConfig {
		if strings.HasSuffix(path, ".json") {
			return Template{}, errors.New("not a JSON object with a chat_template")
		}
		config.plain = string(text)
	}
	if !isConfig || strings.HasSuffix(path, chatName) {
		if beside, err := readAtMost(objectstore.Join(objectstore.Dir(path), configName), maxConfig); err == nil {
			tokens, _ := parseConfig(beside)
			config.bos, config.eos = tokens.bos, tokens.eos
		}
	}
	if !utf8.ValidString(config.plain) {
		return Template{}, errors.New("it is not UTF-8 text")
	}
	if config.plain == "" {
		return Template{}, errors.New("it has no chat_template; newer models have it in a file " + jinjaName)
	}
	f := &fileTemplate{bos: config.bos, eos: config.eos, limits: templateLimits}
	if f.plain, err = compile(config.plain); err == nil && config.tools != "" {
		f.tools, err = compile(config.tools)
	}
	if err != nil {
		return Template{}, err
	}
	sum := sha256.Sum256([]byte(config.plain + config.tools))
	return Template{Name: templateName + hex.EncodeToString(sum[:8]), file: f}, nil
}

func compile(source string) (*jinja.Template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("the template is larger than %d KiB", maxTemplate>>10)
	}
	return jinja.Compile(source)
}

func readAtMost(path string, n int64) ([]byte, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n+1))
	if err == nil && int64(len(b)) > n {
		err = fmt.Errorf("larger than %d MiB", n>>20)
	}
	return b, err
}

// A templateConfig holds the fields of a tokenizer_config.json that templates need.
type templateConfig struct{ plain, tools, bos, eos string }

// parseConfig reads a tokenizer_config.json; ok reports whether it is a JSON object at all. Of several templates
// transformers takes the one named default, and tool_use for a chat with tools.
func parseConfig(text []byte) (c templateConfig, ok bool) {
	var raw struct {
		Template json.RawMessage `json:"chat_template"`
		BOS      json.RawMessage `json:"bos_token"`
		EOS      json.RawMessage `json:"eos_token"`
	}
	if json.Unmarshal(text, &raw) != nil {
		return c, false
	}
	c.bos, c.eos = spelling(raw.BOS), spelling(raw.EOS)
	if json.Unmarshal(raw.Template, &c.plain) == nil {
		return c, true
	}
	var named []struct{ Name, Template string }
	if json.Unmarshal(raw.Template, &named) == nil {
		for _, n := range named {
			switch n.Name {
			case "default":
				c.plain = n.Template
			case "tool_use":
				c.tools = n.Template
			}
		}
	}
	return c, true
}

// spelling is the spelling of a token, which is given as a text or in an object.
func spelling(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var added struct{ Content string }
	if json.Unmarshal(raw, &added) != nil {
		return ""
	}
	return added.Content
}

// Limits of one rendering. Templates that put a chat together piece by piece write it anew for
// each: hence writtenAgain bytes more for each byte of it, up to mostWritten.
var templateLimits = jinja.Limits{Steps: 10_000_000, Bytes: 64 << 20, Depth: 100}

const (
	writtenAgain = 64
	mostWritten  = 256 << 20
)

// A fileScope holds the variables that a Renderer gives to a template from a file.
type fileScope struct {
	vars map[string]any
	at   time.Time
}

// ErrRefused is the error for a chat that the template itself refuses (raise_exception). A server would have refused
// the request.
var ErrRefused = errors.New("the template refuses the conversation (raise_exception)")

// renderFile renders a chat with a template from a file.
func (r *Renderer) renderFile(c *Chat) error {
	f := r.t.file
	if r.scope == nil {
		s := &fileScope{}
		s.vars = map[string]any{
			"add_generation_prompt": true, "bos_token": f.bos, "eos_token": f.eos, "documents": nil,
			"raise_exception": jinja.Func(func([]any) (any, error) { return nil, ErrRefused }),
			"strftime_now": jinja.Func(func(args []any) (any, error) {
				format, _ := append(args, "")[0].(string)
				return strftime(s.at, format), nil
			}),
		}
		r.scope = s
	}
	hidden := r.hide(c)
	r.scope.at = c.Time.UTC()
	r.scope.vars["messages"] = r.messages(c, hidden)
	r.scope.vars["tools"] = nil
	t := f.plain
	if tools := r.parseTools(hidden.apply(c.Tools)); len(tools) > 0 {
		list := jinja.NewList()
		for _, d := range tools {
			list.Items = append(list.Items, d)
		}
		r.scope.vars["tools"] = list
		if f.tools != nil {
			t = f.tools
		}
	}
	limits := f.limits
	limits.Bytes = min(limits.Bytes+writtenAgain*c.bytes(), max(limits.Bytes, mostWritten))
	text, err := t.Render(r.scope.vars, limits)
	if err != nil {
		return fmt.Errorf("the chat template: %w", err)
	}
	if e, ok := r.tok.(*Encoding); ok {
		r.pieces = e.appendSplit(r.pieces, text)
	} else {
		r.text(text)
	}
	hidden.undo(r.pieces)
	return nil
}

// messages are the messages of a chat as a template sees them.
func (r *Renderer) messages(c *Chat, hidden hiding) *jinja.List {
	list := jinja.NewList()
	for i := range c.Messages {
		m := &c.Messages[i]
		d := jinja.NewDict().Set("role", m.Role).Set("content", hidden.apply(m.Content))
		if calls := r.parseCalls(hidden.apply(m.Calls)); len(calls) > 0 {
			items := jinja.NewList()
			for _, call := range calls {
				items.Items = append(items.Items,
					jinja.NewDict().Set("id", call.id).Set("type", "function").Set("function", call.function))
			}
			d.Set("tool_calls", items)
		}
		if m.CallID != "" {
			d.Set("tool_call_id", m.CallID)
		}
		if m.Name != "" {
			d.Set("name", m.Name)
		}
		list.Items = append(list.Items, d)
	}
	return list
}

// A hiding keeps a message that spells a special token from making one. In the texts that a template gets, mark stands
// after the first character of the spelling; it is removed again from what the template renders. It is a character that
// the texts lack, or "" where no text spells a special token, which is nearly always.
type hiding struct {
	e    *Encoding
	mark string
}

// hide finds the mark for a chat.
func (r *Renderer) hide(c *Chat) hiding {
	e, ok := r.tok.(*Encoding)
	if !ok || e.marks == nil {
		return hiding{}
	}
	spells := func(s string) bool {
		_, _, _, found := e.marks.find(s, 0)
		return found
	}
	some := spells(c.Tools)
	var all strings.Builder
	for i := range c.Messages {
		m := &c.Messages[i]
		if some = some || spells(m.Content) || spells(m.Calls); some {
			break
		}
	}
	if !some {
		return hiding{}
	}
	all.WriteString(c.Tools)
	for _, m := range c.Messages {
		all.WriteString(m.Content)
		all.WriteString(m.Calls)
	}
	text := all.String()
	for mark := rune(0xf0000); mark < 0xffffe; mark++ { // a plane for private use
		if s := string(mark); !strings.Contains(text, s) {
			return hiding{e, s}
		}
	}
	return hiding{}
}

// apply hides the spellings in a text.
func (h hiding) apply(s string) string {
	if h.mark == "" {
		return s
	}
	var b strings.Builder
	at := 0
	for at < len(s) {
		start, end, _, ok := h.e.marks.find(s, at)
		if !ok {
			break
		}
		width := 1
		for width < end-start && s[start+width]&0xc0 == 0x80 {
			width++
		}
		b.WriteString(s[at:start+width] + h.mark + s[start+width:end])
		at = end
	}
	return b.String() + s[at:]
}

// undo removes the mark from pieces.
func (h hiding) undo(pieces []Piece) {
	if h.mark == "" {
		return
	}
	for i := range pieces {
		if !pieces[i].Special {
			pieces[i].Text = strings.ReplaceAll(pieces[i].Text, h.mark, "")
		}
	}
}

// strftime is Python's strftime, for the codes that templates use.
func strftime(t time.Time, format string) string {
	codes := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'b': "Jan",
		'B': "January", 'a': "Mon",
		'A': "Monday", 'y': "06", 'p': "PM", 'I': "03", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch code := codes[format[i]]; {
		case code != "":
			b.WriteString(t.Format(code))
		case format[i] == '%':
			b.WriteByte('%')
		case format[i] == '-' && i+1 < len(format): // without a zero in front
			i++
			n, _ := strconv.Atoi(t.Format(codes[format[i]]))
			b.WriteString(strconv.Itoa(n))
		}
	}
	return b.String()
}
