package replay

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

const threadBlock = 8

// A threadWorld makes rows out of conversations, so that their blocks are what
// they say: ids of all that leads up to the end of a block.
type threadWorld struct {
	rng   *rand.Rand
	ids   map[string]uint64
	words int
	said  [][]int // by row: the recorded prompt
	made  [][]int // and output
	rows  []trace.Request
	seen  float64 // share of rows whose output was seen
}

func (w *threadWorld) say(n int) []int {
	out := make([]int, n)
	for i := range out {
		w.words++
		out[i] = w.words
	}
	return out
}

func (w *threadWorld) chain(words []int) []uint64 {
	var ids []uint64
	for end := 0; end < len(words); {
		end = min(end+threadBlock, len(words))
		key := fmt.Sprint(words[:end])
		if _, ok := w.ids[key]; !ok {
			w.ids[key] = uint64(len(w.ids))
		}
		ids = append(ids, w.ids[key])
	}
	return ids
}

// add makes a row that says what is given, and is answered by new words.
func (w *threadWorld) add(prompt []int, parents ...int64) {
	output := w.say(1 + w.rng.IntN(20))
	at := int64(len(w.rows)) * int64(w.rng.IntN(3)) * 1e8
	if n := len(w.rows); n > 0 {
		at = max(at, w.rows[n-1].ArrivalNS)
	}
	r := trace.Request{ArrivalNS: at, InputTokens: int32(len(prompt)), OutputTokens: trace.Ptr(int32(len(output))), Blocks: w.chain(prompt), Parents: parents}
	if w.rng.Float64() < w.seen {
		r.OutputBlocks = w.chain(append(slices.Clone(prompt), output...))[len(prompt)/threadBlock:]
	}
	if len(parents) > 0 && w.rng.IntN(4) > 0 {
		r.ThinkNS = trace.Ptr(int64(w.rng.IntN(3)) * 4e8)
	}
	w.said, w.made, w.rows = append(w.said, prompt), append(w.made, output), append(w.rows, r)
}

// world makes n rows: sessions that go on, branch, join, repeat each other and
// part.
func world(rng *rand.Rand, n int) *threadWorld {
	w := &threadWorld{rng: rng, ids: map[string]uint64{}, seen: float64(rng.IntN(3)) / 2}
	for len(w.rows) < n {
		if len(w.rows) == 0 || rng.IntN(5) == 0 {
			w.add(w.say(1 + rng.IntN(40)))
			continue
		}
		p := max(0, len(w.rows)-1-rng.IntN(12))
		whole := append(slices.Clone(w.said[p]), w.made[p]...)
		switch rng.IntN(10) {
		case 0: // parts from what was said
			w.add(append(slices.Clone(whole[:rng.IntN(len(whole))]), w.say(1+rng.IntN(60))...), int64(p))
		case 1: // the same once more, without a parent
			w.add(append(whole, w.say(3)...))
		case 2: // joins
			w.add(append(whole, w.say(rng.IntN(30))...), int64(rng.IntN(len(w.rows))), int64(p))
		case 3: // says the same as its sibling, and more
			if s := len(w.rows) - 1; slices.Contains(w.rows[s].Parents, int64(p)) {
				w.add(append(slices.Clone(w.said[s]), w.say(rng.IntN(9))...), int64(p))
				continue
			}
			fallthrough
		default:
			w.add(append(whole, w.say(rng.IntN(30))...), int64(p))
		}
	}
	return w
}

// spelling is a Continuer whose words name their block and their place in it.
type spelling struct{ overhead int }

func (p spelling) words(row *trace.Request) []string {
	var out []string
	for i := range int(row.InputTokens) {
		out = append(out, fmt.Sprintf("b%dp%d", row.Blocks[i/threadBlock], i%threadBlock))
	}
	n := min(threadBlock, len(out))
	return slices.Delete(out, max(n-p.overhead, min(n, 1)), n)
}

func (p spelling) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	return append(buf, strings.Join(p.words(row), " ")...), nil
}

func (p spelling) Continue(row *trace.Request, n int, bare bool, buf []byte) ([]byte, error) {
	words := spelling{}.words(row)
	text := strings.Join(words[len(words)-n:], " ")
	if !bare && n > 0 {
		text = " " + text
	}
	return append(buf, text...), nil
}

func (p spelling) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	return wordIDs(buf, strings.Join(p.words(row), " ")), nil
}

func (p spelling) ContinueTokens(row *trace.Request, n int, buf []uint32) ([]uint32, error) {
	words := spelling{}.words(row)
	return wordIDs(buf, strings.Join(words[len(words)-n:], " ")), nil
}

var wordTable struct {
	sync.Mutex
	ids map[string]uint32
}

// wordIDs is a tokenizer: every word is a token.
func wordIDs(dst []uint32, text string) []uint32 {
	wordTable.Lock()
	defer wordTable.Unlock()
	if wordTable.ids == nil {
		wordTable.ids = map[string]uint32{}
	}
	for _, word := range strings.Fields(text) {
		id, ok := wordTable.ids[word]
		if !ok {
			id = uint32(len(wordTable.ids))
			wordTable.ids[word] = id
		}
		dst = append(dst, id)
	}
	return dst
}

// An echoing is a server that answers each row with words of its own and keeps
// what it has computed.
type echoing struct {
	resulttest.Endpoint
	api      string // text, ids or chat
	replyIDs bool
	counts   bool                         // tells usage
	length   func(row *trace.Request) int // of replies
	fails    func(row int64) bool

	mu      sync.Mutex
	threads *threads
	prompts map[int64][]uint32 // by row
	replies map[int64][]uint32
	order   map[int64]int // of sending
}

type echoCall struct {
	prompt []uint32
	input  int
	reply  int
}

func (echoCall) Size() int { return 1 }

const echoOverhead, echoTurn = 3, 5 // of the chat's template

func (e *echoing) Prepare(_ int64, _ int32, row *trace.Request, p result.Prompter) (result.Call, error) {
	if t, ok := p.(*threads); ok {
		e.threads = t
	}
	c := echoCall{reply: e.length(row)}
	switch e.api {
	case "text":
		text, err := p.Prompt(row, nil)
		c.prompt, c.input = wordIDs(nil, string(text)), len(strings.Fields(string(text)))
		return c, err
	case "ids":
		ids, err := p.Tokens(row, nil)
		c.prompt, c.input = ids, len(ids)
		return c, err
	}
	text, ends, err := p.(result.Conversation).Messages(row, nil, nil)
	from := 0
	for i, end := range ends {
		// The template's tokens stand around each message.
		c.prompt = append(c.prompt, wordIDs(nil, string(text[from:end]))...)
		if i%2 == 0 {
			c.input += echoTurn
		}
		from = end
	}
	c.input += len(c.prompt) + echoOverhead - echoTurn
	return c, err
}

func (e *echoing) Fire(_ context.Context, s result.Shot, r *result.Result) {
	c := s.Call.(echoCall)
	e.mu.Lock()
	e.prompts[r.RowID] = c.prompt
	e.mu.Unlock()
	r.SentNS = trace.Ptr(int64(time.Since(s.Start)))
	time.Sleep(time.Duration(1+r.RowID%7) * 100 * time.Millisecond)
	if e.fails != nil && e.fails(r.RowID) {
		r.Error = "server"
	}
	var text []string
	for i := range c.reply {
		text = append(text, fmt.Sprintf("r%dw%d", r.RowID, i))
	}
	reply := strings.Join(text, " ")
	if c.reply > 0 {
		reply = " " + reply
	}
	ids := wordIDs(nil, reply)
	if e.counts {
		r.Input, r.Output, r.OutputFrom = trace.Ptr(int32(c.input)), trace.Ptr(int32(len(ids))), result.FromUsage
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies[r.RowID] = ids
	if s.Reply != nil {
		if !e.replyIDs {
			ids = nil
		}
		s.Reply.Set([]byte(reply), ids, nil)
	}
}

// blocksKnown is what [Options.Known] is in a run.
func blocksKnown() func(int64, *trace.Request) int32 {
	known := map[uint64]bool{}
	return func(_ int64, r *trace.Request) int32 {
		n := 0
		for n < len(r.Blocks) && known[r.Blocks[n]] {
			n++
		}
		for _, b := range r.Blocks {
			known[b] = true
		}
		return min(int32(n*threadBlock), r.InputTokens)
	}
}

// play replays a world and checks what holds of every run with threads.
func (e *echoing) play(t *testing.T, w *threadWorld, th *Threading) (result.Run, []result.Result) {
	t.Helper()
	e.prompts, e.replies, e.order = map[int64][]uint32{}, map[int64][]uint32{}, map[int64]int{}
	for i := range w.rows {
		w.rows[i].User = trace.Ptr(int64(i))
	}
	whole := th.Whole
	th.Whole = func(r *trace.Request) int32 {
		e.order[*r.User] = len(e.order)
		if whole != nil {
			return whole(r)
		}
		return 0
	}
	if e.length == nil {
		e.length = func(row *trace.Request) int { return int(*row.OutputTokens) }
	}
	prompter := spelling{}
	th.Encode, th.Word = wordIDs, "word"
	if e.api == "chat" {
		prompter.overhead, th.TurnOverhead = echoOverhead, echoTurn
	}
	out := new(trace.SliceWriter[result.Result])
	r := Runner{Prompter: prompter, Endpoint: e, Pacer: sleeperPacer, Options: Options{Causal: lineageOf(t, w.rows), Thread: th, Known: blocksKnown()}}
	run, err := r.Run(t.Context(), reader(w.rows), out)
	if err != nil || len(out.Rows)+int(run.Skipped+run.Excluded) != len(w.rows) || run.Thread == nil {
		t.Fatalf("%v, %d of %d rows, run %+v", err, len(out.Rows), len(w.rows), run)
	}
	slices.SortFunc(out.Rows, func(a, b result.Result) int { return int(a.RowID - b.RowID) })
	if e.threads.bytes != 0 || len(e.threads.rows) != 0 {
		t.Errorf("%d bytes in %d threads are kept at the end", e.threads.bytes, len(e.threads.rows))
	}
	return run, out.Rows
}

var sleeperPacer = sleeper

// goesOn is the oracle: the parent whose prompt and reply a row begins with.
func (w *threadWorld) goesOn(i int) (parent int, ok bool) {
	row := &w.rows[i]
	parent = -1
	for _, p := range row.Parents {
		r := &w.rows[p]
		begin := append(slices.Clone(w.said[p]), w.made[p]...)
		n := len(w.said[p]) / threadBlock * threadBlock
		if r.OutputBlocks != nil {
			n = len(begin) / threadBlock * threadBlock
		}
		if len(w.said[i]) >= len(begin) && slices.Equal(w.said[i][:n], begin[:n]) && (parent < 0 || r.InputTokens > w.rows[parent].InputTokens) {
			parent = int(p)
		}
	}
	return parent, parent >= 0
}

// Over random sessions, and every way to send them: a turn's prompt begins with
// what was sent for the turn before and with the reply to that, it is as long as
// recorded, and what is known of it is what the server has computed.
func TestThreadsHoldReplies(t *testing.T) {
	var threaded, joined, shared, other int64
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := world(rng, 60)
			e := &echoing{api: []string{"text", "ids", "chat"}[seed%3], counts: seed%2 == 0, replyIDs: seed%5 == 0}
			run, results := e.play(t, w, &Threading{BlockSize: threadBlock})
			var want result.Threads
			for i := range w.rows {
				row := &w.rows[i]
				got := e.prompts[int64(i)]
				length := int(row.InputTokens)
				p, goes := w.goesOn(i)
				before := []uint32{}
				if goes {
					before = append(slices.Clone(e.prompts[int64(p)]), e.replies[int64(p)]...)
					want.Threaded++
					want.Joined += int64(len(set(row.Parents)) - 1)
				} else if plain, _ := (spelling{overhead: e.overhead()}).Tokens(row, nil); !slices.Equal(got, plain) {
					t.Errorf("seed %d: row %d is no thread and has a prompt of its own", seed, i)
				}
				if !goes && len(row.Parents) > 0 {
					want.Apart++
				}
				if len(got) < len(before) || !slices.Equal(got[:len(before)], before) {
					t.Errorf("seed %d, %s: row %d does not begin with the prompt of row %d and its reply", seed, e.api, i, p)
				}
				if e.api != "chat" && len(got) != length {
					t.Errorf("seed %d, %s: row %d has %d tokens, want %d", seed, e.api, i, len(got), length)
				}
				has := e.has(results, i)
				if known := int(*results[i].Known); e.api != "chat" && known != has {
					t.Errorf("seed %d, %s: row %d: %d tokens are known, and the server has %d of %d", seed, e.api, i, known, has, length)
				}
				if goes && has > len(before) {
					shared++
				}
			}
			got := *run.Thread
			if got.Threaded != want.Threaded || got.Joined != want.Joined || got.Apart != want.Apart || got.NoReply+got.NoRoom+got.Recoded != 0 || got.PeakBytes == 0 {
				t.Errorf("seed %d: %+v, want %+v", seed, got, want)
			}
			if e.api != "chat" && got.Longer != 0 {
				t.Errorf("seed %d: %d prompts are longer than recorded", seed, got.Longer)
			}
			threaded, joined, other = threaded+got.Threaded, joined+got.Joined, other+got.Apart
		})
	}
	if threaded < 500 || joined == 0 || shared == 0 || other == 0 {
		t.Errorf("the sessions are too tame: %d threaded, %d joined, %d share more, %d apart", threaded, joined, shared, other)
	}
}

// has is how many leading tokens of a row's prompt a server has computed by the
// time it is sent: of prompts that were sent before, and of replies that were
// over, but for their last token.
func (e *echoing) has(results []result.Result, i int) (tokens int) {
	prompt, at := e.prompts[int64(i)], &results[i]
	for j := range results {
		r := &results[j]
		if e.order[int64(j)] >= e.order[int64(i)] {
			continue
		}
		seen := e.prompts[int64(j)]
		if reply := e.replies[int64(j)]; *r.DoneNS <= at.DueNS && len(reply) > 0 {
			seen = append(slices.Clone(seen), reply[:len(reply)-1]...)
		}
		n := 0
		for n < len(seen) && n < len(prompt) && seen[n] == prompt[n] {
			n++
		}
		tokens = max(tokens, n)
	}
	return tokens
}

func (e *echoing) overhead() int {
	if e.api == "chat" {
		return echoOverhead
	}
	return 0
}

func set(ids []int64) []int64 {
	ids = slices.Sorted(slices.Values(ids))
	return slices.Compact(ids)
}

// A chat's prompt has the tokens asked for by the server's own count, but where
// the template leaves no room for a user's word.
func TestThreadedChatsAreAsLong(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := world(rand.New(rand.NewPCG(seed, 2)), 40)
			e := &echoing{api: "chat", counts: true}
			run, results := e.play(t, w, &Threading{BlockSize: threadBlock})
			var longer, by int64
			for i := range results {
				switch d := int64(*results[i].Input - results[i].WantInput); {
				case d > 0 && len(w.rows[i].Parents) > 0:
					longer, by = longer+1, by+d
				case d < 0:
					t.Errorf("seed %d: row %d has %d tokens of %d", seed, i, *results[i].Input, results[i].WantInput)
				}
			}
			// Prompts of three tokens or fewer are longer whatever becomes of threads.
			if got := run.Thread; got.Longer > longer || got.LongerBy > by || longer == 0 {
				t.Errorf("seed %d: %d prompts are longer by %d, and told are %+v", seed, longer, by, got)
			}
		})
	}
}

// Replies of other lengths than recorded are made up for by what follows them,
// as far as that goes.
func TestThreadsMakeUpForLengths(t *testing.T) {
	var none int64
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			w := world(rng, 40)
			e := &echoing{api: []string{"text", "ids"}[seed%2], counts: true, length: func(row *trace.Request) int { return int(row.InputTokens+3**row.OutputTokens) % 25 }}
			run, results := e.play(t, w, &Threading{BlockSize: threadBlock})
			var longer, by int64
			for i, r := range results {
				if d := int64(len(e.prompts[int64(i)])) - int64(r.WantInput); d > 0 {
					longer, by = longer+1, by+d
				} else if d < 0 {
					t.Errorf("row %d is too short by %d", i, -d)
				}
			}
			if got := run.Thread; got.Longer != longer || got.LongerBy != by {
				t.Errorf("seed %d: %d longer by %d, and told are %+v", seed, longer, by, got)
			}
			none += run.Thread.NoReply
		})
	}
	if none == 0 {
		t.Error("no reply was empty")
	}
}

// Without room for a conversation its turns have the prompts that they have
// without threads, and it is counted; nothing stays in memory.
func TestThreadsWithoutRoom(t *testing.T) {
	var fell, stayed int64
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := world(rand.New(rand.NewPCG(seed, 4)), 60)
			e := &echoing{api: "text", counts: true}
			run, _ := e.play(t, w, &Threading{BlockSize: threadBlock, limit: 4 << 10})
			fell, stayed = fell+run.Thread.NoRoom, stayed+run.Thread.Threaded
			if run.Thread.PeakBytes > 4<<10 {
				t.Errorf("%d bytes were kept", run.Thread.PeakBytes)
			}
			for i := range w.rows {
				if n := len(e.prompts[int64(i)]); n != int(w.rows[i].InputTokens) {
					t.Errorf("row %d has %d tokens", i, n)
				}
			}
		})
	}
	if fell == 0 || stayed == 0 {
		t.Errorf("%d turns had no room, %d did", fell, stayed)
	}
}

// Sessions that end early, by failures here or rows that failed in the source,
// leave nothing in memory; what rows without a reply do not find is counted.
func TestThreadsOfFailedSessions(t *testing.T) {
	var skipped, none int64
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := world(rand.New(rand.NewPCG(seed, 5)), 60)
			for i := range w.rows {
				if i%9 == 4 {
					w.rows[i].Status = trace.StatusFailed
				}
			}
			e := &echoing{api: "text", counts: true, fails: func(row int64) bool { return row%11 == 3 }}
			var lost int64
			run, results := e.play(t, w, &Threading{BlockSize: threadBlock, Whole: func(r *trace.Request) int32 { return r.InputTokens }})
			for _, r := range results {
				if _, goes := w.goesOn(int(r.RowID)); !goes {
					lost += int64(r.WantInput - *r.Known)
				}
			}
			if got := run.Thread; got.NoReply == 0 && got.LostTokens != lost || got.LostTokens < lost {
				t.Errorf("seed %d: %d tokens are lost, want %d: %+v", seed, got.LostTokens, lost, got)
			}
			skipped, none = skipped+run.Skipped, none+run.Thread.NoReply
		})
	}
	if skipped == 0 || none == 0 {
		t.Errorf("%d turns were skipped, %d found no reply", skipped, none)
	}
}

// Where blocks tell nothing, lengths decide, and that is said.
func TestThreadsByLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := chain(time.Second, time.Second, time.Second)
		for i, n := range []int32{10, 20, 24, 60} {
			rows[i].InputTokens, rows[i].Blocks = n, make([]uint64, (n+threadBlock-1)/threadBlock)
			for b := range rows[i].Blocks {
				rows[i].Blocks[b] = uint64(100*i + b)
			}
		}
		e := &echoing{api: "text", counts: true}
		w := &threadWorld{rows: rows}
		run, _ := e.play(t, w, &Threading{}) // 20 >= 10+7, 24 < 20+7, 60 >= 24+7
		if got := run.Thread; got.Threaded != 2 || got.Assumed != 2 || got.Apart != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A reply that merges with the words before it, or that is not as many tokens as
// the server says, is repeated, and its reuse is not expected.
func TestRecodedReplies(t *testing.T) {
	pairs := func(dst []uint32, text string) []uint32 { // two letters a token
		for ; len(text) > 0; text = text[min(2, len(text)):] {
			dst = append(dst, uint32(text[0])<<8|uint32(text[min(1, len(text)-1)]))
		}
		return dst
	}
	for name, c := range map[string]struct {
		seam, text string
		generated  int32
		finish     string
		tokens     int
		sure       bool
	}{
		"as generated":       {" x", "abcd", 2, "length", 2, true},
		"merges":             {" xy", "abc", 2, "length", 1, false},
		"other tokens":       {" x", "abcd", 4, "length", 2, false},
		"a stop has no text": {" x", "abcd", 3, "stop", 2, true},
		"not counted":        {" x", "abcd", -1, "", 2, true},
	} {
		a := &threadReply{seam: c.seam}
		a.reply.Set([]byte(c.text), nil, nil)
		r := &result.Result{FinishReason: c.finish}
		if c.generated >= 0 {
			r.Output, r.OutputFrom = &c.generated, result.FromUsage
		}
		if a.findTokens(&Threading{Encode: pairs}, r); a.tokens != c.tokens || a.sure != c.sure || string(a.found.text) != c.text {
			t.Errorf("%s: %d tokens, sure %v", name, a.tokens, a.sure)
		}
		b := &threadReply{seam: c.seam, ids: true}
		b.reply.Set([]byte(c.text), []uint32{7, 8}, nil)
		if b.findTokens(&Threading{Encode: pairs}, r); c.generated == 2 && !slices.Equal(b.found.ids, []uint32{7, 8}) || !b.sure && name != "other tokens" || len(b.found.ids) != b.tokens {
			t.Errorf("%s: ids %v, sure %v", name, b.found.ids, b.sure)
		}
	}
	a := &threadReply{}
	a.reply.Set([]byte("half"), nil, nil)
	if a.findTokens(&Threading{Encode: pairs}, &result.Result{Error: "timeout"}); a.found != nil {
		t.Error("the reply of a failed request is kept")
	}
}

// A reply shows itself to no formatter or encoder.
func TestRepliesAreWithheld(t *testing.T) {
	var r result.Reply
	r.Set([]byte("canary"), []uint32{99991}, nil)
	fl := flight{reply: &threadReply{reply: r, seam: "canary"}}
	text, _ := r.MarshalText()
	doc, _ := r.MarshalJSON()
	raw, _ := r.MarshalBinary()
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %v %+v", r, r, r, r, &r, r, fl.reply.reply, maps.All(map[string]result.Reply{"a": r})) +
		fmt.Sprintf("%+v", struct{ r result.Reply }{r}) + string(text) + string(doc) + string(raw) + r.LogValue().String() + r.String()
	if strings.Contains(shown, "canary") || strings.Contains(shown, "99991") {
		t.Errorf("%s", shown)
	}
}

// Threads need a run that waits, and a prompter that can go on.
func TestThreadsAreRefused(t *testing.T) {
	rows := chain(time.Second)
	th := &Threading{BlockSize: threadBlock, Encode: wordIDs}
	for want, r := range map[error]Runner{
		errThreadOpen:  {Prompter: spelling{}, Endpoint: &echoing{}, Options: Options{Thread: th}},
		errNoContinuer: {Prompter: struct{ result.Prompter }{}, Endpoint: &echoing{}, Options: Options{Thread: th, Causal: lineageOf(t, rows)}},
	} {
		if _, err := r.Run(t.Context(), reader(rows), new(trace.SliceWriter[result.Result])); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Of a reply that encodes to other tokens, those before the first other one are known by the
// pieces in which it came, and not the last one that was generated.
func TestSameTokensOfReplies(t *testing.T) {
	pairs := &Threading{
		Encode: func(dst []uint32, text string) []uint32 { // two letters a token, if there are two
			for ; len(text) > 1; text = text[2:] {
				dst = append(dst, uint32(text[0])<<8|uint32(text[1]))
			}
			for _, c := range []byte(text) {
				dst = append(dst, uint32(c))
			}
			return dst
		},
		Decode: func(dst []byte, ids []uint32) ([]byte, error) {
			for _, id := range ids {
				if id > 255 {
					dst = append(dst, byte(id>>8))
				}
				dst = append(dst, byte(id))
			}
			return dst, nil
		},
	}
	for name, c := range map[string]struct {
		ends      []int32
		generated int32
		same      int
		sure      bool
	}{
		"as generated":      {[]int32{2, 4, 6, 8}, 4, 3, true},
		"two at once":       {[]int32{2, 6, 8}, 4, 3, true},
		"other in the end":  {[]int32{2, 4, 5, 8}, 4, 2, false},
		"other at first":    {[]int32{1, 4, 6, 8}, 4, 0, false},
		"one more":          {[]int32{2, 4, 5, 6, 8}, 5, 2, false},
		"parts of tokens":   {[]int32{1, 2, 3, 4, 8}, 4, 3, true}, // more pieces than tokens tell nothing
		"pieces not known":  {nil, 4, 3, true},
		"other, not known":  {nil, 5, 0, false},
		"one piece, others": {[]int32{8}, 5, 4, false},
	} {
		a := &threadReply{seam: " x"}
		a.reply.Set([]byte("abcdefgh"), nil, c.ends)
		a.findTokens(pairs, &result.Result{Output: &c.generated, OutputFrom: result.FromUsage, FinishReason: "length"})
		if a.same != c.same || a.sure != c.sure || a.tokens != 4 {
			t.Errorf("%s: %d same of %d, sure %v; want %d, %v", name, a.same, a.tokens, a.sure, c.same, c.sure)
		}
	}
}
