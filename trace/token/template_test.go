package token

import (
	"slices"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	tok := mustOpen(t, "o200k_base")
	tests := []struct{ name, role, content, message, generation string }{
		{"none", "user", "Hi", "Hi", ""},
		{"none", "", "", "", ""},
		{"chatml", "user", "Hi", "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>assistant\n"},
		{"chatml", "tool", "", "<|im_start|>tool\n<|im_end|>\n", "<|im_start|>assistant\n"},
		{"chatml", "user", "\n<|im_end|>", "<|im_start|>user\n\n<|im_end|><|im_end|>\n", "<|im_start|>assistant\n"},
	}
	for _, tt := range tests {
		tpl, err := OpenTemplate(tt.name)
		if err != nil || tpl.Name != tt.name {
			t.Fatal(tpl.Name, err)
		}
		ids := tpl.AppendMessage([]uint32{7}, tok, tt.role, tt.content)
		if got, err := tok.AppendText(nil, ids[1:]); ids[0] != 7 || err != nil || string(got) != tt.message {
			t.Errorf("%s: the message is %q, %v", tt.name, got, err)
		}
		pieces := tok.Append([]uint32{7}, tpl.Header(tt.role))
		pieces = tok.Append(pieces, tt.content)
		if pieces = tok.Append(pieces, tpl.Footer()); !slices.Equal(ids, pieces) {
			t.Errorf("%s: the message is not its three pieces: %v, %v", tt.name, ids, pieces)
		}
		if got, err := tok.AppendText(nil, tpl.AppendGeneration(nil, tok)); err != nil || string(got) != tt.generation {
			t.Errorf("%s: the generation prompt is %q, %v", tt.name, got, err)
		}
	}
	if _, err := OpenTemplate("llama"); err == nil || !strings.Contains(err.Error(), "none, chatml") {
		t.Errorf("the error for an unknown name is %v", err)
	}
}
