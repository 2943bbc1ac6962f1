package datasets

import (
	"bufio"
	"strconv"
	"time"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// BailianBlock is the block size of the Qwen-Bailian traces and of vLLM, in
// tokens.
const BailianBlock = 16

var bailianFields = Mapping{
	"time":          {"timestamp"},
	"input_tokens":  {"input_length"},
	"output_tokens": {"output_length"},
	"blocks":        {"hash_ids"},
	"class":         {"type"},
}

// bailianFormat reads the traces of Alibaba's Bailian (ATC'25, arXiv 2506.02634;
// github.com/alibaba-edu/qwen-bailian-usagetraces-anon): JSON lines of seconds,
// whole contexts, ids of 16-token blocks, and the request that each follows.
//
//   - Requests that parent_chat_id joins are a session. A parent of -1 is a root;
//     one that is not before its child in the file, mostly because it came
//     before the trace began, is left out and counted, and what names it is a
//     session all the same.
//   - The turn counts from 1 there, and from 0 here.
//   - Kinds of request (text, search, image, file, thinking) become the class.
//   - The maintainers say that the last block may hold padding and change its
//     hash when the output begins. So one id too many or, for the rest, too
//     few is no fault: the first is left out, and for the second a new one is
//     made.
//   - A <think> part is taken out of the next turn's prompt, so that prompts of a
//     session need not continue each other.
func bailianFormat() Format {
	return Format{
		reads: mappedFields(bailianFields, nil),
		timed: true, labels: true,
		detect: sniff.Lines(func(has func(string) bool) bool {
			return has("chat_id") && has("timestamp") && has("input_length") && has("hash_ids")
		}),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			mapped, err := openJSONL(in, head, bailianFields, o, s)
			if err != nil {
				return nil, err
			}
			mapped.timing = withTimes
			require(mapped.fields, "input_tokens", "blocks")
			mapped.setBlockSize(BailianBlock)
			if mapped.clock.Told == 0 {
				mapped.clock.Told = time.Second // also without a fraction
			}
			turn := target{name: "turn", set: func(b *builder, v any) string { // counts from 1
				n, ok := countOf(row.Plain(v))
				if !ok || n < 1 {
					return "want a whole number from 1 to 2147483647"
				}
				b.Entry.Turn = trace.Ptr(n - 1)
				return ""
			}}
			mapped.fields = append(mapped.fields, field{target: turn, paths: []string{"turn"}})
			s.info.HasSessions = true
			return &steppedDecoder{mappedDecoder: mapped, step: &bailianStep{d: mapped, chats: map[int64]chat{}}}, nil
		},
	}.described("bailian")
}

// A bailianStep follows parents. Memory is a chat for each request.
type bailianStep struct {
	d     *mappedDecoder
	chats map[int64]chat

	id, parent int64 // of the current row; a parent of -1 is none
	session    trace.Text
	note       string
}

// A chat is a request that others may follow.
type chat struct {
	position int64
	session  trace.Text
}

const (
	notePadding  = "requests with a block id of padding, left out"
	noteNoTail   = "requests without a block id for the rest of their input, given a new one"
	noteNoParent = "requests whose parent is not before them in the trace, left without one"
)

func (s *bailianStep) set(b *builder, r row.Row) error {
	s.parent, s.note = -1, ""
	for _, f := range []struct {
		name     string
		to       *int64
		required bool
	}{{"chat_id", &s.id, true}, {"parent_chat_id", &s.parent, false}} {
		v, ok := r.Value(f.name)
		if !ok && !f.required {
			continue
		}
		whole, nano, ok := stamp.Decimal(row.Plain(v))
		if !ok || nano != 0 {
			return row.BadAt(r, f.name, f.name+": want a whole number")
		}
		*f.to = whole
	}
	root := s.parent
	if root == -1 {
		root = s.id
	}
	before, ok := s.chats[s.parent]
	if ok && s.parent != -1 {
		b.Entry.Parents = []int64{before.position}
		s.session = before.session
	} else {
		s.session = trace.NewText(strconv.FormatInt(root, 10))
	}
	b.Entry.Session = s.session
	if reserved(b.Entry.SourceBlocks) {
		return row.BadAt(r, "hash_ids", reservedID)
	}
	// Padding may have made of the ids one too many, or one too few.
	ids, input := b.Entry.SourceBlocks, *b.Entry.InputTokens
	switch n := blocksOf(input, BailianBlock); {
	case len(ids) == n+1:
		b.Entry.SourceBlocks, s.note = ids[:n], notePadding
	case len(ids) == n-1 && input%BailianBlock != 0:
		b.Entry.SourceBlocks, s.note = append(ids, s.d.s.fresh.next()), noteNoTail
	}
	return nil
}

func (s *bailianStep) accepted(e *trace.Entry, position int64) {
	if s.note != "" {
		s.d.s.notes.Count(s.note)
	}
	if s.parent != -1 && e.Parents == nil {
		s.d.s.notes.Count(noteNoParent)
	}
	s.chats[s.id] = chat{position, s.session}
}
