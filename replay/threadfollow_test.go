package replay

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

// A row may go on from a reply when it is as long as what came before, and begins with
// the full blocks of it; whether a block of the reply was among them is told.
func TestTurnsGoOnFromReplies(t *testing.T) {
	for i, c := range []struct {
		input, output        int
		blocks, outputBlocks []uint64
		tokens               int32
		row                  []uint64
		size                 int
		ok, seen             bool
	}{
		{10, 4, []uint64{1}, nil, 14, []uint64{1, 9}, 8, true, false},              // 14 tokens are one full block, of the prompt
		{10, 4, []uint64{1}, []uint64{2}, 14, []uint64{1, 9}, 8, true, false},      // the second block is not full
		{10, 6, []uint64{1}, []uint64{2}, 16, []uint64{1, 2}, 8, true, true},       // it is
		{10, 6, []uint64{1}, []uint64{2}, 16, []uint64{1, 3}, 8, false, false},     // and another one
		{10, 6, []uint64{1}, nil, 16, []uint64{1, 3}, 8, true, false},              // which nobody has seen
		{10, 6, []uint64{1}, []uint64{2, 7}, 30, []uint64{1, 2, 8}, 8, true, true}, // what is behind the full blocks may differ
		{10, 14, []uint64{1}, []uint64{2, 7}, 30, []uint64{1, 2, 8}, 8, false, false},
		{10, 14, []uint64{1}, []uint64{2}, 30, []uint64{1, 9, 8}, 8, true, false}, // not all of the reply was seen, so none of it is compared
		{10, 6, []uint64{1}, nil, 15, []uint64{1, 3}, 8, false, false},            // too short
		{10, 6, []uint64{1}, []uint64{2}, 16, []uint64{1}, 8, false, false},       // blocks are missing
		{10, 6, []uint64{1}, nil, 16, []uint64{2, 3}, 8, false, false},
		{30, 4, []uint64{1}, []uint64{2}, 40, []uint64{1, 9}, 8, true, false}, // blocks that occur once may be left out
		{30, 4, []uint64{1}, []uint64{2}, 40, []uint64{3, 9}, 8, false, false},
		{10, 6, []uint64{1}, []uint64{2}, 16, []uint64{7, 7}, 0, true, false},
		{10, 6, []uint64{1}, []uint64{2}, 15, []uint64{1, 2}, 0, false, false},
	} {
		th := &thread{input: c.input, output: c.output, blocks: c.blocks, outputBlocks: c.outputBlocks}
		ok, seen := th.precedes(&trace.Request{InputTokens: c.tokens, Blocks: c.row}, c.size)
		if ok != c.ok || ok && seen != c.seen {
			t.Errorf("%d: %v, %v; want %v, %v", i, ok, seen, c.ok, c.seen)
		}
	}
}

// aThread is a prompt of so many tokens and its reply of four bytes, which are two
// tokens.
func aThread(id int64, input int) *thread {
	return &thread{id: id, input: input, output: 2, total: input + 1, own: &segment{text: []byte("abc")}, reply: &segment{text: []byte("defg")}, tokens: 2, sure: true, same: 1, pending: 1, size: 7}
}

// Which parent a turn goes on from, and what is counted of it.
func TestTurnsChooseAParent(t *testing.T) {
	gone := aThread(3, 5)
	gone.own, gone.reply = nil, nil
	waits := aThread(4, 5)
	waits.reply = nil
	recoded := aThread(5, 9)
	recoded.sure, recoded.tokens, recoded.blocks = false, 7, []uint64{1}
	long := aThread(6, 90)
	seen := aThread(7, 8)
	seen.output, seen.blocks, seen.outputBlocks = 8, []uint64{1}, []uint64{2}
	all := map[int64]*thread{1: aThread(1, 5), 2: aThread(2, 6), 3: gone, 4: waits, 5: recoded, 6: long, 7: seen}
	for name, c := range map[string]struct {
		parents []int64
		before  int64
		want    result.Threads
	}{
		"none":                     {nil, 0, result.Threads{}},
		"itself and later ones":    {[]int64{20, 21, -1}, 0, result.Threads{}},
		"one":                      {[]int64{1}, 1, result.Threads{Threaded: 1, Assumed: 1, ReplyTokens: 2}},
		"the longest":              {[]int64{2, 1, 2}, 2, result.Threads{Threaded: 1, Joined: 1, Assumed: 1, ReplyTokens: 2}},
		"one that was recoded":     {[]int64{1, 5, 6}, 5, result.Threads{Threaded: 1, Joined: 2, Assumed: 1, Recoded: 1, ReplyTokens: 7}},
		"one with blocks":          {[]int64{7}, 7, result.Threads{Threaded: 1, ReplyTokens: 2}},
		"no room":                  {[]int64{3, 6}, 0, result.Threads{NoRoom: 1}},
		"no room, and no reply":    {[]int64{3, 4}, 0, result.Threads{NoRoom: 1}},
		"no reply":                 {[]int64{4}, 0, result.Threads{NoReply: 1}},
		"no such thread":           {[]int64{9}, 0, result.Threads{NoReply: 1}},
		"longer than the turn":     {[]int64{6}, 0, result.Threads{Apart: 1}},
		"another beside no reply":  {[]int64{4, 1}, 1, result.Threads{Threaded: 1, Joined: 1, Assumed: 1, ReplyTokens: 2}},
		"the longest is the first": {[]int64{2, 1}, 2, result.Threads{Threaded: 1, Joined: 1, Assumed: 1, ReplyTokens: 2}},
	} {
		th := &threads{opt: &Threading{BlockSize: 8}, rows: all}
		th.startTurn(20, &trace.Request{InputTokens: 30, Blocks: []uint64{1, 2, 3, 4}, Parents: c.parents})
		var before int64
		if th.current.before != nil {
			before = th.current.before.id
		}
		if before != c.before || th.current.stats != c.want {
			t.Errorf("%s: from %d, %+v; want %d, %+v", name, before, th.current.stats, c.before, c.want)
		}
	}
}

// The part of a prompt that is the turn's own makes it as long as recorded, and no
// shorter than asked for.
func TestOwnTokensOfATurn(t *testing.T) {
	for _, c := range []struct {
		input, least, want int
		longer             int64
		sure               bool
		total, seen        int
	}{
		{30, 0, 17, 0, true, 30, 9}, {13, 0, 0, 0, true, 13, 9}, {12, 0, 0, 1, true, 13, 9}, {12, 1, 1, 2, false, 14, 7}, {14, 1, 1, 0, false, 14, 7},
	} {
		b := aThread(1, 7) // 8 tokens by the server's count, and 2 of the reply
		b.followers = new(followers)
		if b.sure = c.sure; !c.sure {
			b.same = -1
		}
		th := &threads{opt: &Threading{BlockSize: 8, TurnOverhead: 3, After: 2}}
		th.current = turn{row: &trace.Request{InputTokens: int32(c.input)}, before: b}
		own := th.ownTokens(c.least)
		want := threadPrefix{seen: c.seen, whole: 10, after: 2, size: 8, aligned: c.longer == 0, followers: b.followers}
		u := th.current
		if own != c.want || u.total != c.total || u.stats.LongerBy != c.longer || (u.stats.Longer == 1) != (c.longer > 0) || !reflect.DeepEqual(*u.prefix, want) {
			t.Errorf("%+v: %d of its own, %+v, %+v; want %+v", c, own, u.stats, *u.prefix, want)
		}
	}
}

// What is kept is counted in bytes, up to the limit, and is freed when nothing follows.
func TestThreadsCountTheirBytes(t *testing.T) {
	rows := []trace.Request{{}, {Parents: []int64{0}}, {Parents: []int64{0}}, {Parents: []int64{1}}}
	row := &trace.Request{InputTokens: 20, OutputTokens: trace.Ptr[int32](3), Blocks: []uint64{1, 2, 3}, OutputBlocks: []uint64{4}}
	const first = 5 + 8*3 + 256 // five bytes of text, two full blocks and one of the output
	fresh := func(limit int64) *threads {
		th := newThreads(&Threading{BlockSize: 8, limit: limit}, lineageOf(t, rows).following, nil)
		th.startTurn(0, row)
		th.current.own, th.current.seam = &segment{text: []byte("hello")}, "lo"
		if prefix, reply := th.finishTurn(nil); prefix != nil || reply.seam != "lo" {
			t.Errorf("a prompt of its own knows %+v, and its reply %+v", prefix, reply)
		}
		return th
	}
	th := fresh(first + 4)
	kept := th.rows[0]
	if th.bytes != first || kept.pending != 2 || kept.followers == nil || !slices.Equal(kept.blocks, []uint64{1, 2}) || !slices.Equal(kept.outputBlocks, []uint64{4}) || kept.input != 20 || kept.output != 3 {
		t.Errorf("%d bytes are kept, want %d: %+v", th.bytes, first, kept)
	}
	th.setReply(0, &threadReply{found: &segment{ids: []uint32{7}}, tokens: 1, sure: true, input: 25})
	if th.bytes != first+4 || th.stats.PeakBytes != first+4 || kept.tokens != 1 || !kept.sure || kept.total != 25 || kept.size != first+4 {
		t.Errorf("with a reply %d bytes are kept: %+v", th.bytes, kept)
	}
	th.releaseParents(1, &rows[1])
	if th.bytes != first+4 || len(th.rows) != 1 {
		t.Errorf("one turn is to come, and %d bytes are kept", th.bytes)
	}
	th.releaseParents(2, &rows[2])
	if th.bytes != 0 || len(th.rows) != 0 {
		t.Errorf("no turn is to come, and %d bytes are kept", th.bytes)
	}
	if th = fresh(first - 1); th.bytes != 0 || th.rows[0].own != nil {
		t.Errorf("without room %d bytes are kept", th.bytes)
	}
	th = fresh(first + 3)
	for _, a := range []*threadReply{{}, {found: &segment{text: []byte("four")}}} {
		th.setReply(0, a)
		th.setReply(9, a)
	}
	if th.bytes != 0 || th.rows[0].own != nil || th.rows[0].size != 0 || th.stats.PeakBytes != first {
		t.Errorf("without room for a reply %d bytes are kept: %+v", th.bytes, th.rows[0])
	}
	// A prompt that could not be made leaves nothing, and is not counted.
	th = newThreads(&Threading{}, lineageOf(t, rows).following, nil)
	if th.limit != 512<<20 {
		t.Errorf("the limit is %d bytes", th.limit)
	}
	th.rows[0] = aThread(0, 5)
	th.startTurn(1, &trace.Request{InputTokens: 90, Parents: []int64{0}})
	th.current.own, th.current.prefix = &segment{}, &threadPrefix{}
	if prefix, reply := th.finishTurn(errors.New("no prompt")); prefix != nil || reply != nil || th.stats != (result.Threads{}) || len(th.rows) != 0 {
		t.Errorf("what could not be made leaves %+v, %+v, %+v", prefix, reply, th.stats)
	}
}

// A turn of a turn holds on to the first for as long as something may follow it.
func TestThreadsOfThreadsAreKept(t *testing.T) {
	rows := []trace.Request{{}, {Parents: []int64{0}}, {Parents: []int64{1}}}
	th := newThreads(&Threading{}, lineageOf(t, rows).following, nil)
	th.rows[0] = aThread(0, 5)
	th.bytes = 7
	th.startTurn(1, &trace.Request{InputTokens: 90, OutputTokens: trace.Ptr[int32](1), Parents: []int64{0}})
	th.current.own, th.current.total = &segment{text: []byte("xy")}, 33
	th.finishTurn(nil)
	second := th.rows[1]
	if len(th.rows) != 2 || th.rows[0].extended != 1 || th.rows[0].pending != 0 || second.before != th.rows[0] || second.total != 33 || second.followers != nil || th.bytes != 7+258 {
		t.Errorf("%d threads of %d bytes are kept: %+v", len(th.rows), th.bytes, second)
	}
	if th.stats != (result.Threads{Threaded: 1, Assumed: 1, ReplyTokens: 2, PeakBytes: 265}) {
		t.Errorf("counted are %+v", th.stats)
	}
	if chain := second.chain(); len(chain) != 2 || chain[0].id != 0 || chain[1].id != 1 {
		t.Errorf("the chain is %+v", chain)
	}
	th.releaseParents(2, &rows[2])
	if len(th.rows) != 0 || th.bytes != 0 {
		t.Errorf("%d threads of %d bytes are kept at the end", len(th.rows), th.bytes)
	}
}

// What is known of a prompt that goes on: what was sent and answered before, and what
// other turns from the same reply have sent.
func TestKnownOfFollowers(t *testing.T) {
	row := func(tokens int32, blocks ...uint64) *trace.Request {
		return &trace.Request{InputTokens: tokens, Blocks: blocks}
	}
	alone := &threadPrefix{seen: 10, whole: 12, size: 4, aligned: true}
	if got := alone.known(row(30, 1, 2, 3, 4, 5)); got != 10 {
		t.Errorf("alone, %d tokens are known", got)
	}
	f := new(followers)
	for i, c := range []struct {
		p    threadPrefix
		row  *trace.Request
		want int32
	}{
		{threadPrefix{aligned: true}, row(30, 1, 2, 3, 4, 5), 10},
		{threadPrefix{aligned: true}, row(30, 1, 2, 3, 9), 12},        // all of the reply; three blocks are no more
		{threadPrefix{aligned: true}, row(30, 1, 2, 3, 4, 8), 16},     // four blocks
		{threadPrefix{aligned: false}, row(30, 1, 2, 3, 4, 5), 12},    // its own part begins elsewhere
		{threadPrefix{aligned: true}, row(17, 1, 2, 3, 4, 8), 15},     // but for the template's tokens after it
		{threadPrefix{aligned: true}, row(30, 1, 2, 3, 4, 5, 6), 20},  // five
		{threadPrefix{aligned: true}, row(30, 1, 2, 3, 4, 5, 6), 24},  // the same again
		{threadPrefix{aligned: true, size: -4}, row(30, 1, 2, 3), 12}, // blocks tell nothing
	} {
		p := c.p
		p.seen, p.whole, p.after, p.followers = 10, 12, 2, f
		p.size += 4
		if got := p.known(c.row); got != c.want {
			t.Errorf("%d: %d tokens are known, want %d", i, got, c.want)
		}
	}
	if !f.any || len(f.blocks) != 6 {
		t.Errorf("%d followers have told their blocks", len(f.blocks))
	}
}

// The reply is joined to the last word of the prompt, or to the last 256 bytes.
func TestSeamOfAPrompt(t *testing.T) {
	rows := []trace.Request{{InputTokens: 40}, {Parents: []int64{0}}}
	long := slices.Repeat([]byte("x"), 300)
	for _, c := range []struct{ end, want string }{{"one two", " two"}, {"one two ", " "}, {"one", "one"}, {"", ""}, {string(long), string(long[:256])}, {" " + string(long[:255]), " " + string(long[:255])}, {" " + string(long[:256]), string(long[:256])}} {
		th := newThreads(&Threading{}, lineageOf(t, rows).following, nil)
		th.startTurn(0, &rows[0])
		text := []byte("own")
		th.keepOwn(text, nil, []byte(c.end))
		text[0] = 'X'
		u := th.current
		if u.seam != c.want || string(u.own.text) != "own" || u.ids || u.total != 40 {
			t.Errorf("%q: the seam is %q, want %q: %+v", c.end, u.seam, c.want, u)
		}
		th.keepOwn(nil, []uint32{4}, nil)
		if !th.current.ids || !slices.Equal(th.current.own.ids, []uint32{4}) {
			t.Errorf("of ids: %+v", th.current)
		}
		th.startTurn(1, &rows[1])
		if th.keepOwn(text, nil, nil); th.current.own != nil {
			t.Error("a prompt that nothing follows is kept")
		}
	}
}
