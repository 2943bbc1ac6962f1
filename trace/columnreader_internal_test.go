package trace

import (
	"io"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// aPage is a page of lists.
type aPage struct {
	parquet.Page
	values   []uint64
	rep, def []byte
}

func (p *aPage) Data() encoding.Values          { return encoding.Uint64Values(p.values) }
func (p *aPage) Dictionary() parquet.Dictionary { return nil }
func (p *aPage) NumValues() int64               { return int64(len(p.def)) }
func (p *aPage) NumNulls() int64                { return int64(len(p.def) - len(p.values)) }
func (p *aPage) RepetitionLevels() []byte       { return p.rep }
func (p *aPage) DefinitionLevels() []byte       { return p.def }

type somePages []*aPage

func (p *somePages) ReadPage() (parquet.Page, error) {
	if len(*p) == 0 {
		return nil, io.EOF
	}
	page := (*p)[0]
	*p = (*p)[1:]
	return page, nil
}
func (*somePages) SeekToRow(int64) error { return nil }
func (*somePages) Close() error          { return nil }

// In pages of the first version, which others write, a list may go on in the next
// page, and in the one behind that. It belongs to one row all the same, whatever
// is read at once.
func TestListsOverPages(t *testing.T) {
	pages := somePages{
		{values: []uint64{1, 2, 3}, rep: []byte{0, 0, 0, 1}, def: []byte{2, 0, 2, 2}},
		{values: []uint64{4, 5}, rep: []byte{1, 1}, def: []byte{2, 2}},
		{values: []uint64{6, 7}, rep: []byte{1, 0, 0, 0}, def: []byte{2, 1, 2, 1}},
		{values: []uint64{8}, rep: []byte{0, 0}, def: []byte{2, 1}},
	}
	want := [][]uint64{{1}, nil, {2, 3, 4, 5, 6}, {}, {7}, {}, {8}, {}}
	for batch := 1; batch <= len(want); batch++ {
		c := listField([]string{"output_blocks", "list", "element"}, words, func(r *Request) *[]uint64 { return &r.OutputBlocks }).(*leaf[Request, uint64])
		left := append(somePages{}, pages...)
		c.max, c.pages = 2, &left
		rows := make([]Request, len(want))
		for from := 0; from < len(rows); from += batch {
			if err := c.read(rows[from:min(from+batch, len(rows))]); err != nil {
				t.Fatal(batch, err)
			}
		}
		for i := range rows {
			if !reflect.DeepEqual(rows[i].OutputBlocks, want[i]) {
				t.Errorf("%d at a time: row %d is %v, not %v", batch, i, rows[i].OutputBlocks, want[i])
			}
		}
		if err := c.read(make([]Request, 1)); err == nil {
			t.Error("a row behind the last one was read")
		}
	}
	// Levels that do not fit values, or one another, are errors.
	for name, p := range map[string]*aPage{
		"few values":  {values: []uint64{1}, rep: []byte{0, 1}, def: []byte{2, 2}},
		"no row":      {values: []uint64{1}, rep: []byte{1}, def: []byte{2}},
		"null inside": {values: []uint64{1, 2}, rep: []byte{0, 1, 1}, def: []byte{2, 1, 2}},
	} {
		c := listField([]string{"output_blocks", "list", "element"}, words, func(r *Request) *[]uint64 { return &r.OutputBlocks }).(*leaf[Request, uint64])
		c.max, c.pages = 2, &somePages{p}
		if err := c.read(make([]Request, 1)); err == nil {
			t.Error(name, "was read")
		}
	}
}
