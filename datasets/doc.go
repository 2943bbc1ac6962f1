// Package datasets reads the logs and traces of other tools as trace entries.
//
// A source goes through these steps:
//
//  1. [OpenFiles] looks at the first 64 KiB and recognises the format by its
//     content, unless [Options] name one.
//  2. The decoder of the format takes one record at a time: a line, a CSV row, or
//     an element of a JSON array. Memory holds one record, whatever the size of
//     the source.
//  3. Times become instants. The first records tell their unit, which [Info]
//     reports. A time that can be read in two ways is an error. Relative times
//     count from [Epoch].
//  4. [Source.Read] returns [trace.Entry] values, which may hold prompt text and
//     so go to package anonymize and nowhere else. A bad record is located,
//     counted and skipped. Too many of them, or an input that ends in the middle
//     of a record, stop the reading.
//  5. [Timed] gives arrivals to a source that has no times.
//
// Errors name the file, the line and the column, and never quote the input.
//
// [Formats] lists the formats. Each has a file of its own, named for its family:
// log_ for the logs of gateways, engines and observers, trace_ for times and
// lengths, chat_ for collections of conversations, pool_ for descriptions of clients,
// and agent_ for the session files of agents. Package datasets/export writes some.
//
// [Demo] opens a small log that was made for this project, so that everything can
// be tried without data of one's own.
//
// # Files
//
//   - formats.go: the list of all formats, and how one is chosen by --format or by content;
//     the generic formats jsonl, csv and parquet, which need a mapping
//   - format.go: what a format is, as readers.yaml describes it; files of records, one or several
//   - detect.go: the choice among the formats that fit, by the keys that each knows; files
//     of several formats in one folder
//   - detect_servers.go: texts that are the logs of servers without requests, by server
//   - input.go: OpenFiles; several files read as one source, with their places; empty files
//   - share.go: one of several equal shares of the files; what shares found, as if they were one
//   - source.go: Options, Info and Source: entries one at a time, bad records counted and
//     skipped, when too many stop the reading
//   - rows_packed.go: JSON packed as a string in a field that a mapping leads into
//   - mapping.go: --map target=path: the targets (time, user, session, model, status, ttft,
//     blocks and so on), how each value is read, and the checks of an entry; lengths that
//     nothing tells
//   - mapped.go: rows of JSON, CSV or Parquet, decoded by a mapping: times set, turns numbered
//     within a session; formats that add steps of their own
//   - blockids.go: ids of prefix blocks that a source gives: how many fit a length, fresh ones for
//     ends without any, ids that cannot be of contents
//   - mapped_absent.go: fields that --map names and no record has
//   - response_chains.go: requests that go on from an earlier answer by its id: their prompts
//     put together, what they waited for
//   - inspect.go: Inspect: the fields of a source with their types, without text
//   - inspect_propose.go: which field is the time, the prompt, its length and so on, by name
//     and type; the name that is nearest to a misspelt one
//   - spans.go: the calls among the spans of traces, each once: layers, sums, spans exported twice
//   - mapped_counts.go: counts that --map names: sums, cached tokens beside the input, zeros,
//     totals of sessions
//   - inspect_usage.go: what the counts of a log count, by their names; the sums that they make, where they are split
//   - usage.go: where the usage objects and counts of a record stand; what they say is
//     [reprise/trace/usage]'s to know
//   - fields.go: which fields of a source were read and how many were not, by kind, for the
//     card; fields that are not read are taken away
//   - arrivals.go: arrivals for sources without times, and start times for sessions whose
//     times count from their own start
//   - bodies.go: the members of the bodies of requests that a raw file keeps beside text and tools
//   - endings.go: what became of a request, by its finish reason and the errors of its answer
//   - embedded.go: the demo log and the built-in workloads
//   - log_openai.go: openai-log, JSON lines of a gateway: messages, response, usage,
//     status, latency
//   - log_batch.go: openai-batch: requests and responses of OpenAI's Batch API and vLLM's
//     run_batch, joined by custom_id
//   - log_declared.go: the one reader of declared formats: paths, counts, conditions
//   - formatfile.go: the declarations as files, embedded ones in formats/ and a user's own
//   - log_declared_code.go: code of formats that need more than a mapping
//   - log_apim.go: azure-apim: calls joined of their rows, and the tables of Log Analytics
//   - log_sglang.go: the text log of SGLang, as records of its JSON log
//   - log_api.go: api-log, bodies of Anthropic Messages, OpenAI Responses and Chat; streams;
//     har, the same in HTTP archives
//   - log_langfuse.go: langfuse, observations in all forms of export: generations, those
//     recorded twice, usage by type, traces as sessions
//   - log_langfuse_links.go: langfuse: agents, tools and what calls of a trace waited for
//   - log_litellm.go: litellm-spend and litellm-log: spend logs and the query that exports
//     them, logging payloads, cut prompts, logged block hashes
//   - log_otel.go: otel-genai, spans of OpenTelemetry: gen_ai attributes, messages in
//     parts, finish reasons
//   - log_openinference.go: otel-genai, the attributes of OpenInference (Phoenix) and other
//     numbered ones, columns of attributes, events
//   - log_vllm.go: vllm-log, the text log of a server: its lines, dates without a year,
//     --max-log-len
//   - log_vllm_requests.go: vllm-log: requests joined by id until their end; prompts and
//     parameters in Python's repr; colours of a terminal
//   - chat_sharegpt.go: sharegpt, conversations: turns in either spelling, split chats put
//     together, an entry for each reply
//   - chat_forms.go: the forms of a chat: lists of turns, pairs, rows of one message, rounds;
//     calls of tools; messages and replies made of turns
//   - chat_dataset.go: chats, data sets of whole chats in all these forms, told from requests
//   - chat_wildchat.go: wildchat and lmsys, conversations as Parquet or JSON lines
//   - trace_bailian.go: bailian, the Qwen usage traces: 16-token blocks, chat_id and
//     parent_chat_id, turns
//   - trace_baseten.go: baseten, completion traces: total_hashes chained to block ids,
//     cancelled requests
//   - trace_blis.go: blis, TraceV2 of a simulator: CSV with a YAML header, prefix groups,
//     rounds, chunk times
//   - trace_dynamo.go: dynamo and aiperf, rows of Mooncake's kind with sessions: delays,
//     wait_for, tool waits, rows that hold a whole context or only the new part
//   - trace_dynamo_requests.go: dynamo-requests, Dynamo's own request trace: hashes, agents
//     as a tree, tool time
//   - trace_mooncake.go: mooncake: timestamp, lengths and hash_ids of 512-token blocks, by
//     a fast parser
//   - trace_tracelab.go: tracelab and tracelab-sessions, rounds of coding agents: events,
//     tool waits, prefix lengths
//   - trace_rollouts.go: rl-rollouts and trie, whole trajectories by lengths
//   - trace_trtllm.go: trtllm-trace, execution traces of TensorRT-LLM's scaffolding: branches,
//     tools, blocks of conversations and system prompts
//   - trace_weka.go: weka, conversations of coding agents: block ids of a conversation
//   - trace_weka_plan.go: weka: subagents, threads, what a request waits for
//   - trace_weka_chains.go: weka: agents in one list, told apart by their blocks
//   - agents.go: calls of an agent's session files, put in the order of their arrivals;
//     what they waited for, think time and tool time
//   - agent_claude.go: claude-code, sessions of Claude Code: the records of a call, copies
//   - agent_claude_links.go: claude-code: what a call waited for, sub-agents, arrivals
//   - agent_codex.go: codex, sessions of Codex CLI: usage of calls, arrivals
//   - agent_codex_threads.go: codex: forks and sub-agents, what they copied
//   - agent_openhands.go: openhands, results with the usage and the latency of each call
//   - agent_swe.go: swe-agent, trajectories, whose lengths are counted from their text
//   - agent_gemini.go: gemini-cli, sessions of Gemini CLI: rewinds, messages written again
//   - agent_qwen.go: qwen-code, sessions of Qwen Code
//   - agent_cline.go: cline, tasks of Cline and Roo Code
//   - agent_opencode.go: opencode, exported sessions of OpenCode
//   - agent_aider.go: aider, the analytics log: events, chats
//   - pool_servegen.go: servegen, pools of clients: requests drawn by time from the windows
//     of each client
//   - pool_servegen_files.go: servegen: the files of a client, rates by window and
//     distributions of lengths
//
// The rooms below it, from the bottom up, are internal packages:
//
//   - fault: faults of an input and their place; notes that count
//   - record: bytes cut into records
//   - stamp: times as they are written, and the clock that turns them into instants
//   - row: values by path, of JSON, CSV and Parquet; fields that are not read; views
//   - sniff: how an input begins, and detectors of formats by that
//   - input: files and folders; members of archives, Arrow and the logs of containers
//   - talk: messages, tools, prompts and replies in the forms of all APIs
//
// Exported names may change in any release.
package datasets
