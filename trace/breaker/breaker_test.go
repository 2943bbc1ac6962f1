package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/breaker"
)

// planted makes logs whose breakers are known. Its texts are random tokens, so
// that two are never alike by accident; rename gives a token another number.
type planted struct {
	rng    *rand.Rand
	rename func(uint32) uint32
	find   *breaker.Finder
	n      int64
	domain block.ID
	model  string
	tokens int // so far
}

func newPlanted(seed uint64) *planted {
	return &planted{rng: rand.New(rand.NewPCG(seed, 71)), find: breaker.NewFinder(), rename: func(t uint32) uint32 { return t }}
}

func (p *planted) text(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = p.rng.Uint32N(200_000)
	}
	return s
}

type message struct {
	role   trace.Role
	tokens []uint32
}

func (p *planted) send(messages ...message) {
	var prompt []uint32
	length := 0
	for _, m := range messages {
		tokens := slices.Clone(m.tokens)
		for i, t := range tokens {
			tokens[i] = p.rename(t)
		}
		prompt = appendPrompt(prompt, m.role, tokens)
		length += len(tokens)
	}
	p.find.Add(&breaker.Prompt{Domain: p.domain, Model: p.model, Tokens: prompt, Length: int32(length), ArrivalNS: p.n * 1e9, Source: p.n})
	p.n++
	p.tokens += length
}

func system(parts ...[]uint32) message { return message{trace.System, slices.Concat(parts...)} }
func user(parts ...[]uint32) message   { return message{trace.User, slices.Concat(parts...)} }

// chat sends the turns of one conversation, each behind a system prompt of its
// own, and returns the length of what each turn repeats of the one before.
func (p *planted) chat(turns int, system func() message) (repeated int) {
	var history []message
	for range turns {
		for _, m := range history {
			if m.role == trace.User || m.role == trace.Assistant {
				repeated += len(m.tokens)
			}
		}
		history = append(history, user(p.text(70+p.rng.IntN(60))))
		p.send(append([]message{system()}, history...)...)
		history = append(history, message{trace.Assistant, p.text(100 + p.rng.IntN(200))})
		repeated -= len(history[len(history)-1].tokens) // the reply is new to the cache
	}
	return repeated + len(history[len(history)-1].tokens)
}

// A truth is what a planted breaker must be reported as.
type truth struct {
	from, to       int64 // within which the positions must be
	message        int
	role           trace.Role
	requests, lost int64
	width          int64
	model          string
	tolerance      float64 // of lost, requests and width
	more           bool    // there may be lesser ones beside it
}

// plants are logs and their breakers.
var plants = map[string]func(p *planted) []truth{
	"a date at token 40": func(p *planted) []truth {
		head, rest := p.text(40), p.text(1458)
		for range 30 {
			date := p.text(2)
			for range 10 {
				p.send(system(head, date, rest), user(p.text(20+p.rng.IntN(100))))
			}
		}
		return []truth{{40, 40, 0, trace.System, 29, 29 * 1458, 2, "", 0, false}}
	},
	"a date whose first digits stay": func(p *planted) []truth {
		head, rest, century := p.text(40), p.text(800), p.text(1)
		months := [][]uint32{p.text(1), p.text(1), p.text(1)}
		for i := range 60 {
			p.send(system(head, century, months[i/20], p.text(2), rest), user(p.text(200)))
		}
		return []truth{{41, 42, 0, trace.System, 59, 59 * 800, 2, "", 0.05, false}}
	},
	"a prompt that all others go on from": func(p *planted) []truth {
		head, rest := p.text(40), p.text(1000)
		p.send(system(head))
		for range 60 {
			p.send(system(head, p.text(2), rest), user(p.text(100)))
		}
		return []truth{{40, 40, 0, trace.System, 59, 59 * 1000, 2, "", 0.02, false}}
	},
	"a name at the start": func(p *planted) []truth {
		rest := p.text(1500)
		for range 20 {
			name := p.text(1 + p.rng.IntN(3))
			for range 5 {
				p.send(system(name, rest), user(p.text(150)))
			}
		}
		return []truth{{0, 0, 0, trace.System, 19, 19 * 1500, 2, "", 0.5, false}}
	},
	"an id at the end of the system prompt of chats": func(p *planted) []truth {
		rest := p.text(1490)
		lost := 0
		for range 40 {
			lost += p.chat(6, func() message { return system(rest, p.text(12)) })
		}
		return []truth{{1490, 1490, 0, trace.System, 40 * 5, int64(lost), 12, "", 0.02, false}}
	},
	"an id at the end of the system prompt of single questions costs nothing": func(p *planted) []truth {
		rest := p.text(1490)
		for range 200 {
			p.send(system(rest, p.text(12)), user(p.text(150)))
		}
		return nil
	},
	"the minute in the system prompt of chats": func(p *planted) []truth {
		// A chat has a new minute at each turn; others have had that minute.
		head, rest := p.text(40), p.text(700)
		minutes := make([][]uint32, 8)
		for i := range minutes {
			minutes[i] = p.text(2)
		}
		for _, m := range minutes {
			p.send(system(head, m, rest), user(p.text(100)))
		}
		lost := 7 * 700
		for range 30 {
			i := p.rng.IntN(3)
			lost += p.chat(5, func() message { i++; return system(head, minutes[i], rest) })
		}
		return []truth{{40, 40, 0, trace.System, 7 + 30*4, int64(lost), 2, "", 0.02, false}}
	},
	"a shuffled list of tools": func(p *planted) []truth {
		head, rest := p.text(200), p.text(300)
		tools := make([][]uint32, 10)
		for i := range tools {
			tools[i] = p.text(80 + p.rng.IntN(80))
		}
		want := truth{200, 200, 0, trace.System, 0, 0, 560, "", 0.25, true}
		var seen [][][]uint32
		for range 100 {
			p.rng.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			p.send(system(head, slices.Concat(tools...), rest), user(p.text(100)))
			known := 0
			for _, other := range seen {
				same, n := 0, 0
				for same < len(tools) && &other[same][0] == &tools[same][0] {
					n += len(tools[same])
					same++
				}
				known = max(known, n)
			}
			if len(seen) > 0 {
				want.requests++
				want.lost += int64(len(slices.Concat(tools...)) + 300 - known)
			}
			seen = append(seen, slices.Clone(tools))
		}
		return []truth{want}
	},
	"a window over the messages": func(p *planted) []truth {
		rest := p.text(1000)
		want := truth{1000, 1000, 1, trace.User, 0, 0, 300, "", 0.35, false}
		for range 30 {
			var history []message
			for turn := range 12 {
				if len(history) == 8 {
					history = history[2:]
					if turn > 4 { // the first time is that of a next turn's text
						want.requests++
					}
					for _, m := range history[:len(history)-1] {
						want.lost += int64(len(m.tokens))
					}
				}
				history = append(history, user(p.text(90)))
				p.send(append([]message{system(rest)}, history...)...)
				history = append(history, message{trace.Assistant, p.text(200)})
			}
		}
		return []truth{want}
	},
	"two differences in one prompt": func(p *planted) []truth {
		a, b, c := p.text(40), p.text(700), p.text(400)
		for range 100 {
			p.send(system(a, p.text(3), b, p.text(5), c), user(p.text(120)))
		}
		return []truth{{40, 40, 0, trace.System, 99, 99 * 700, 3, "", 0, false}, {743, 743, 0, trace.System, 99, 99 * 400, 5, "", 0, false}}
	},
	"a date and a name with little between them": func(p *planted) []truth {
		a, b, c := p.text(40), p.text(30), p.text(1000)
		for range 100 {
			p.send(system(a, p.text(3), b, p.text(5), c), user(p.text(120)))
		}
		return []truth{{40, 40, 0, trace.System, 99, 99 * 1030, 32, "", 0, false}}
	},
	"two models": func(p *planted) []truth {
		head, rest := p.text(40), p.text(1000)
		for i := range 60 {
			p.domain, p.model = block.ID{byte(i % 3)}, fmt.Sprint("m", i%3)
			date := p.text(2)
			if i%3 == 2 {
				date = head[:2] // the third has none
			}
			p.send(system(head, date, rest), user(p.text(100)))
		}
		return []truth{{40, 40, 0, trace.System, 19, 19 * 1000, 2, "m0", 0, false}, {40, 40, 0, trace.System, 19, 19 * 1000, 2, "m1", 0, false}}
	},
	"two templates of one model": func(p *planted) []truth {
		a, b, rest, other := p.text(40), p.text(44), p.text(1000), p.text(500)
		for range 50 {
			p.send(system(a, p.text(2), rest), user(p.text(100)))
			p.send(system(b, p.text(2), other), user(p.text(100)))
		}
		return []truth{{40, 40, 0, trace.System, 49, 49 * 1000, 2, "", 0, false}, {44, 44, 0, trace.System, 49, 49 * 500, 2, "", 0, false}}
	},
	"what stands behind the question": func(p *planted) []truth {
		head, tail := p.text(500), p.text(300)
		for range 50 {
			p.send(system(head), user(p.text(30), tail))
		}
		return []truth{{500, 500, 1, trace.User, 49, 49 * 300, 30, "", 0, false}}
	},
	"a short end behind a question": func(p *planted) []truth {
		head, tail := p.text(1500), p.text(60)
		for range 200 {
			p.send(system(head), user(p.text(10+p.rng.IntN(300)), tail))
		}
		return nil
	},
	"an end that is shorter than the questions": func(p *planted) []truth {
		head, tail := p.text(1500), p.text(150)
		for range 200 {
			p.send(system(head), user(p.text(160+p.rng.IntN(300)), tail))
		}
		return nil
	},
	"next turns": func(p *planted) []truth {
		head := p.text(1500)
		for range 60 {
			p.chat(8, func() message { return system(head) })
		}
		return nil
	},
	"next turns that quote what others quoted": func(p *planted) []truth {
		head, quoted := p.text(500), p.text(600)
		for range 60 {
			question, reply := user(p.text(100)), message{trace.Assistant, p.text(100)}
			p.send(system(head), question)
			p.send(system(head), question, reply, user(quoted))
		}
		return nil
	},
	"repeats and prompts with nothing in common": func(p *planted) []truth {
		for range 50 {
			s := system(p.text(400))
			for range 4 {
				p.send(s)
			}
		}
		return nil
	},
	"a text that repeats itself": func(p *planted) []truth {
		head := p.text(100)
		for range 50 {
			own := p.text(200)
			p.send(system(head), user(own, p.text(30), own, p.text(30), own))
		}
		return nil
	},
	"four requests are too few": func(p *planted) []truth {
		head, rest := p.text(40), p.text(1000)
		for range 5 {
			p.send(system(head, p.text(2), rest), user(p.text(100)))
		}
		return nil
	},
	"the fifth is told": func(p *planted) []truth {
		head, rest := p.text(40), p.text(1000)
		for range 6 {
			p.send(system(head, p.text(2), rest), user(p.text(100)))
		}
		return []truth{{40, 40, 0, trace.System, 5, 5 * 1000, 2, "", 0, false}}
	},
}

func TestPlantedBreakers(t *testing.T) {
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				p := newPlanted(seed)
				want := plant(p)
				got := p.find.Report()
				if got.Requests != p.n || got.PromptTokens != int64(p.tokens) || got.Searched != got.PromptTokens {
					t.Errorf("%d requests, %d tokens, of which %d: want %d, %d", got.Requests, got.PromptTokens, got.Searched, p.n, p.tokens)
				}
				if more := len(want) == 1 && want[0].more; more && got.Found > 0 {
					got.List, got.Found = got.List[:1], 1
				}
				if len(got.List) != len(want) || got.Found != len(want) {
					t.Fatalf("found %d, want %d: %+v", got.Found, len(want), got.List)
				}
				for i, w := range want {
					w.check(t, got.List[i])
				}
			}
		})
	}
}

func (w truth) check(t *testing.T, g breaker.Breaker) {
	t.Helper()
	near := func(got, want int64) bool {
		return float64(max(got-want, want-got)) <= w.tolerance*float64(want)
	}
	if g.From < w.from || g.To > w.to || g.Message != w.message || g.Role != w.role.String() || g.Model != w.model ||
		!near(g.Requests, w.requests) || !near(g.Lost, w.lost) || !near(g.Width, w.width) {
		t.Errorf("found %+v, want %+v", g, w)
	}
	if g.Example[0] <= g.Example[1] {
		t.Errorf("the examples are %v", g.Example)
	}
}

// What is told depends on no token's number.
func TestBreakersDoNotDependOnTokens(t *testing.T) {
	for name, plant := range plants {
		var first string
		for round := range uint32(3) {
			p := newPlanted(5)
			p.rename = func(t uint32) uint32 { return (t ^ round*0x155) + 7*round }
			plant(p)
			got, err := p.find.Report().JSON()
			if err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				first = got
			}
			if strings.Contains(name, "tools") || strings.Contains(name, "window") {
				continue // stretches of other lengths than planted may be missed by chance
			}
			if got != first {
				t.Errorf("%s: %s, and with other numbers %s", name, first, got)
			}
		}
	}
}

// appendPrompt appends a whole message.
func appendPrompt(prompt []uint32, role trace.Role, tokens []uint32) []uint32 {
	return breaker.AppendMessage(breaker.BeginMessage(prompt, role), tokens)
}
