package result

// Values of [CacheDiscipline].Asked and Done.
const (
	CacheAsIs = "as-is" // asked: leave the caches alone
	CacheCold = "cold"  // asked: nothing of earlier runs may be found
	CacheWarm = "warm"  // asked: all of the workload was seen before

	CacheNothing  = "nothing"      // done: the caches hold what they held
	CacheReset    = "reset"        // done: the servers emptied them
	CacheNewSeed  = "new-seed"     // done: prompts of a seed that no run had before, which nothing in a cache matches
	CacheWarmPass = "warm-up-pass" // done: the whole workload was played once before
)

// CacheDiscipline says what was done to the servers' prefix caches before a run:
// what an earlier run left in them changes every latency.
type CacheDiscipline struct {
	Asked        string `json:"asked"`
	Done         string `json:"done"`
	Call         string `json:"call,omitempty"`             // the path that emptied them, by POST
	Servers      int    `json:"servers,omitempty"`          // that were called
	ArrivalSeed  string `json:"arrival_seed,omitempty"`     // of a run with a new seed: that of its arrivals, which stays
	WarmRequests int64  `json:"warm_requests,omitempty"`    // sent in the warm-up pass, and not measured
	WarmFailed   int64  `json:"warm_failed,omitempty"`      // of them
	WarmEnded    string `json:"warm_ended_early,omitempty"` // why
}
