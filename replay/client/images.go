package client

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"reprise/replay/client/internal/picture"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Images makes the images of rows that have image tokens, in sizes that the server counts
// as many tokens for. [HTTP.MeasureImages] makes one; it is then only read.
type Images struct {
	Seed  uint64 // of the run's prompts: set before the first image is made
	block int    // tokens of a block of the workload

	// What an image takes, by measurement: cell pixels a token and side, and fixed tokens
	// beside; or, where cell is 0, the sizes that were measured, by their tokens.
	cell, fixed int
	least, most int // cells, of the smallest and the largest image that follow the rule
	measured    []measuredSize
	between     int // tokens that each further image of a prompt adds
}

type measuredSize struct {
	side   int // pixels
	tokens int
}

// sides are those of the square images that are measured: multiples of the cells of most
// models, 14, 16, 28 and 32 pixels.
var sides = []int{224, 448, 672, 896, 1344, 1792, 2688, 3584}

// cells are pixels a side for one token, of models whose tokens follow the size.
var cells = []int{28, 32, 14, 16, 56, 64}

// MeasureImages has the first server count images of several sizes in chats, up to one of
// as many tokens as largest, and finds how sizes become tokens. block is the workload's block
// size. [HTTP.CalibrateAPI] goes before.
func (h *HTTP) MeasureImages(ctx context.Context, word string, block int, largest int32) (*Images, error) {
	if h.uncounted[result.APIChat] {
		return nil, fmt.Errorf("client: the server counts no prompt tokens, so that how large an image must be is not known")
	}
	m := &Images{block: block}
	text := h.overheads[result.APIChat] + 1
	defer func() { h.pictures = nil }()
	count := func(sizes ...picture.Size) (int, error) {
		h.text, h.ends, h.pictures = append(h.text[:0], word...), h.ends[:0], nil
		for _, size := range sizes {
			h.pictures = append(h.pictures, h.painter.AppendURL(nil, size, rand.Uint64()))
		}
		n, err := h.countPrompt(ctx, 0, result.APIChat)
		return n - text, err
	}
	for i, side := range sides {
		n, err := count(picture.Size{Width: side, Height: side})
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, fmt.Errorf("an image of %d by %d pixels: %w", side, side, err)
		}
		if err != nil {
			break // larger than it takes
		}
		if n < 1 {
			return nil, fmt.Errorf("client: the server counts no more tokens with an image than without: it leaves images out, or counts text alone")
		}
		m.measured = append(m.measured, measuredSize{side, n})
		if n >= int(largest) && i >= 2 {
			break
		}
	}
	two, err := count(picture.Size{Width: 224, Height: 224}, picture.Size{Width: 224, Height: 224})
	if err != nil {
		m.between = -1 // one image a prompt at most
	} else {
		m.between = two - 2*m.measured[0].tokens
	}
	m.fit()
	if m.cell == 0 {
		return m, nil
	}
	// One that is not square must follow the rule too, and the smallest.
	wide := picture.Size{Width: 16 * m.cell, Height: 9 * m.cell}
	if n, err := count(wide); err != nil || n != 16*9+m.fixed {
		m.cell = 0
		return m, nil
	}
	for _, few := range []int{1, 2, 4, 6, 8, 10, 12} { // cells a side
		if n, err := count(picture.Size{Width: few * m.cell, Height: few * m.cell}); err == nil && n == few*few+m.fixed {
			m.least = few * few
			break
		}
	}
	return m, nil
}

// fit finds the cell by which the measured sizes follow one rule.
func (m *Images) fit() {
	for _, cell := range cells {
		of := func(s measuredSize) int { return s.tokens - (s.side/cell)*(s.side/cell) }
		// What follows the rule begins anywhere, since small images may be enlarged, and
		// ends anywhere, since large ones may be reduced.
		for from := 0; from+1 < len(m.measured); from++ {
			to := from + 1
			for to < len(m.measured) && of(m.measured[to]) == of(m.measured[from]) {
				to++
			}
			if fixed := of(m.measured[from]); to-from > 1 && fixed >= 0 && fixed < 64 && m.measured[to-1].tokens > m.measured[from].tokens {
				square := func(s measuredSize) int { return (s.side / cell) * (s.side / cell) }
				m.cell, m.fixed, m.least, m.most = cell, fixed, square(m.measured[from]), square(m.measured[to-1])
				return
			}
		}
	}
}

// choose returns the size of an image of about so many tokens, and how many it has.
func (m *Images) choose(tokens int) (picture.Size, int) {
	if m.cell == 0 {
		near := slices.MinFunc(m.measured, func(a, b measuredSize) int {
			return max(a.tokens-tokens, tokens-a.tokens) - max(b.tokens-tokens, tokens-b.tokens)
		})
		return picture.Size{Width: near.side, Height: near.side}, near.tokens
	}
	area := min(max(tokens-m.fixed, m.least), m.most)
	high := max(int(math.Sqrt(float64(area))), 1)
	for h := high; h > high*3/4; h-- { // nearly square, and exact where it can be
		if area%h == 0 {
			high = h
			break
		}
	}
	wide := area / high
	return picture.Size{Width: wide * m.cell, Height: high * m.cell}, wide*high + m.fixed
}

// plan says how many images of which size a row is sent with, and the tokens of all of
// them. A row without image tokens has none, nor has one with too few tokens for an image
// and one token of text.
func (m *Images) plan(row *trace.Request) (images int, size picture.Size, tokens int) {
	if m == nil || row.ImageTokens == nil || *row.ImageTokens < 1 {
		return 0, size, 0
	}
	images = 1
	if row.Images != nil && *row.Images > 1 && m.between >= 0 {
		images = int(*row.Images)
	}
	room := int(row.InputTokens) - 1
	for ; images > 0; images-- {
		wanted := min(int(*row.ImageTokens), room) - (images-1)*m.between
		var each int
		if size, each = m.choose(wanted / images); images*each+(images-1)*m.between <= room {
			return images, size, images*each + (images-1)*m.between
		}
	}
	return 0, size, 0
}

// Text is the part of a row that is sent as text: the tokens that its images leave, and
// their blocks.
func (m *Images) Text(row *trace.Request) *trace.Request {
	_, _, tokens := m.plan(row)
	if tokens == 0 {
		return row
	}
	text := *row
	text.InputTokens -= int32(tokens)
	if blocks := (int(text.InputTokens) + m.block - 1) / m.block; blocks < len(row.Blocks) {
		text.Blocks = row.Blocks[:blocks:blocks]
	}
	return &text
}

// Tokens is how many tokens the images of a row have, and how many images there are.
func (m *Images) Tokens(row *trace.Request) (images, tokens int) {
	images, _, tokens = m.plan(row)
	return images, tokens
}

// String says how sizes become tokens.
func (m *Images) String() string {
	several := ""
	switch {
	case m.between < 0:
		several = "; it takes one image a prompt"
	case m.between > 0:
		several = fmt.Sprintf("; each further image adds %d", m.between)
	}
	if m.cell > 0 {
		return fmt.Sprintf("the server counts a token for each %d by %d pixels of an image, and %d more, from %d to %d tokens%s",
			m.cell, m.cell, m.fixed, m.least+m.fixed, m.most+m.fixed, several)
	}
	few, many := m.measured[0].tokens, m.measured[0].tokens
	for _, s := range m.measured {
		few, many = min(few, s.tokens), max(many, s.tokens)
	}
	if few == many {
		return fmt.Sprintf("the server counts %d tokens for an image of any size%s", few, several)
	}
	return fmt.Sprintf("the server counts %d to %d tokens for an image, by no rule that is known: of %d sizes that were measured, the nearest is sent%s", few, many, len(m.measured), several)
}

// paint makes the images of a row, which depend on its last block: rows that are the same
// prompt have the same images.
func (h *HTTP) paint(id int64, row *trace.Request) {
	h.pictures = h.pictures[:0]
	images, size, _ := h.images.plan(row)
	key := ^uint64(id)
	if n := len(row.Blocks); n > 0 {
		key = row.Blocks[n-1]
	}
	for i := range images {
		if i == cap(h.pictures) {
			h.pictures = append(h.pictures, nil)
		}
		h.pictures = h.pictures[:i+1]
		h.pictures[i] = h.painter.AppendURL(h.pictures[i][:0], size, sample.Mix64(sample.Mix64(h.images.Seed)+sample.Mix64(key)*sample.Golden+uint64(i)))
	}
}

// SendImages has rows with image tokens be sent with images. The prompter makes the text
// beside them, see [Images.Text].
func (h *HTTP) SendImages(m *Images) { h.images = m }
