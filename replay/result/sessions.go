package result

// Values of [Sessions].Recycle: what becomes of session trees that are played again, since
// the workload was used up before the run's time.
const (
	RecycleSalt = "salt" // each play has prompts of its own, but for what most trees begin with
	// RecycleApart is for the first play too: no prompt shares a block with one of another
	// play or tree.
	RecycleApart = "apart"
	RecycleSame  = "same" // the same prompts
	RecycleStop  = "stop" // none is played again
)

// Values of [Sessions].Waits: what a turn waits after its last parent, where both are known.
const (
	WaitsThink = "think" // its think and tool time
	WaitsEnds  = "ends"  // what was recorded between the end of that parent and its start
	// WaitsAIPerf is as AIPerf 0.13 waits: see package replay.
	WaitsAIPerf = "aiperf"
)

// Sessions is a load whose unit is the session tree: rows of one session, and rows that
// parents join to it. Durations are nanoseconds.
type Sessions struct {
	Live       int     `json:"live,omitempty"`     // closed loop: so many trees are live; 0 is an open loop
	Rate       string  `json:"rate,omitempty"`     // open loop: the process by which trees start
	MaxLive    int     `json:"max_live,omitempty"` // of the open loop; 0 is no limit
	Recycle    string  `json:"recycle"`            // [RecycleSalt], [RecycleApart], [RecycleSame] or [RecycleStop]
	Waits      string  `json:"waits,omitempty"`    // [WaitsEnds] or [WaitsAIPerf]; empty is [WaitsThink]
	GapCapNS   int64   `json:"gap_cap_ns,omitempty"`
	IdleCapNS  int64   `json:"idle_cap_ns,omitempty"`
	TreeCapNS  int64   `json:"session_idle_cap_ns,omitempty"`
	ThinkScale float64 `json:"think_scale"`
	ToolScale  float64 `json:"tool_scale"`
	WarmTrees  int64   `json:"warmup_sessions,omitempty"` // trees that ended before the measurement began
	// shares between which each first tree begins, such as 0.25..0.75
	Start     string `json:"trajectory_start,omitempty"`
	StartSeed string `json:"trajectory_seed,omitempty"`
	// Measure is how many trees were to be measured, and MeasureNS for how long trees were to
	// start that are; 0 is a window by requests or time.
	Measure   int64 `json:"measure_sessions,omitempty"`
	MeasureNS int64 `json:"measure_ns,omitempty"`
	FirstTree int64 `json:"first_session,omitempty"` // of the workload, that was played first

	// Counts is what became of them; null in the journal of a run that did not finish.
	Counts *SessionCounts `json:"counts,omitempty"`
}

// SessionCounts say what a run of session trees did. Durations are nanoseconds. Of a run
// that was resumed, live and idle are of the last part.
type SessionCounts struct {
	Trees    int64 `json:"trees"`    // of the workload
	Started  int64 `json:"started"`  // plays that began
	Finished int64 `json:"finished"` // plays whose last row was over
	MinPlays int64 `json:"min_plays"`
	MaxPlays int64 `json:"max_plays"` // begun of one tree

	LiveTrees *LiveTrees `json:"live_trees"` // null where none started

	HeldBack   int64 `json:"held_back"`     // trees that arrived while as many were live as may be
	HeldNS     int64 `json:"waited_ns"`     // that they waited, in all
	HeldMostNS int64 `json:"waited_max_ns"` // the longest

	Gaps Gaps `json:"gaps"`

	GapCap  Capped `json:"gap_capped"`
	IdleCap Capped `json:"idle_capped"`
	TreeCap Capped `json:"session_idle_capped,omitzero"`

	Warm *TrajectoryWarmup `json:"trajectory_warmup,omitempty"` // null without a start inside of trees
}

// LiveTrees says how many session trees were live, each from when its first row was due
// until its last was over, while every place could be filled: up to the end of the time or
// of the trees that were left to start.
type LiveTrees struct {
	Min    int64   `json:"min"`
	Mean   float64 `json:"mean"` // over time
	Max    int64   `json:"max"`
	FromNS int64   `json:"from_ns"`
	ToNS   int64   `json:"to_ns"`
}

// Gaps say where the time was from that turns waited after their last parent.
type Gaps struct {
	Recorded int64 `json:"recorded"` // think and tool times
	Ends     int64 `json:"from_ends"`
	// Starts are turns of which neither a think or tool time nor the end of their parents was
	// recorded, only how much later they started: they are due that long after their
	// parent was, or at its end where that is later.
	Starts int64 `json:"from_starts"`
	// Offsets are further rows of a tree without parents: they are due as long after its
	// first row as recorded.
	Offsets int64 `json:"offsets"`
	// Implied are the turns among these of which the workload tells the session and not the
	// parents: they wait for the last turn before them that was not recorded to last longer.
	Implied int64 `json:"implied_parents"`
}

// Capped is what a limit on waiting took away.
type Capped struct {
	Times int64 `json:"times"`
	NS    int64 `json:"removed_ns"`
}

// TrajectoryWarmup is what brought the server's cache to where trees began inside of them.
// None of it is in the results.
type TrajectoryWarmup struct {
	Trees   int64 `json:"trees"`   // that began inside
	Streams int64 `json:"streams"` // that were under way: each sent its last request before the start
	History int64 `json:"history"` // requests before the start, which were not sent again
	Tokens  int64 `json:"prompt_tokens"`
	TookNS  int64 `json:"took_ns"`
}
