package trace

import "unsafe"

// PlainRows are rows that differ from one row in some columns only, column by column: most rows of a trace with block
// ids are null, or as the row before, in all others, which each step of an import would read and copy.
type PlainRows struct {
	Like         Request // all other columns
	ArrivalNS    []int64
	Session      []*int64
	Turn         []*int32
	Category     []string
	InputTokens  []int32
	OutputTokens []*int32
	Blocks       [][]uint64
}

// A PlainWriter is a [Writer] that takes such rows as well.
type PlainWriter interface {
	Writer[Request]
	WritePlain(p *PlainRows) error
}

// Len is how many rows there are.
func (p *PlainRows) Len() int { return len(p.ArrivalNS) }

// row sets r to row i, all other columns as those of like.
func (p *PlainRows) row(i int, like, r *Request) {
	*r = *like
	r.ArrivalNS, r.Session, r.Turn, r.Category = p.ArrivalNS[i], p.Session[i], p.Turn[i], p.Category[i]
	r.InputTokens, r.OutputTokens, r.Blocks = p.InputTokens[i], p.OutputTokens[i], p.Blocks[i]
}

// Append appends the first n rows to others.
func (p *PlainRows) Append(dst []Request, n int) []Request {
	for i := range n {
		dst = append(dst, Request{})
		p.row(i, &p.Like, &dst[len(dst)-1])
	}
	return dst
}

// set makes r row i of those that are like it. It is false for a row that is not.
func (p *PlainRows) set(i int, r *Request) bool {
	p.ArrivalNS[i], p.Session[i], p.Turn[i], p.Category[i] = r.ArrivalNS, r.Session, r.Turn, r.Category
	p.InputTokens[i], p.OutputTokens[i], p.Blocks[i] = r.InputTokens, r.OutputTokens, r.Blocks
	return alike(r, &p.Like)
}

// clear forgets the rows and keeps the memory for others.
func (p *PlainRows) clear() {
	p.ArrivalNS, p.Session, p.Turn, p.Category = p.ArrivalNS[:0], p.Session[:0], p.Turn[:0], p.Category[:0]
	p.InputTokens, p.OutputTokens, p.Blocks = p.InputTokens[:0], p.OutputTokens[:0], p.Blocks[:0]
}

// column is where the values of a field of rows begin, by its place in a row, and how far they are apart.
func (p *PlainRows) column(offset uintptr) (at unsafe.Pointer, stride uintptr) {
	switch offset {
	case unsafe.Offsetof(p.Like.ArrivalNS):
		return unsafe.Pointer(unsafe.SliceData(p.ArrivalNS)), unsafe.Sizeof(p.ArrivalNS[0])
	case unsafe.Offsetof(p.Like.Session):
		return unsafe.Pointer(unsafe.SliceData(p.Session)), unsafe.Sizeof(p.Session[0])
	case unsafe.Offsetof(p.Like.Turn):
		return unsafe.Pointer(unsafe.SliceData(p.Turn)), unsafe.Sizeof(p.Turn[0])
	case unsafe.Offsetof(p.Like.Category):
		return unsafe.Pointer(unsafe.SliceData(p.Category)), unsafe.Sizeof(p.Category[0])
	case unsafe.Offsetof(p.Like.InputTokens):
		return unsafe.Pointer(unsafe.SliceData(p.InputTokens)), unsafe.Sizeof(p.InputTokens[0])
	case unsafe.Offsetof(p.Like.OutputTokens):
		return unsafe.Pointer(unsafe.SliceData(p.OutputTokens)), unsafe.Sizeof(p.OutputTokens[0])
	case unsafe.Offsetof(p.Like.Blocks):
		return unsafe.Pointer(unsafe.SliceData(p.Blocks)), unsafe.Sizeof(p.Blocks[0])
	}
	return unsafe.Add(unsafe.Pointer(&p.Like), offset), 0
}

// alike reports whether rows differ in no column but those of [PlainRows]. Optional columns and lists are the same
// where they are at the same place.
func alike(a, b *Request) bool {
	return a.ThinkNS == b.ThinkNS && a.ToolNS == b.ToolNS && a.User == b.User && a.Class == b.Class &&
		a.Replica == b.Replica && a.ReasoningTokens == b.ReasoningTokens && a.CachedTokens == b.CachedTokens &&
		a.ImageTokens == b.ImageTokens && a.Images == b.Images && a.MaxTokens == b.MaxTokens &&
		a.Temperature == b.Temperature && a.Stream == b.Stream && a.TTFTNS == b.TTFTNS && a.E2ENS == b.E2ENS &&
		a.Thread == b.Thread && sameList(a.Parents, b.Parents) && sameList(a.OutputBlocks, b.OutputBlocks) &&
		a.Model == b.Model && a.Adapter == b.Adapter && a.Kind == b.Kind && a.Status == b.Status &&
		a.FinishReason == b.FinishReason && a.LengthSource == b.LengthSource && a.ReuseSource == b.ReuseSource
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// plain is a row of which others may be like, without what they do not share with it; false where it has values
// that others have at another place.
func plain(r *Request) (like Request, ok bool) {
	like = Request{Model: r.Model, Adapter: r.Adapter, Kind: r.Kind, Category: r.Category, Status: r.Status,
		FinishReason: r.FinishReason, LengthSource: r.LengthSource, ReuseSource: r.ReuseSource}
	return like, alike(r, &like) && r.Session == nil && r.Turn == nil
}
