package client

import (
	"testing"

	"reprise/trace"
)

// Rules of real models, as their preprocessors have them, for square images.
var imageRules = []struct {
	name   string
	tokens func(w, h int) int
	says   string
}{
	{"Qwen2-VL", func(w, h int) int { return ((w+14)/28)*((h+14)/28) + 2 }, "the server counts a token for each 28 by 28 pixels of an image, and 2 more, from 66 to 1026 tokens"},
	{"Qwen3-VL, from 64 tokens on", func(w, h int) int { return max(((w+16)/32)*((h+16)/32), 64) + 2 }, "the server counts a token for each 32 by 32 pixels of an image, and 2 more, from 198 to 786 tokens"},
	{"reduced to 500 tokens at most", func(w, h int) int { return min((w/28)*(h/28), 500) }, "the server counts a token for each 28 by 28 pixels of an image, and 0 more, from 64 to 256 tokens"},
	{"LLaVA-1.5", func(int, int) int { return 576 }, "the server counts 576 tokens for an image of any size"},
	{"tiles of 512", func(w, h int) int { return 85 + 170*((w+511)/512)*((h+511)/512) }, "the server counts 255 to 765 tokens for an image, by no rule that is known: of 4 sizes that were measured, the nearest is sent"},
}

func TestImageRules(t *testing.T) {
	for _, rule := range imageRules {
		m := Images{block: 16}
		for _, side := range sides[:4] {
			m.measured = append(m.measured, measuredSize{side, rule.tokens(side, side)})
		}
		m.fit()
		if got := m.String(); got != rule.says {
			t.Errorf("%s: %s", rule.name, got)
		}
		// Whatever is asked for, what is planned is what the server counts.
		for tokens := int32(1); tokens < 3000; tokens += 13 {
			row := trace.Request{InputTokens: tokens + 40, ImageTokens: &tokens, Blocks: make([]uint64, (tokens+40+15)/16)}
			n, size, total := m.plan(&row)
			if n > 0 && (n != 1 || rule.tokens(size.Width, size.Height) != total) {
				t.Fatalf("%s: %d tokens: %d of %v has %d, planned %d", rule.name, tokens, n, size, rule.tokens(size.Width, size.Height), total)
			}
			if off := int32(total) - tokens; m.cell > 0 && tokens >= 210 && tokens < 258 && (off > 0 || off < -15) {
				t.Errorf("%s: %d tokens for %d", rule.name, total, tokens)
			}
			text := m.Text(&row)
			if int(text.InputTokens)+total != int(row.InputTokens) || text.InputTokens < 1 || len(text.Blocks) != int(text.InputTokens+15)/16 {
				t.Fatalf("%s: %d tokens and %d blocks of text beside %d", rule.name, text.InputTokens, len(text.Blocks), total)
			}
		}
	}
}

// Several images share the tokens, and what each further one adds is counted.
func TestSeveralImages(t *testing.T) {
	m := Images{block: 16, cell: 28, fixed: 2, least: 4, most: 1024, between: 1}
	row := trace.Request{InputTokens: 1000, ImageTokens: trace.Ptr(int32(303)), Images: trace.Ptr(int32(3))}
	if n, size, total := m.plan(&row); n != 3 || size.Width != 14*28 || size.Height != 7*28 || total != 3*(98+2)+2 {
		t.Errorf("%d of %v: %d tokens", n, size, total)
	}
	row.InputTokens = 10 // too few for three
	if n, _, total := m.plan(&row); n != 1 || total > 9 {
		t.Errorf("%d images of %d tokens", n, total)
	}
	row.InputTokens = 5
	if n, _, _ := m.plan(&row); n != 0 || m.Text(&row) != &row {
		t.Errorf("%d images in a prompt without room for one", n)
	}
	m.between, row.InputTokens = -1, 1000
	if n, _, _ := m.plan(&row); n != 1 {
		t.Errorf("%d images where one is taken", n)
	}
	if n, _, _ := (*Images)(nil).plan(&row); n != 0 {
		t.Error("images without --images")
	}
}
