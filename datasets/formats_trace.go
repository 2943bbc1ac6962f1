package datasets

// traceFormats are the published traces: times and lengths, no text.
func traceFormats() []Format { return []Format{mooncakeFormat(), azureFormat()} }
