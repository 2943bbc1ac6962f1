package profile

// For the tests outside of the package.
const (
	MetricThink     = metricThink
	MetricTool      = metricTool
	MetricTurnGap   = metricTurnGap
	MetricReuseTime = metricReuseTime
)
