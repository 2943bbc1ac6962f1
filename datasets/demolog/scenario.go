package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pkoukk/tiktoken-go"
)

// A record is one line of the log.
type record struct {
	Timestamp   string    `json:"timestamp"`
	User        string    `json:"user"`
	Session     string    `json:"session_id,omitempty"`
	Model       string    `json:"model"`
	Stream      bool      `json:"stream"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	Messages    []message `json:"messages"`
	Status      int       `json:"status"`
	Error       *failure  `json:"error,omitempty"`
	Response    *response `json:"response,omitempty"`
	Usage       *usage    `json:"usage,omitempty"`
	TTFT        int64     `json:"ttft_ms,omitempty"`
	Latency     int64     `json:"latency_ms"`

	at time.Duration
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type failure struct {
	Type string `json:"type"`
}

type response struct {
	Choices []choice `json:"choices"`
}

type choice struct {
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

const (
	length    = 30 * time.Second
	chats     = 60
	about     = 30 // requests about the document
	singles   = 22
	repeats   = 12
	failures  = 6
	maxTokens = 200
)

var users = []string{"harbour-library", "orchard-supplies", "northgate-cycles"}

type scenario struct {
	writer
	tokens  *tiktoken.Tiktoken
	records []*record
}

// makeRecords returns the requests in order of arrival.
func (s *scenario) makeRecords() []*record {
	// Chats: each turn comes after the answer to the one before and some thought.
	system := "You are the assistant of a small shop. Answer briefly and politely, in plain words.\n\n" +
		s.text(statements, 110)
	for i := range chats {
		user, at := s.user(), s.anywhere(length*3/4)
		history := []message{{"system", system}}
		for turns := 2 + s.IntN(3); turns > 0 && at < length; turns-- {
			history = append(history, message{"user", s.text(questions, int(s.lognormal(25, 1, 8, 200)))})
			r := s.ask(fmt.Sprintf("c%03d", i), user, at, slices.Clone(history))
			history = append(history, r.Response.Choices[0].Message)
			think := s.lognormal(2.5, 0.8, 0.5, 9)
			at += time.Duration(r.Latency)*time.Millisecond + time.Duration(think*1e6)*time.Microsecond
		}
	}
	document := "Answer from this handbook only.\n\n" + s.text(statements, 520)
	for range about {
		s.ask("", s.user(), s.anywhere(length), []message{{"system", document}, {"user", s.text(questions, 10)}})
	}
	for range singles {
		pasted := s.text(statements, int(s.lognormal(400, 1.3, 20, 2500)))
		s.ask("", s.user(), s.anywhere(length), []message{{"user", "Please summarise this.\n\n" + pasted}})
	}

	// Some requests come once more, a while later and from anyone.
	left := repeats
	for _, i := range s.Perm(len(s.records)) {
		again := *s.records[i]
		again.at += time.Second + s.anywhere(8*time.Second)
		if again.Session != "" || again.at >= length {
			continue
		}
		again.User = s.user()
		s.records = append(s.records, &again)
		if left--; left == 0 {
			break
		}
	}

	slices.SortStableFunc(s.records, func(a, b *record) int { return cmp.Compare(a.at, b.at) })
	begin := time.Date(2026, time.May, 4, 9, 30, 0, 0, time.UTC)
	for _, r := range s.records {
		r.Timestamp = begin.Add(r.at).Format("2006-01-02T15:04:05.000000Z")
	}

	// Some requests outside the chats fail, some at once and some after a while.
	failed := 0
	for _, i := range s.Perm(len(s.records)) {
		r := s.records[i]
		if r.Session != "" || failed == failures {
			continue
		}
		r.Response, r.Usage, r.TTFT = nil, nil, 0
		if failed%2 == 0 {
			r.Status, r.Error, r.Latency = 429, &failure{"rate_limit_exceeded"}, 3
		} else {
			r.Status, r.Error = 500, &failure{"server_error"}
		}
		failed++
	}
	return s.records
}

// user draws a tenant; the first sends half of the requests.
func (s *scenario) user() string { return users[max(0, s.IntN(4)-1)] }

func (s *scenario) anywhere(within time.Duration) time.Duration {
	return time.Duration(s.Int64N(int64(within)/1000) * 1000)
}

// lognormal draws by mean and coefficient of variation, within bounds.
func (s *scenario) lognormal(mean, cv, lo, hi float64) float64 {
	variance := math.Log1p(cv * cv)
	x := math.Exp(s.NormFloat64()*math.Sqrt(variance) + math.Log(mean) - variance/2)
	return math.Round(min(max(x, lo), hi)*1000) / 1000
}

// ask adds a request and its answer.
func (s *scenario) ask(session, user string, at time.Duration, messages []message) *record {
	answer := s.text(statements, int(s.lognormal(62, 0.7, 8, 190)))
	r := &record{
		User: user, Session: session, Model: "demo-8b", Stream: true, MaxTokens: maxTokens, Temperature: 0.7,
		Messages: messages, Status: 200, at: at,
	}
	reason := "stop"
	ids := s.tokens.EncodeOrdinary(answer)
	if len(ids) > maxTokens {
		ids, reason = ids[:maxTokens], "length"
		answer = s.tokens.Decode(ids)
	}
	r.Response = &response{[]choice{{message{"assistant", answer}, reason}}}
	// The prompt is counted as an endpoint with the ChatML template does, with the
	// marks as ordinary text.
	prompt := s.count("<|im_start|>assistant\n")
	for _, m := range messages {
		prompt += s.count("<|im_start|>"+m.Role+"\n") + s.count(m.Content) + s.count("<|im_end|>\n")
	}
	r.Usage = &usage{prompt, len(ids)}
	r.TTFT = int64(40 + 0.08*float64(r.Usage.Prompt) + s.lognormal(30, 1, 2, 400))
	r.Latency = r.TTFT + int64(float64(len(ids))*s.lognormal(12, 0.2, 8, 25))
	s.records = append(s.records, r)
	return r
}

func (s *scenario) count(text string) int { return len(s.tokens.EncodeOrdinary(text)) }
