package trace

import (
	"math"
	"reflect"
	"testing"
)

// Rows come back as they were, with every field set and with none.
func TestRowCode(t *testing.T) {
	full := Request{ArrivalNS: math.MinInt64, Session: Ptr(int64(math.MaxInt64)), Turn: Ptr(int32(-1)), Parents: []int64{0, 1 << 40},
		ThinkNS: Ptr(int64(0)), ToolNS: Ptr(int64(1)), User: Ptr(int64(2)), Model: "m", Adapter: "a", Kind: "chat",
		Class: Ptr(""), Replica: Ptr("r"), Category: Cold, InputTokens: 1, OutputTokens: Ptr[int32](math.MaxInt32),
		ReasoningTokens: Ptr(int32(3)), CachedTokens: Ptr(int32(4)), ImageTokens: Ptr(int32(5)), Images: Ptr(int32(6)),
		MaxTokens: Ptr(int32(7)), Temperature: Ptr(float32(0.7)), Stream: Ptr(true), Blocks: []uint64{0, math.MaxUint64},
		OutputBlocks: []uint64{}, Status: StatusOK, FinishReason: "stop", TTFTNS: Ptr(int64(8)), E2ENS: Ptr(int64(9)), LengthSource: LengthUsage, ReuseSource: ReuseText, Thread: Ptr(int32(10))}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("field %s is not tested", v.Type().Field(i).Name)
		}
	}
	var d rowDecoder
	for _, want := range []Request{full, {Blocks: []uint64{}}, {Blocks: []uint64{}, OutputBlocks: []uint64{}}, {Blocks: make([]uint64, 5000), Stream: Ptr(false)}, {Blocks: []uint64{}, ReuseSource: ReuseHashes}, {Blocks: []uint64{}, Thread: Ptr(int32(0))}} {
		for _, d := range []*rowDecoder{&d, {}} { // one that read rows before, and one that did not
			var got Request
			if err := d.decode(appendCanonical(nil, &want), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v came back as %+v (%v)", want, got, err)
			}
		}
	}
	// Rows that are kept stay as they were.
	var a, b Request
	one, two := Request{Blocks: []uint64{1}, User: Ptr(int64(1))}, Request{Blocks: []uint64{2}, User: Ptr(int64(2))}
	if d.decode(appendCanonical(nil, &one), &a) != nil || d.decode(appendCanonical(nil, &two), &b) != nil {
		t.Fatal("a row does not decode")
	}
	_ = append(a.Blocks, 9)
	if !reflect.DeepEqual(a, one) || !reflect.DeepEqual(b, two) {
		t.Errorf("rows share what they point to: %+v, %+v", a, b)
	}
}

// No bytes make the decoder panic or allocate beyond their size; what it takes
// for a row is one.
func FuzzRowCode(f *testing.F) {
	f.Add(appendCanonical(nil, &Request{Blocks: []uint64{1, 2}, Class: Ptr("x")}))
	f.Add([]byte{0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var d rowDecoder
		var r, again Request
		if d.decode(b, &r) != nil {
			return
		}
		if r.Temperature != nil && math.IsNaN(float64(*r.Temperature)) {
			return // a NaN is unlike itself
		}
		if err := d.decode(appendCanonical(nil, &r), &again); err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%+v came back as %+v (%v)", r, again, err)
		}
	})
}
