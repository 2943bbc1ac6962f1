package ending

// Ways in which an answer fails that began as one should, with HTTP status 200. They are
// classes of failure of a request's result, beside those of its connection and its status.
const (
	InStream   = "stream_error" // an error in place of the answer, or within it
	GaveUp     = "aborted"      // the server gave the answer up: its finish reason is abort, timeout and the like
	Empty      = "empty"        // it ended in good order, without a token
	Incomplete = "incomplete"   // it stopped before its end was said
)

// An Answer is what is known of an answer that is over.
type Answer struct {
	Fault  bool   // an error stands in it: the body, an event or a choice is one
	Ended  bool   // its end was said: by [DONE], the last event of its API, a finish reason, or a whole body
	Finish string // its finish reason, in the words of its provider or of the closed list; "" is none

	Generated bool // something was generated: text, reasoning, a refusal, a call of a tool, an embedding
	Tokens    int  // output tokens by the server's count; 0 where it has none
	Asked     int  // the most tokens that were asked for; 0 is not known
}

// Failure is "" for an answer that succeeded, else the way in which it failed.
//
// An answer without a token is one of which nothing came and nothing was counted. One token
// that was counted and did not come is the end of the text, which has no letters: it is all
// of an answer only where one token was asked for, or nobody knows how many were.
func (a Answer) Failure() string {
	fate := OfFinish(a.Finish)
	switch {
	case a.Fault, Finish(a.Finish) == Error:
		return InStream
	case fate == Failed, fate == WasCut:
		return GaveUp
	case !a.Ended:
		return Incomplete
	case !a.Generated && (a.Tokens == 0 || a.Tokens == 1 && a.Asked > 1):
		return Empty
	}
	return ""
}
