package datasets

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"time"

	tokenusage "reprise/trace/usage"
)

const (
	noteNoModelCalls = "records that are no calls of a model were left out"
	noteCacheAnswers = "calls that the gateway answered from its own cache were left out, since no engine saw them"
)

// declaredFormats lists the formats that are read by what is declared of them.
func declaredFormats() []declaredFormat {
	return slices.Concat([]declaredFormat{apiLog(), harLog()}, servingFormats(), platformFormats(), gatewayFormats(), cloudFormats())
}

// servingFormats are written by engines and by tools that measure them.
func servingFormats() []declaredFormat {
	return []declaredFormat{
		{
			name: "aibrix", tried: "4 workloads of its repository: 2,240 requests",
			about:   "AIBrix workloads: JSON lines of milliseconds and the requests that begin then",
			example: `{"timestamp":21,"requests":[{"prompt":"Hello","Prompt Length":909,"Output Length":22,"session_id":"s1"}]}`,
			keys:    []string{"timestamp", "requests"},
			members: [][]string{{"requests"}},
			fields: Mapping{
				"time": {"time_of_all"}, "prompt": {"prompt"}, "session": {"session_id"}, "model": {"model"},
				"input_tokens": {"Prompt Length", "prompt_length"}, "output_tokens": {"Output Length", "output_length"},
			},
			counts: tokenusage.Inclusive, unit: time.Millisecond,
			made: map[string]string{"time_of_all": "timestamp"},
			show: func(v viewRow) {
				if in, ok := v.row.(memberRow); ok {
					at, _ := in.row.value("timestamp")
					v.made["time_of_all"] = at
				}
			},
		},
		{
			name: "sglang", tried: fromDocumentation,
			about:   "SGLang's request log (--log-requests): JSON lines with --log-requests-format json, or the text log",
			example: `{"timestamp":"2026-01-02T03:04:07","event":"request.finished","rid":"r1","obj":{"text":"Hello","sampling_params":{"max_new_tokens":100}},"out":{"text":"Hi","meta_info":{"prompt_tokens":900,"cached_tokens":640,"completion_tokens":40,"e2e_latency":1.9,"finish_reason":{"type":"stop"}}}}`,
			keys:    []string{"timestamp", "event", "rid"},
			fields: Mapping{
				"time": {"timestamp"}, "model": {"obj.model"}, "prompt": {"obj.text"}, "output": {"out.text"},
				"input_tokens": {"out.meta_info.prompt_tokens"}, "output_tokens": {"out.meta_info.completion_tokens"}, "cached_tokens": {"out.meta_info.cached_tokens"},
				"reasoning_tokens": {"out.meta_info.reasoning_tokens"}, "e2e_s": {"out.meta_info.e2e_latency"}, "finish_reason": {"out.meta_info.finish_reason.type"},
				"max_tokens": {"obj.sampling_params.max_new_tokens"}, "temperature": {"obj.sampling_params.temperature"}, "session": {"obj.session_params.id"},
			},
			counts: tokenusage.Inclusive, ended: true,
			only:  []condition{{"event", "request.finished", "lines of requests that had not ended were left out"}},
			also:  isSGLangLog,
			lines: func(in *bufio.Reader, tell *notes) records { return sglangLines{newLineReader(in), tell} },
		},
		{
			name: "lmcache", tried: fromDocumentation,
			about:   "LMCache's agent traces: JSON lines of prompts and answers, whose times need --time-unit",
			example: `{"timestamp":1767323045100,"input":"Hello","output":"Hi","session_id":0}`,
			keys:    []string{"timestamp", "input", "output", "session_id"},
			fields:  Mapping{"time": {"timestamp"}, "prompt": {"input"}, "output": {"output"}, "session": {"session_id"}},
			match: func(r row) bool {
				in, _ := r.value("input")
				out, _ := r.value("output")
				at, _ := r.value("timestamp")
				_, isNumber := at.(number)
				record, isJSON := r.(jsonRow)
				return isString(in) && isString(out) && isNumber && isJSON && len(record.root) == 4
			},
		},
	}
}

// platformFormats are the spans and runs of platforms that observe applications.
func platformFormats() []declaredFormat {
	return []declaredFormat{
		{
			name: "langsmith", tried: "8 runs as its SDKs of 2024 sent them",
			about:   "LangSmith runs, as its API and its bulk export have them: JSON or Parquet",
			example: `{"id":"r1","trace_id":"r0","run_type":"llm","start_time":"2026-01-02T03:04:05.1","end_time":"2026-01-02T03:04:07","first_token_time":"2026-01-02T03:04:05.6","prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"thread_id":"t1"}`,
			keys:    []string{"run_type", "start_time", "trace_id"},
			packed:  []string{"inputs", "outputs", "extra", "prompt_token_details", "completion_token_details"},
			fields: Mapping{
				"time": {"start_time"}, "model": {"extra.metadata.ls_model_name", "extra.invocation_params.model", "inputs.model"},
				// session_id is the project.
				"session":          {"thread_id", "extra.metadata.thread_id", "extra.metadata.session_id", "extra.metadata.conversation_id", "trace_id"},
				"user":             {"extra.metadata.user_id"},
				"input_tokens":     {"prompt_tokens"},
				"output_tokens":    {"completion_tokens"},
				"cached_tokens":    {"prompt_token_details.raw.cache_read", "prompt_token_details.cache_read"},
				"written_tokens":   {"prompt_token_details.raw.cache_creation", "prompt_token_details.cache_creation"},
				"reasoning_tokens": {"completion_token_details.raw.reasoning", "completion_token_details.reasoning"},
				"total_tokens":     {"total_tokens"},
				"max_tokens":       {"extra.invocation_params.max_tokens", "inputs.max_tokens"},
				"error":            {"error"}, "messages": {"inputs"}, "tools": {"extra.invocation_params.tools", "inputs.tools"}, "output": {"outputs"},
			},
			usage: []string{"outputs.usage_metadata", "outputs.llm_output.token_usage"}, counts: tokenusage.Relayed,
			times: latencyPaths{[]string{"start_time"}, []string{"first_token_time"}, []string{"end_time"}},
			only:  []condition{{"run_type", "llm", noteNoModelCalls}},
			spans: spanPaths{"trace_id", "id", "parent_run_id"},
		},
		{
			name: "braintrust", tried: fromDocumentation,
			about:   "Braintrust spans of logs and experiments: JSON",
			example: `{"id":"b1","span_id":"s1","root_span_id":"s0","created":"2026-01-02T03:04:05Z","span_attributes":{"type":"llm","name":"chat"},"metadata":{"model":"m"},"metrics":{"start":1767323045.1,"end":1767323047.0,"time_to_first_token":0.4,"prompt_tokens":900,"prompt_cached_tokens":640,"completion_tokens":40,"tokens":940}}`,
			keys:    []string{"span_attributes", "root_span_id"},
			packed:  []string{"span_attributes", "metrics", "metadata", "input", "output"},
			fields: Mapping{
				"time": {"metrics.start"}, "model": {"metadata.model"}, "session": {"metadata.session_id", "metadata.thread_id", "root_span_id"}, "user": {"metadata.user_id", "metadata.user"},
				"input_tokens": {"metrics.prompt_tokens"}, "output_tokens": {"metrics.completion_tokens"}, "cached_tokens": {"metrics.prompt_cached_tokens"},
				"written_tokens": {"metrics.prompt_cache_creation_tokens"}, "reasoning_tokens": {"metrics.completion_reasoning_tokens"}, "total_tokens": {"metrics.tokens"},
				"ttft_s": {"metrics.time_to_first_token"}, "error": {"error"}, "messages": {"input"}, "tools": {"metadata.tools"}, "output": {"output"},
			},
			counts: tokenusage.Inclusive,
			times:  latencyPaths{start: []string{"metrics.start"}, end: []string{"metrics.end"}},
			only:   []condition{{"span_attributes.type", "llm", noteNoModelCalls}},
			spans:  spanPaths{"root_span_id", "span_id", "span_parents"},
		},
		{
			name: "mlflow", tried: "3 traces of MLflow 3.17, of calls of a simulated server: 9 calls",
			about:   "MLflow traces: JSON with data.spans, or the spans",
			example: `{"info":{"trace_id":"t"},"data":{"spans":[{"span_id":"a","parent_id":null,"name":"chat","start_time_unix_nano":1767323045000000000,"end_time_unix_nano":1767323047000000000,"attributes":{"mlflow.spanType":"\"CHAT_MODEL\"","mlflow.llm.model":"m","mlflow.chat.tokenUsage":"{\"input_tokens\":900,\"output_tokens\":40,\"total_tokens\":940}"}}]}}`,
			keys:    []string{"info", "data.spans"},
			members: [][]string{{"data.spans"}},
			packed:  []string{"attributes.mlflow.spanType", "attributes.mlflow.llm.model", "attributes.mlflow.chat.tokenUsage", "attributes.mlflow.spanInputs", "attributes.mlflow.spanOutputs"},
			fields: Mapping{
				"time":       {"start_time_unix_nano", "start_time_ns", "start_time"},
				"model":      {"attributes.mlflow.llm.model", "attributes.mlflow.spanInputs.model"},
				"max_tokens": {"attributes.mlflow.spanInputs.max_completion_tokens", "attributes.mlflow.spanInputs.max_tokens"}, "temperature": {"attributes.mlflow.spanInputs.temperature"},
				"session": {"session_of_trace"}, "user": {"user_of_trace"},
				"messages": {"attributes.mlflow.spanInputs"}, "output": {"attributes.mlflow.spanOutputs"},
			},
			usage: []string{"attributes.mlflow.chat.tokenUsage", "attributes.mlflow.spanOutputs.usage"}, counts: tokenusage.Relayed,
			times: latencyPaths{[]string{"start_time_unix_nano", "start_time_ns", "start_time"}, []string{"first_chunk"}, []string{"end_time_unix_nano", "end_time_ns", "end_time"}},
			made:  mlflowMade,
			show:  showMLflow,
			only:  []condition{{"attributes.mlflow.spanType", "chat_model llm", noteNoModelCalls}},
			spans: spanPaths{"info.trace_id", "span_id", "parent_id"},
		},
		{
			name: "helicone", tried: fromDocumentation,
			about:   "Helicone requests: JSON or CSV",
			example: `{"request_id":"h1","request_created_at":"2026-01-02T03:04:05.100Z","response_status":200,"request_model":"m","delay_ms":1900,"time_to_first_token":400,"prompt_tokens":900,"prompt_cache_read_tokens":640,"completion_tokens":40,"request_user_id":"u","request_properties":{"Helicone-Session-Id":"s1"}}`,
			keys:    []string{"request_id", "request_created_at", "delay_ms"},
			packed:  []string{"request_properties", "properties", "request_body", "response_body"},
			fields: Mapping{
				"time": {"request_created_at"}, "model": {"request_model", "response_model", "model_override"}, "user": {"request_user_id"},
				"session":      {"request_properties.Helicone-Session-Id", "properties.Helicone-Session-Id"},
				"input_tokens": {"prompt_tokens"}, "output_tokens": {"completion_tokens"}, "cached_tokens": {"prompt_cache_read_tokens"}, "written_tokens": {"prompt_cache_write_tokens"}, "total_tokens": {"total_tokens"},
				"status": {"response_status"}, "ttft_ms": {"time_to_first_token"}, "e2e_ms": {"delay_ms"},
				"messages": {"request_body"}, "tools": {"request_body.tools"}, "output": {"response_body"}, "max_tokens": {"request_body.max_tokens"},
			},
			usage: []string{"response_body.usage"}, counts: tokenusage.Relayed,
			drop: []condition{{"cache_reference_id", "*", noteCacheAnswers}},
		},
		{
			name: "portkey", tried: fromDocumentation,
			about:   "Portkey's log export: JSON or CSV",
			example: `{"id":"p1","trace_id":"t1","created_at":"2026-01-02T03:04:07Z","ai_org":"openai","ai_model":"m","req_units":900,"res_units":40,"total_units":940,"response_time":1900,"response_status_code":200,"metadata":{"_user":"u"}}`,
			keys:    []string{"ai_model", "req_units", "created_at"},
			packed:  []string{"metadata", "request", "response"},
			fields: Mapping{
				"time": {"created_at"}, "model": {"ai_model"}, "session": {"trace_id"}, "user": {"metadata._user"},
				"input_tokens": {"req_units"}, "output_tokens": {"res_units"}, "total_tokens": {"total_units"},
				"status": {"response_status_code"}, "e2e_ms": {"response_time"}, "messages": {"request"}, "tools": {"request.tools"}, "output": {"response"},
			},
			usage: []string{"response.usage"}, counts: tokenusage.Relayed, ended: true,
			drop: []condition{{"cache_status", "hit", noteCacheAnswers}},
		},
	}
}

// gatewayFormats are the logs of gateways.
func gatewayFormats() []declaredFormat {
	return []declaredFormat{
		{
			name: "openrouter", tried: fromDocumentation,
			about: "OpenRouter's activity as CSV",
			example: "generation_id,created_at,tokens_prompt,tokens_completion,tokens_reasoning,tokens_cached,model_permaslug,cancelled,streamed,user,finish_reason_normalized,generation_time_ms,time_to_first_token_ms\n" +
				"gen-1767323045-abc,2026-01-02 03:04:05.100,900,40,12,640,openai/m,false,true,u,stop,1900,400",
			keys: []string{"generation_id", "tokens_prompt", "created_at"},
			fields: Mapping{
				"time": {"created_at"}, "model": {"model_permaslug", "model"}, "user": {"user"}, "replica": {"provider_name"}, "stream": {"streamed"},
				"input_tokens": {"native_tokens_prompt", "tokens_prompt"}, "output_tokens": {"native_tokens_completion", "tokens_completion"},
				"cached_tokens": {"native_tokens_cached", "tokens_cached"}, "reasoning_tokens": {"native_tokens_reasoning", "tokens_reasoning"},
				"finish_reason": {"finish_reason_normalized"}, "status": {"made_status"}, "ttft_ms": {"time_to_first_token_ms"}, "e2e_ms": {"generation_time_ms"},
			},
			counts: tokenusage.Inclusive,
			made:   map[string]string{"made_status": "cancelled"},
			show:   showOpenRouter,
		},
		{
			name: "openrouter-api", tried: fromDocumentation,
			about:   "OpenRouter's answers about generations (/api/v1/generation): JSON, one or several lines",
			example: `{"data":{"id":"gen-1767323045-abc","created_at":"2026-01-02T03:04:05.100Z","model":"openai/m","tokens_prompt":850,"tokens_completion":38,"native_tokens_prompt":900,"native_tokens_cached":640,"native_tokens_completion":40,"native_tokens_reasoning":12,"streamed":true,"cancelled":false,"latency":400,"generation_time":1900,"finish_reason":"stop","provider_name":"OpenAI"}}`,
			members: [][]string{{"data"}},
			fields: Mapping{
				"time": {"created_at"}, "model": {"model"}, "user": {"external_user"}, "replica": {"provider_name"}, "stream": {"streamed"},
				"input_tokens": {"native_tokens_prompt", "tokens_prompt"}, "output_tokens": {"native_tokens_completion", "tokens_completion"},
				"cached_tokens": {"native_tokens_cached"}, "reasoning_tokens": {"native_tokens_reasoning"},
				"finish_reason": {"finish_reason"}, "status": {"made_status"}, "ttft_ms": {"made_ttft"}, "e2e_ms": {"generation_time"},
			},
			counts: tokenusage.Inclusive,
			made:   map[string]string{"made_status": "cancelled", "made_ttft": "latency"},
			match: func(r row) bool {
				return hasAny(r, "data.native_tokens_prompt", "native_tokens_prompt") && hasAny(r, "data.created_at", "created_at") || isDailySum(r)
			},
			show:   showOpenRouter,
			refuse: []condition{{"requests", "*", noteDailySums}},
		},
		{
			name: "cloudflare", tried: fromDocumentation,
			about:   "Cloudflare AI Gateway logs: answers of its API, or JSON lines",
			example: `{"id":"c1","created_at":"2026-01-02T03:04:07Z","provider":"openai","model":"m","cached":false,"duration":1900,"tokens_in":900,"tokens_out":40,"status_code":200,"success":true,"step":0,"path":"chat/completions"}`,
			keys:    []string{"tokens_in", "tokens_out", "created_at"},
			packed:  []string{"metadata"},
			fields: Mapping{
				"time": {"created_at"}, "model": {"model"}, "user": {"metadata.user", "metadata.user_id"}, "session": {"metadata.session", "metadata.session_id"},
				"input_tokens": {"tokens_in"}, "output_tokens": {"tokens_out"}, "status": {"status_code"}, "e2e_ms": {"duration"},
			},
			counts: tokenusage.Relayed, ended: true,
			drop: []condition{{"cached", "true 1", noteCacheAnswers}},
		},
		{
			name: "kong", tried: fromDocumentation,
			about:   "Kong Gateway logs with AI Proxy's analytics: JSON lines or batches",
			example: `{"started_at":1767323045100,"response":{"status":200},"latencies":{"request":1910},"ai":{"proxy":{"meta":{"request_model":"m","llm_latency":1900},"usage":{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":640},"completion_tokens":40,"total_tokens":940,"time_to_first_token":400}}},"consumer":{"username":"u"}}`,
			keys:    []string{"started_at", "ai", "latencies"},
			packed:  []string{"ai.proxy.payload.request", "ai.proxy.payload.response"},
			fields: Mapping{
				"time": {"started_at"}, "model": {"ai.proxy.meta.response_model", "ai.proxy.meta.request_model"}, "user": {"consumer.username", "consumer.id"},
				"status": {"response.status"}, "ttft_ms": {"ai.proxy.usage.time_to_first_token"}, "e2e_ms": {"ai.proxy.meta.llm_latency", "latencies.request"},
				"messages": {"ai.proxy.payload.request"}, "tools": {"ai.proxy.payload.request.tools"}, "output": {"ai.proxy.payload.response"},
			},
			usage: []string{"ai.proxy.usage"}, counts: tokenusage.Relayed,
			drop: []condition{{"ai.proxy.cache.cache_status", "hit", noteCacheAnswers}},
		},
		{
			name: "envoy-ai-gateway", tried: fromDocumentation,
			about:   "Envoy AI Gateway's access log with gen_ai fields: JSON lines",
			example: `{"start_time":"2026-01-02T03:04:05.100Z","duration":"1900","response_code":"200","gen_ai.request.model":"m","gen_ai.usage.input_tokens":"900","gen_ai.usage.output_tokens":"40","session.id":"s1"}`,
			keys:    []string{"start_time", "response_code", "gen_ai.usage.input_tokens"},
			fields: Mapping{
				"time": {"start_time"}, "model": {"gen_ai.response.model", "gen_ai.request.model"}, "session": {"session.id"}, "user": {"user.id"},
				"input_tokens": {"gen_ai.usage.input_tokens"}, "output_tokens": {"gen_ai.usage.output_tokens"}, "total_tokens": {"gen_ai.usage.total_tokens"},
				"cached_tokens":    {"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_input_tokens"},
				"written_tokens":   {"gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"},
				"reasoning_tokens": {"gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"},
				"status":           {"response_code"}, "e2e_ms": {"duration"},
			},
			counts: tokenusage.Relayed,
		},
	}
}

// cloudFormats are the logs of clouds.
func cloudFormats() []declaredFormat {
	return []declaredFormat{
		{
			name: "azure-apim", tried: fromDocumentation,
			about: "Azure API Management's ApiManagementGatewayLlmLog: JSON or CSV, or an answer of Log Analytics",
			example: "TimeGenerated,CorrelationId,SequenceNumber,DeploymentName,ModelName,PromptTokens,CompletionTokens,TotalTokens,IsStreamCompletion\n" +
				"2026-01-02T03:04:05.1Z,x1,0,d,m,900,40,940,true",
			keys:   []string{"CorrelationId", "PromptTokens", "TimeGenerated"},
			packed: []string{"RequestMessages", "ResponseMessages"},
			fields: apimFields,
			counts: tokenusage.Inclusive,
			also:   isLLMTable,
			join: func(in rows, tell *notes) rows {
				return &apimRows{in: &tableRows{in: in}, tell: tell, open: map[string]*apimParts{}}
			},
			whole: []string{"tables", "CorrelationId", "SequenceNumber"},
		},
		{
			name: "bedrock", tried: "one record, of an article",
			about:   "AWS Bedrock's model invocation log: JSON lines",
			example: `{"schemaType":"ModelInvocationLog","schemaVersion":"1.0","timestamp":"2026-01-02T03:04:05Z","requestId":"b1","operation":"ConverseStream","modelId":"m","identity":{"arn":"a"},"input":{"inputContentType":"application/json","inputTokenCount":20,"cacheReadInputTokenCount":640,"cacheWriteInputTokenCount":240},"output":{"outputTokenCount":40}}`,
			keys:    []string{"schemaType", "modelId", "requestId"},
			fields: Mapping{
				"time": {"timestamp"}, "model": {"modelId"}, "user": {"identity.arn"}, "session": {"requestMetadata.session", "requestMetadata.session_id", "requestMetadata.conversation_id"},
				"input_tokens": {"input.inputTokenCount"}, "output_tokens": {"output.outputTokenCount"},
				"cached_tokens":  {"input.cacheReadInputTokenCount", "cacheReadInputTokenCount"},
				"written_tokens": {"input.cacheWriteInputTokenCount", "cacheWriteInputTokenCount"},
				"ttft_ms":        {"made_ttft"}, "e2e_ms": {"output.outputBodyJson.metrics.latencyMs", "made_e2e"}, "error": {"errorCode"},
				"finish_reason": {"output.outputBodyJson.stopReason", "output.outputBodyJson.stop_reason"},
				"max_tokens":    {"input.inputBodyJson.inferenceConfig.maxTokens", "input.inputBodyJson.max_tokens"},
				"messages":      {"input.inputBodyJson"}, "output": {"output.outputBodyJson"},
			},
			usage: []string{"output.outputBodyJson.usage"}, counts: tokenusage.Exclusive,
			only: []condition{{"schemaType", "ModelInvocationLog", noteNoModelCalls}},
			made: map[string]string{"made_ttft": "output.outputBodyJson", "made_e2e": "output.outputBodyJson"},
			show: showBedrockStream,
		},
		{
			name: "vertex", tried: fromDocumentation,
			about:   "Vertex AI's request-response log of Gemini models, as BigQuery exports it: JSON lines",
			example: `{"endpoint":"projects/p/locations/l/publishers/google/models/m","logging_time":"2026-01-02T03:04:07Z","request_id":"7","request_payload":["{\"contents\":[]}"],"response_payload":["{\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":900,\"cachedContentTokenCount\":640,\"candidatesTokenCount\":28,\"thoughtsTokenCount\":12}}"]}`,
			keys:    []string{"logging_time", "endpoint", "response_payload"},
			packed:  []string{"full_request", "request_payload", "response_payload"},
			fields: Mapping{
				"time": {"logging_time"}, "model": {"model_of_endpoint"},
				"e2e_ms": {"metadata.request_latency"}, "messages": {"made_request", "full_request"},
			},
			usage: []string{"made_usage"}, counts: tokenusage.Body, ended: true,
			made: map[string]string{"model_of_endpoint": "endpoint", "made_usage": "response_payload", "made_request": "request_payload"},
			show: showVertex,
		},
	}
}

// apimFields is where a call has its fields, once its rows are joined.
var apimFields = Mapping{
	"time": {"TimeGenerated"}, "model": {"ModelName", "DeploymentName"}, "replica": {"BackendId"}, "stream": {"IsStreamCompletion"},
	"input_tokens": {"PromptTokens"}, "output_tokens": {"CompletionTokens"}, "total_tokens": {"TotalTokens"}, "e2e_ms": {"TotalTime", "BackendTime"},
	"messages": {"RequestMessages"}, "output": {"ResponseMessages"},
}

// noteDailySums is said of OpenRouter's activity by day.
const noteDailySums = "it is a sum of a day (OpenRouter's /api/v1/activity), and single requests are not in it: export the activity page as CSV, or collect /api/v1/generation of each request"

func isDailySum(r row) bool {
	return hasAny(r, "date") && hasAny(r, "requests") && hasAny(r, "usage") && hasAny(r, "model_permaslug", "endpoint_id")
}

// showOpenRouter tells what was cancelled, and takes the latency for that of the first token
// where it is less than the whole.
func showOpenRouter(v viewRow) {
	if (condition{path: "cancelled", values: "true 1"}).holds(v) {
		v.put("made_status", "cancelled", "cancelled")
	}
	latency, _ := v.value("latency")
	whole, _ := v.value("generation_time")
	first, err := strconv.ParseFloat(plain(latency), 64)
	last, err2 := strconv.ParseFloat(plain(whole), 64)
	if err == nil && err2 == nil && first < last {
		v.put("made_ttft", latency, "latency")
	}
}

// showBedrockStream finds the latencies of a streamed answer, which is a list of chunks.
func showBedrockStream(v viewRow) {
	found, _ := v.value("output.outputBodyJson")
	chunks, _ := found.([]any)
	for _, chunk := range chunks {
		for to, paths := range map[string][]string{
			"made_ttft": {"amazon-bedrock-invocationMetrics.firstByteLatency"},
			"made_e2e":  {"amazon-bedrock-invocationMetrics.invocationLatency", "metadata.metrics.latencyMs", "metrics.latencyMs"},
		} {
			for _, path := range paths {
				if n, ok := lookup(chunk, path); ok {
					v.put(to, n, "output.outputBodyJson")
				}
			}
		}
	}
}

// mlflowMade is where [showMLflow] takes what it makes from.
var mlflowMade = map[string]string{
	"session_of_trace": "info.trace_metadata.mlflow.trace.session|info.request_metadata.mlflow.trace.session",
	"user_of_trace":    "info.trace_metadata.mlflow.trace.user|info.request_metadata.mlflow.trace.user",
	"first_chunk":      "events[].name|events[].time_unix_nano",
}

// showMLflow gives a span what its trace says of all, and finds its first token: the
// chunks of a stream are events.
func showMLflow(v viewRow) {
	if span, ok := v.row.(memberRow); ok {
		for _, name := range []string{"session_of_trace", "user_of_trace"} {
			if found, path, ok := findFirst(span.row, strings.Split(mlflowMade[name], "|")); ok {
				v.put(name, found, path)
			}
		}
	}
	found, _ := v.value("events")
	events, _ := found.([]any)
	for _, event := range events {
		if name, _ := lookup(event, "name"); plain(name) == "mlflow.chunk.item.0" {
			if at, ok := lookup(event, "time_unix_nano"); ok {
				v.put("first_chunk", at, "events")
			}
		}
	}
}

// showVertex puts the pieces of payloads together: of a request they are one JSON, of an
// answer chunks, the last of which has the counts.
func showVertex(v viewRow) {
	endpoint, _ := v.value("endpoint")
	if path := plain(endpoint); path != "" {
		v.put("model_of_endpoint", path[1+strings.LastIndexByte(path, '/'):], "endpoint")
	}
	var request string
	pieces, _ := v.value("request_payload")
	list, _ := pieces.([]any)
	for _, piece := range list {
		request += plain(piece)
	}
	if body, _, ok := decodeJSON([]byte(request)); ok {
		v.put("made_request", body, "request_payload")
	}
	chunks, _ := v.value("response_payload")
	list, _ = chunks.([]any)
	for _, chunk := range list {
		body, _, _ := decodeJSON([]byte(plain(chunk)))
		for _, name := range []string{"usageMetadata", "usage"} { // Gemini's, and that of other publishers
			if usage, ok := lookup(body, name); ok {
				v.put("made_usage", usage, "response_payload")
			}
		}
	}
}
