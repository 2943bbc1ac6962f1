package datasets

// traceFormats are the published traces: times and lengths, no text but in
// aiperf. A dialect comes before the format whose fields it extends.
func traceFormats() []Format {
	return []Format{aiperfFormat(), dynamoFormat(), bailianFormat(), mooncakeFormat(),
		azure2025Format(), azure2024Format(), azureFormat(), burstGPTFormat(), wekaFormat()}
}
