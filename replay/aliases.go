package replay

import "reprise/replay/result"

// These names moved to package result. They stay until their users name it.
type (
	CacheDiscipline = result.CacheDiscipline
	Call            = result.Call
	Deployment      = result.Deployment
	Determinism     = result.Determinism
	Endpoint        = result.Endpoint
	Environment     = result.Environment
	ResultsFile     = result.File
	Interruption    = result.Interruption
	Journal         = result.Journal
	Measure         = result.Measure
	Metric          = result.Metric
	MetricsFile     = result.MetricsFile
	Odd             = result.Odd
	Place           = result.Place
	Primed          = result.Primed
	Privacy         = result.Privacy
	Profiled        = result.Profiled
	Prompter        = result.Prompter
	Result          = result.Result
	Rounds          = result.Rounds
	Run             = result.Run
	Sample          = result.Sample
	Selection       = result.Selection
	Served          = result.Served
	ServedModel     = result.ServedModel
	Server          = result.Server
	ServerModels    = result.ServerModels
	Shot            = result.Shot
	Stall           = result.Stall
	Stalls          = result.Stalls
	Threads         = result.Threads
	Verbatim        = result.Verbatim
	Window          = result.Window
)

const (
	APIAuto          = result.APIAuto
	APIChat          = result.APIChat
	APICompletions   = result.APICompletions
	APIEmbeddings    = result.APIEmbeddings
	APIResponses     = result.APIResponses
	CacheAsIs        = result.CacheAsIs
	CacheCold        = result.CacheCold
	CacheNewSeed     = result.CacheNewSeed
	CacheNothing     = result.CacheNothing
	CacheReset       = result.CacheReset
	CacheWarm        = result.CacheWarm
	CacheWarmPass    = result.CacheWarmPass
	Causal           = result.Causal
	ClosedLoop       = result.ClosedLoop
	Counter          = result.Counter
	FromTokenizer    = result.FromTokenizer
	FromUsage        = result.FromUsage
	KindConnect      = result.KindConnect
	KindPrepare      = result.KindPrepare
	KindRateLimited  = result.KindRateLimited
	MaxRecordHeaders = result.MaxRecordHeaders
	OpenLoop         = result.OpenLoop
	PromptsVerbatim  = result.PromptsVerbatim
	ResultsSchema    = result.Schema
	TextStable       = result.TextStable
)

var (
	CreateJournal    = result.CreateJournal
	JournalName      = result.JournalName
	MetricsName      = result.MetricsName
	OpenResults      = result.Open
	OpenMetrics      = result.OpenMetrics
	Redact           = result.Redact
	SummariseMetrics = result.SummariseMetrics
	WriteResults     = result.Write
)
