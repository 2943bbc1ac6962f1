package datasets

// logFormats are what gateways, engines and observers write.
func logFormats() []Format {
	return []Format{
		vllmLogFormat(), batchFormat(), otelFormat(), sagemakerFormat(), litellmLogFormat(), langfuseFormat(),
		litellmSpendFormat(), gatewayCSVFormat(),
	}
}
