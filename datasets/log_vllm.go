package datasets

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
)

// vllmFields is where the rows that a [vllmRows] makes have their fields.
var vllmFields = Mapping{
	"time":          {"time"},
	"adapter":       {"adapter"},
	"kind":          {"kind"},
	"max_tokens":    {"max_tokens"},
	"temperature":   {"temperature"},
	"status":        {"status"},
	"finish_reason": {"finish_reason"},
	"e2e_ns":        {"e2e"},
	"input_tokens":  {"input_tokens"},
	"output_tokens": {"output_tokens"},
	"prompt":        {"prompt"},
	"output":        {"output"},
}

// vllmLogFormat reads the text log of a vLLM server that logs requests
// (--enable-log-requests). The rules:
//
//   - A request is the line "Received request", in newer versions together with
//     the debug line "Request … details", which then holds the prompt. What other
//     lines tell about it, an output or an end, is joined by the request's id.
//   - The prompt is Python's repr of the text after the chat template. Its
//     token ids, when they are logged, give its length.
//   - --max-log-len cuts prompts and ids. A cut one is bad: its length is not
//     known. The limit is read from the arguments that the server logs at its
//     start; without them it is told by prompts that have as many characters as
//     ids, or by several that have the same length, none longer, and lack the end
//     that all shorter ones share, as a chat template puts it there. Equal lengths
//     alone are said and prove nothing.
//   - The output's length is known only with --enable-log-outputs. It is not
//     taken from max_tokens, whose default is what the context leaves.
//   - vLLM's dates have no year. The log is taken to begin in 1972, or in 1971
//     when that is in its second half, so that a February 29 exists; a step of
//     more than half a year is a turn of the year. A date that a container
//     runtime puts before the line, with its year, is preferred.
func vllmLogFormat() Format {
	return Format{
		detect: func(head *sniff.Sample) bool {
			if !bytes.Contains(head.Bytes, []byte("Received request")) {
				return false // before each line is looked at
			}
			for _, line := range record.HeadLines(head.Bytes) {
				if e := vllmEventOf(string(line)); e.verb == vllmReceived &&
					(strings.Contains(e.rest, "params: ") || strings.HasPrefix(e.rest, "prompt: ")) {
					return true
				}
			}
			return false
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			limit, alike := vllmLogLimit(head)
			if alike > 0 {
				s.notes.SayOnce(fmt.Sprintf("several of the first prompts have exactly %d characters and none has "+
					"more: if the server ran with --max-log-len %d, they are cut, and so are their lengths", alike,
					alike))
			}
			all := newVLLMRows(in, limit, &s.notes)
			first := newVLLMRows(headLines(head), limit, new(fault.Notes))
			d, err := newMappedDecoder(all, first, vllmFields, o, s)
			if err != nil {
				return nil, err
			}
			d.timing = withTimes
			all.known = s.fields
			s.notes.SayOnce("prompts stand in a vLLM log as the model saw them, chat template included: import them " +
				"without a template")
			return d, nil
		},
	}.described("vllm-log")
}

// A vllmEvent is what one line of the log tells.
type vllmEvent struct {
	verb   vllmVerb
	id     string
	rest   string // after the id
	prefix string // before the event
}

type vllmVerb int

const (
	vllmOther vllmVerb = iota
	vllmDetails
	vllmReceived
	vllmGenerated
	vllmFinished
	vllmAborted
	vllmFailed
)

// vllmLine finds the event of a line after a short prefix, which a runtime, a
// process name and a level may share.
var vllmLine = regexp.MustCompile(
	`^(.{0,300}?)(Received request|Generated response|Finished request|Aborted request(?:\(s\))?|Request) ([^\s:]{1,300}?)([:.]$|[:.]? )`)

// vllmEventOf reads the beginning of a line only, since a line may be megabytes.
func vllmEventOf(line string) vllmEvent {
	m := vllmLine.FindStringSubmatchIndex(line[:min(len(line), 1000)])
	if m == nil {
		return vllmEvent{}
	}
	e := vllmEvent{prefix: line[:m[3]], id: line[m[6]:m[7]], rest: line[m[9]:]}
	switch line[m[4]:m[5]] {
	case "Received request":
		e.verb = vllmReceived
	case "Generated response":
		e.verb = vllmGenerated
	case "Finished request":
		e.verb = vllmFinished
	case "Request":
		what, rest, _ := strings.Cut(e.rest, " ")
		switch strings.Trim(what, ".:") {
		case "details":
			e.verb, e.rest = vllmDetails, rest
		case "aborted":
			e.verb = vllmAborted
		case "failed":
			e.verb = vllmFailed
		}
	default:
		e.verb = vllmAborted
	}
	return e
}

// vllmDates reads the dates of lines; most lack the year. last is the
// latest date whose year was assumed; it is zero until there is one.
type vllmDates struct{ last time.Time }

var (
	shortDate = regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?`)
)

// find returns the date in the text before an event, as a stamp and as it would be
// written with a year.
func (d *vllmDates) find(prefix string) (st stamp.Stamp, text string, ok bool) {
	if text = stamp.FindDate(prefix); text != "" {
		st, ok = stamp.ReadISO(text)
		return st, text, ok
	}
	face := shortDate.FindString(prefix)
	if face == "" {
		return st, "", false
	}
	year := 1972
	switch {
	case d.last.IsZero() && face >= "07":
		year = 1971
	case !d.last.IsZero():
		year = d.last.Year()
	}
	for _, y := range []int{year, year + 1, year - 1} {
		text = strconv.Itoa(y) + "-" + face
		if st, ok = stamp.ReadISO(text); ok && (d.last.IsZero() || st.Time.Sub(d.last).Abs() < 183*24*time.Hour) {
			d.last = st.Time
			return st, text, true
		}
	}
	return st, text, ok
}

// minLogLimit is the least number of characters that is taken for a limit when
// nothing says so: shorter prompts are alike by chance.
const minLogLimit = 16

var maxLogLen = regexp.MustCompile(`\bmax_log_len'?[=:] ?(\d+)`)

// vllmLogLimit tells --max-log-len from the first lines of a log: from the server's
// arguments; from a prompt of as many characters as ids; or from three or more different
// prompts that have the same length and lack the end that all shorter ones share, when
// none is longer. It is 0 when nothing shows that some was cut; alike is then the length
// that three or more of the longest prompts share, or 0.
func vllmLogLimit(head []byte) (limit, alike int) {
	texts := map[int]map[string]bool{}
	longest := 0
	for _, raw := range record.HeadLines(head) {
		line := ansiColour.ReplaceAllString(string(raw), "")
		e := vllmEventOf(line)
		if m := maxLogLen.FindStringSubmatch(line); m != nil && e.verb == vllmOther {
			n, _ := strconv.Atoi(m[1])
			return n, 0
		}
		if e.verb != vllmReceived && e.verb != vllmDetails {
			continue
		}
		fields := pyFields(e.rest)
		text, _, _ := pyString(fields["prompt"])
		n := len([]rune(text))
		if ids, ok := vllmIDs(fields["prompt_token_ids"]); ok && ids == n && n >= minLogLimit {
			return n, 0
		}
		longest = max(longest, n)
		if texts[n] == nil {
			texts[n] = map[string]bool{}
		}
		texts[n][text] = true
	}
	if longest < minLogLimit || len(texts[longest]) < 3 {
		return 0, 0
	}
	var shorter []string
	for n, some := range texts {
		if n < longest {
			shorter = slices.AppendSeq(shorter, maps.Keys(some))
		}
	}
	end := commonEnd(shorter)
	for text := range texts[longest] {
		if len(shorter) < 2 || len(end) < minSharedEnd || strings.HasSuffix(text, end) {
			return 0, longest
		}
	}
	return longest, 0
}

// minSharedEnd is how many bytes are taken for the end that a chat template puts behind each
// prompt.
const minSharedEnd = 8

// commonEnd is what all texts end with.
func commonEnd(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	end := texts[0]
	for _, text := range texts[1:] {
		n := 0
		for n < min(len(end), len(text)) && end[len(end)-1-n] == text[len(text)-1-n] {
			n++
		}
		end = end[len(end)-n:]
	}
	return end
}
