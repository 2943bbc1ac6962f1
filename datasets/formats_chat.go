package datasets

// chatFormats are collections of conversations and other tools' workloads.
func chatFormats() []Format {
	return []Format{
		shareGPTFormat(), wildChatFormat(), lmsysFormat(), basetenFormat(), parquetFormat(),
		evalscopeFormat(), traceLabFormat(), traceLabSessionsFormat(), blisFormat(),
	}
}

// poolFormats are those whose source is several files.
func poolFormats() []Format { return []Format{serveGenFormat()} }
