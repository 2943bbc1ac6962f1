package result

// Determinism says whether a server answers the same twice.
type Determinism struct {
	Rows     int64 `json:"sampled_rows"`
	Compared int64 `json:"compared_rows"`  // both answers came whole
	Differed int64 `json:"differing_rows"` // other text, or another length
}

// Odd counts answers that were odd in a way that no Result shows. What was odd
// about them was tolerated, and is no error.
type Odd struct {
	RetryAfter int64 `json:"retry_after,omitempty"`      // an error asked to be repeated later; nothing ever is
	NoDone     int64 `json:"no_done,omitempty"`          // finished, but without [DONE]
	DoneAgain  int64 `json:"done_again,omitempty"`       // more than one [DONE]
	NoFinish   int64 `json:"no_finish_reason,omitempty"` // [DONE], but no choice said that it had finished
	KeepAlives int64 `json:"keep_alives,omitempty"`      // comments, or data events without data
	Malformed  int64 `json:"malformed_events,omitempty"` // data that is not a JSON object; it was skipped
	Choices    int64 `json:"several_choices,omitempty"`  // gaps are between events of any of them
	NoUsage    int64 `json:"no_usage,omitempty"`         // the server counted nothing
	Uncounted  int64 `json:"uncounted_events,omitempty"` // usage counts more or fewer tokens than there were events, and no running usage tells whose
}

// MaxRecordHeaders is how many response headers may be recorded.
const MaxRecordHeaders = 4

// OtherValue stands for the values of a recorded header beyond the first 1,024.
const OtherValue = "(other)"

// Served lists the values that a recorded response header had, in the order in which
// they were first seen. Result.Served holds indexes into Values.
type Served struct {
	Header string   `json:"header"`
	Values []string `json:"values"` // printable ASCII, at most 128 bytes each
}

// A Wire is what became of the client's connections in a run.
type Wire struct {
	Dials        int64 `json:"dials"`            // connections that were opened, those that nobody needed included
	DialsMinute  int64 `json:"dials_max_minute"` // the most in any one minute to one server
	Waited       int64 `json:"waited"`           // requests for which none was ready: they dialled between released and sent
	Reused       int64 `json:"reused"`           // requests on a connection that had served another
	Replaced     int64 `json:"replaced"`         // connections that the server closed while nobody used them
	Stale        int64 `json:"stale"`            // requests lost, as "reset", to a connection that the server was closing
	ServerCloses bool  `json:"server_closes"`    // it promises to keep connections and does not: none was used again

	LocalPorts int64  `json:"local_ports,omitempty"` // that connections to one address can have, where the system tells
	Note       string `json:"note,omitempty"`        // what is to be known of them, in words
}
