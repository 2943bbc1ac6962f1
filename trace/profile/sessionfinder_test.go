package profile_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/profile"
)

// Words are what was said in a prompt, part by part: prompts are alike as far as their parts are.
type words []part

type part struct{ name, tokens int }

func (s words) and(p part) words { return append(s[:len(s):len(s)], p) }

func (s words) tokens() (n int) {
	for _, p := range s {
		n += p.tokens
	}
	return n
}

// A scene writes rows of which it knows the sessions.
type scene struct {
	*rand.Rand
	size  int
	names int
	rows  []trace.Request
	whose []int // by row: its session
	ids   map[string]uint64
}

func (s *scene) part(tokens int) part {
	s.names++
	return part{s.names, max(1, tokens)}
}

// about is a number of tokens around one.
func (s *scene) about(tokens int) part {
	return s.part(tokens/3 + s.IntN(1+tokens*4/3))
}

// ask writes a request, and returns the prompt with its answer.
func (s *scene) ask(at float64, prompt words, answer part, session int) words {
	var blocks []uint64
	total, names := prompt.tokens(), ""
	ends, from := 0, 0
	for end := s.size; ; end += s.size {
		for ends < min(end, total) {
			names += fmt.Sprint(prompt[from], " ")
			ends += prompt[from].tokens
			from++
		}
		name := fmt.Sprint(names, end)
		if end > total {
			name = fmt.Sprint("tail of row ", len(s.rows))
		}
		if end-s.size >= total {
			break
		}
		if _, ok := s.ids[name]; !ok {
			s.ids[name] = uint64(len(s.ids))
		}
		blocks = append(blocks, s.ids[name])
	}
	s.rows = append(s.rows, trace.Request{ArrivalNS: int64(at * 1e9), InputTokens: int32(total), OutputTokens: trace.Ptr(int32(answer.tokens)), Blocks: blocks})
	s.whose = append(s.whose, session)
	return prompt.and(answer)
}

// chat writes a conversation, and returns when it ends.
func (s *scene) chat(at float64, prompt words, turns, user, answer int, pause float64) float64 {
	s.names++
	session := s.names
	for range turns {
		of := s.about(answer)
		prompt = s.ask(at, prompt.and(s.about(user)), of, session)
		at += float64(of.tokens)/50 + pause*s.ExpFloat64()
	}
	return at
}

// templates are beginnings of prompts.
func (s *scene) templates(n, tokens int) (out []words) {
	for range n {
		out = append(out, words{s.about(tokens)})
	}
	return out
}

// scenes are kinds of traffic. None of the single ones has a session.
var scenes = map[string]struct {
	single bool
	begin  func(s *scene) func(at float64) // something new happens
}{
	"chats on system prompts": {false, func(s *scene) func(float64) {
		prompts := s.templates(20, 1500)
		return func(at float64) { s.chat(at, prompts[s.IntN(20)], 1+s.IntN(6), 150, 150, 20) }
	}},
	"loops of tools": {false, func(s *scene) func(float64) {
		prompts := s.templates(3, 4000)
		return func(at float64) { s.chat(at, prompts[s.IntN(3)], 2+s.IntN(20), 400, 60, 0.5) }
	}},
	"answers of few tokens": {false, func(s *scene) func(float64) {
		prompts := s.templates(9, 1500)
		return func(at float64) { s.chat(at, prompts[s.IntN(9)], 1+s.IntN(9), 200, 5, 15) }
	}},
	"sub-agents on the parent's prompt": {false, func(s *scene) func(float64) {
		root := s.templates(1, 3000)[0]
		return func(at float64) {
			s.names++
			session := s.names
			parent := s.ask(at, root.and(s.about(2500)), s.about(150), session)
			for range 2 + s.IntN(4) {
				at := at + 5 + s.Float64()
				for own := parent; s.IntN(3) > 0; at += 8 {
					own = s.ask(at, own.and(s.about(300)), s.about(200), session)
				}
			}
		}
	}},
	"messages edited": {false, func(s *scene) func(float64) {
		prompts := s.templates(5, 1500)
		return func(at float64) {
			s.names++
			session := s.names
			history := []words{prompts[s.IntN(5)]}
			for range 1 + s.IntN(7) {
				if s.IntN(5) == 0 {
					history = history[:1+s.IntN(len(history))]
				}
				history = append(history, s.ask(at, history[len(history)-1].and(s.about(200)), s.about(250), session))
				at += 6 + 25*s.ExpFloat64()
			}
		}
	}},
	"a system prompt that changes": {false, func(s *scene) func(float64) {
		prompt, until := words(nil), 0.0
		return func(at float64) {
			if at >= until {
				prompt, until = s.templates(1, 5000)[0], at+100
			}
			s.chat(at, prompt, 1+s.IntN(4), 150, 150, 30)
		}
	}},
	"one template": {true, func(s *scene) func(float64) {
		prompt := s.templates(1, 3000)[0]
		return func(at float64) { s.chat(at, prompt, 1, 200, 30, 0) }
	}},
	"twelve templates": {true, func(s *scene) func(float64) {
		prompts := s.templates(12, 3000)
		return func(at float64) { s.chat(at, prompts[s.IntN(12)], 1, 250, 15, 0) }
	}},
	"documents": {true, func(s *scene) func(float64) {
		root := s.part(1100)
		docs := s.templates(300, 5000)
		return func(at float64) {
			s.chat(at, words{root, docs[s.IntN(1+s.IntN(300))][0]}, 1, 40, 120, 0)
		}
	}},
	"examples that grow": {true, func(s *scene) func(float64) {
		var prompts []words
		for _, prompt := range s.templates(8, 500) {
			for range 15 {
				prompts = append(prompts, prompt)
				prompt = prompt.and(s.about(200))
			}
		}
		return func(at float64) { s.chat(at, prompts[s.IntN(len(prompts))], 1, 60, 15, 0) }
	}},
	"nothing shared": {true, func(s *scene) func(float64) {
		return func(at float64) { s.chat(at, nil, 1, 900, 120, 0) }
	}},
}

// play writes about n rows of a scene, in order of arrival.
func play(seed uint64, n, size int, begin func(*scene) func(float64)) (rows []trace.Request, whose []int) {
	s := &scene{Rand: rand.New(rand.NewPCG(seed, 2)), size: size, ids: map[string]uint64{}}
	happens := begin(s)
	for at := 0.0; len(s.rows) < n; at += s.ExpFloat64() / 4 {
		happens(at)
	}
	order := make([]int, len(s.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.rows[a].ArrivalNS, s.rows[b].ArrivalNS) })
	for _, i := range order[:n] {
		rows, whose = append(rows, s.rows[i]), append(whose, s.whose[i])
	}
	return rows, whose
}

// pairs counts pairs of requests: put together, rightly so, and those that share a block which
// no other session has, so that they could be.
func pairs(rows []trace.Request, whose []int) (together, right, tell int) {
	of, all, first := owners(rows, whose), newGroups(len(rows)), map[uint64]int{}
	for i, r := range rows {
		for _, b := range r.Blocks {
			if j, ok := first[b]; of[b] < 0 {
				continue
			} else if ok {
				all.join(i, j)
			} else {
				first[b] = i
			}
		}
	}
	session := func(i int) any {
		if rows[i].Session == nil {
			return nil
		}
		return *rows[i].Session
	}
	return pairsBy(len(rows), session), pairsBy(len(rows), func(i int) any {
		if s := session(i); s != nil {
			return [2]any{s, whose[i]}
		}
		return nil
	}), pairsBy(len(rows), func(i int) any { return all.of(i) })
}

// turnPairs counts pairs of requests that next turns join, and how many of these were put together. The next turn of a
// prompt is the first that begins with its full blocks, of which no other session has the last, and is longer by the
// answer at least. What repeats a prompt of these goes with it.
func turnPairs(rows []trace.Request, whose []int, size int) (tell, found int) {
	of, all := owners(rows, whose), newGroups(len(rows))
	ending, joined, repeats := map[uint64][]int{}, make([]bool, len(rows)), map[uint64][]int{}
	for i, r := range rows {
		for _, b := range r.Blocks {
			ending[b] = slices.DeleteFunc(ending[b], func(j int) bool {
				if grown := r.InputTokens - rows[j].InputTokens; grown <= 0 || grown < *rows[j].OutputTokens {
					return false
				}
				all.join(i, j)
				joined[i], joined[j] = true, true
				return true
			})
		}
		if full := int(r.InputTokens) / size; full > 0 && of[r.Blocks[full-1]] >= 0 {
			ending[r.Blocks[full-1]] = append(ending[r.Blocks[full-1]], i)
		}
		last := r.Blocks[len(r.Blocks)-1]
		repeats[last] = append(repeats[last], i)
	}
	for _, same := range repeats {
		if k := slices.IndexFunc(same, func(i int) bool { return joined[i] }); k >= 0 {
			for _, i := range same {
				all.join(i, same[k])
			}
		}
	}
	return pairsBy(len(rows), func(i int) any { return all.of(i) }), pairsBy(len(rows), func(i int) any {
		if rows[i].Session == nil {
			return nil
		}
		return [2]int64{*rows[i].Session, int64(all.of(i))}
	})
}

// owners are the sessions that alone have a block, or -1.
func owners(rows []trace.Request, whose []int) map[uint64]int {
	of := map[uint64]int{}
	for i, r := range rows {
		for _, b := range r.Blocks {
			if session, ok := of[b]; ok && session != whose[i] {
				of[b] = -1
			} else {
				of[b] = whose[i]
			}
		}
	}
	return of
}

// pairsBy counts pairs that have one key, of those that have one.
func pairsBy(rows int, key func(i int) any) (n int) {
	counts := map[any]int{}
	for i := range rows {
		if k := key(i); k != nil {
			n += counts[k]
			counts[k]++
		}
	}
	return n
}

// groups are rows that were joined.
type groups []int

func newGroups(n int) groups {
	g := make(groups, n)
	for i := range g {
		g[i] = i
	}
	return g
}

func (g groups) of(i int) int {
	for g[i] != i {
		g[i] = g[g[i]]
		i = g[i]
	}
	return i
}

func (g groups) join(i, j int) { g[g.of(i)] = g.of(j) }

// Sessions that are inferred are those of the traffic, where the blocks can tell, and single
// requests have none.
func TestSessionsAreInferredByEvidence(t *testing.T) {
	for name, kind := range scenes {
		for _, size := range []int{16, 512} {
			for seed := range uint64(2) {
				rows, whose := play(seed, 1000, size, kind.begin)
				a := annotate(rows, size, profile.Options{})
				together, right, tell := pairs(rows, whose)
				t.Logf("%s, blocks of %d: %d of %d pairs right, %d could be told; %+v", name, size, right, together, tell, a.Inferred())
				if kind.single && together > 0 || float64(right) < .95*float64(together) || float64(right) < .9*float64(tell) {
					t.Errorf("%s, blocks of %d: %d pairs put together, %d rightly, and %d could be told", name, size, together, right, tell)
				}
			}
		}
	}
}

// A turn asks for all of the evidence; each case lacks, or just has, one part of it.
func TestEvidenceOfATurn(t *testing.T) {
	row := func(at time.Duration, input, output int32, blocks ...uint64) trace.Request {
		return trace.Request{ArrivalNS: int64(at), InputTokens: input, OutputTokens: &output, Blocks: blocks}
	}
	first := row(0, 9, 8, 1, 2, 3)
	for _, test := range []struct {
		name string
		next trace.Request
		set  func(first, next *trace.Request)
		want bool
	}{
		{"prompt and answer", row(time.Minute, 18, 8, 1, 2, 4, 5, 6), nil, true},
		{"no room for the answer", row(time.Minute, 11, 8, 1, 2, 4), nil, false},
		{"the answer, trimmed a little", row(time.Minute, 14, 8, 1, 2, 4, 5), nil, true},
		{"reasoning dropped", row(time.Minute, 11, 8, 1, 2, 4), func(first, _ *trace.Request) { first.ReasoningTokens = trace.Ptr(int32(7)) }, true},
		{"within the same block", row(time.Minute, 11, 8, 1, 2, 4), func(first, _ *trace.Request) { first.OutputTokens = trace.Ptr(int32(1)) }, true},
		{"not all of the prompt's blocks", row(time.Minute, 18, 8, 1, 4, 5, 6, 7), nil, false},
		{"while the answer is written", row(time.Second, 18, 8, 1, 2, 4, 5, 6), func(first, _ *trace.Request) { first.E2ENS = trace.Ptr(int64(time.Minute)) }, false},
		{"once the answer is there", row(time.Minute, 18, 8, 1, 2, 4, 5, 6), func(first, _ *trace.Request) { first.E2ENS = trace.Ptr(int64(time.Minute)) }, true},
		{"at the same instant", row(0, 18, 8, 1, 2, 4, 5, 6), nil, false},
		{"hours later", row(20*time.Hour, 18, 8, 1, 2, 4, 5, 6), nil, true},
		{"days later", row(50*time.Hour, 18, 8, 1, 2, 4, 5, 6), nil, false},
		{"the same prompt again", row(time.Minute, 9, 8, 1, 2, 3), nil, false},
		{"of a session of the source", row(time.Minute, 18, 8, 1, 2, 4, 5, 6), func(_, next *trace.Request) { next.Session, next.Turn = trace.Ptr(int64(5)), trace.Ptr(int32(7)) }, false},
		{"after one of the source", row(time.Minute, 18, 8, 1, 2, 4, 5, 6), func(first, _ *trace.Request) { first.Session, first.Turn = trace.Ptr(int64(5)), trace.Ptr(int32(7)) }, false},
		{"after a failed one", row(time.Minute, 18, 8, 1, 2, 4, 5, 6), func(first, _ *trace.Request) { first.Status = trace.StatusFailed }, false},
	} {
		rows := []trace.Request{first, test.next}
		rows[0].OutputTokens = trace.Ptr(int32(8))
		if test.set != nil {
			test.set(&rows[0], &rows[1])
		}
		given := [2]*int64{rows[0].Session, rows[1].Session}
		annotate(rows, 4, profile.Options{})
		joined := given == [2]*int64{} && rows[0].Session != nil && rows[1].Session != nil && *rows[0].Session == *rows[1].Session
		if joined != test.want {
			t.Errorf("%s: one session: %v, want %v", test.name, joined, test.want)
		}
		for i, s := range given {
			if s != nil && (rows[i].Session != s || *rows[i].Turn != 7) || !joined && s == nil && rows[i].Session != nil {
				t.Errorf("%s: row %d has a session of its own", test.name, i)
			}
		}
	}
}

// TestSessionsOfShapes measures sessions on traffic that a script writes: REPRISE_TEST_SHAPES is
// "SCRIPT SHAPE…", and SCRIPT SHAPE -n ROWS --seed SEED --sid writes lines in Mooncake's form with the true ids.
func TestSessionsOfShapes(t *testing.T) {
	script := bytes.Fields([]byte(os.Getenv("REPRISE_TEST_SHAPES")))
	if len(script) < 2 {
		t.Skip("REPRISE_TEST_SHAPES names no script and shapes")
	}
	for _, shape := range script[1:] {
		for _, n := range []int{1000, 4000, 40_000} {
			for seed := 1; seed <= 5 && (n < 40_000 || seed == 1); seed++ {
				rows, whose := shapeRows(t, string(script[0]), string(shape), n, seed)
				a := annotate(rows, 512, profile.Options{})
				together, right, tell := pairs(rows, whose)
				turns, found := turnPairs(rows, whose, 512)
				all := a.Inferred()
				t.Logf("| %s | %d | %d | %d | %d | %d | %.3f | %.3f | %.3f of %d | %.1f %% |", shape, n, seed, slices.Max(whose)+1, all.Sessions, all.Requests,
					float64(right)/float64(max(1, together)), float64(right)/float64(max(1, tell)), float64(found)/float64(max(1, turns)), turns, 100*all.Doubt)
				if float64(right) < .95*float64(together) || float64(right) < .9*float64(tell) {
					t.Errorf("%s, %d rows, seed %d: %d pairs, %d right, %d could be told", shape, n, seed, together, right, tell)
				}
			}
		}
	}
}

// shapeRows are rows that a script writes, without sessions, and by row the true ones from 0.
func shapeRows(t *testing.T, script, shape string, n, seed int) (rows []trace.Request, whose []int) {
	t.Helper()
	out, err := exec.Command("python3", script, shape, "-n", fmt.Sprint(n), "--seed", fmt.Sprint(seed), "--sid").Output()
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var line struct {
			Session   string `json:"session_id"`
			Timestamp int64
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			Blocks    []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if _, ok := numbers[line.Session]; !ok {
			numbers[line.Session] = len(numbers)
		}
		whose = append(whose, numbers[line.Session])
		rows = append(rows, trace.Request{ArrivalNS: line.Timestamp * 1e6, InputTokens: line.Input, OutputTokens: &line.Output, Blocks: line.Blocks})
	}
	return rows, whose
}
