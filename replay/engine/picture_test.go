package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/jpeg"
	"image/png"
	"strconv"
	"testing"

	"reprise/replay/openai"
)

func picture(t testing.TB, w, h int, shade byte, asJPEG bool) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, w, h))
	img.Pix[0] = shade
	var b bytes.Buffer
	kind, err := "png", error(nil)
	if asJPEG {
		kind, err = "jpeg", jpeg.Encode(&b, img, nil)
	} else {
		err = png.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

// An image counts by its size, hits the cache only when it comes again, and only in a chat.
func TestImages(t *testing.T) {
	c := fast()
	c.Engine.BlockSize = 16
	srv := start(t, c)
	ask := func(urls ...string) (prompt, cached int) {
		t.Helper()
		parts := `{"type":"text","text":"p"}`
		for _, url := range urls {
			parts += `,{"type":"image_url","image_url":{"url":` + strconv.Quote(url) + `}}`
		}
		status, body := post(t, srv, openai.ChatPath, `{"messages":[{"role":"user","content":[`+parts+`]}],"max_tokens":1}`)
		var answer struct{ Usage openai.Usage }
		if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil {
			t.Fatalf("status %d: %s", status, body)
		}
		return answer.Usage.PromptTokens, answer.Usage.PromptTokensDetails.CachedTokens
	}
	none, _ := ask()
	for _, row := range []struct {
		urls   []string
		tokens int
		hits   bool
	}{
		{[]string{picture(t, 1, 1, 0, false)}, 1, false},
		{[]string{picture(t, 28, 29, 0, false)}, 2, false},
		{[]string{picture(t, 224, 224, 0, true)}, 64, false},
		{[]string{picture(t, 224, 224, 0, true)}, 64, true},
		{[]string{picture(t, 224, 224, 200, false)}, 64, false},
		{[]string{picture(t, 224, 224, 100, false), picture(t, 280, 56, 0, false)}, 84, false},
	} {
		n, cached := ask(row.urls...)
		if n-none != row.tokens || (cached > none) != row.hits {
			t.Errorf("%d tokens beside the text, %d cached; want %d, hits %v", n-none, cached, row.tokens, row.hits)
		}
	}
	for _, url := range []string{"https://example.com/a.png", "data:image/png;base64,AAAA", "data:image/png,AAAA",
		"data:text/plain;base64,AAAA", ""} {
		if status, body := post(t, srv, openai.ChatPath,
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}]}`); status != 400 {
			t.Errorf("%q: status %d: %s", url, status, body)
		}
	}
}
