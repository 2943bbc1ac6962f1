#!/usr/bin/env python3
"""Counts the calls and tokens of real exports, written apart from the readers in Go.

    count.py FORMAT FILE...

Prints a line of JSON for each file: requests, input, output, cached and reasoning tokens.
A test of package datasets compares these with what the readers make of the same files.
"""
import gzip
import json
import sys


def langfuse(path):
    """Observations of a downloaded trace: the innermost generations."""
    document = json.load(open(path))
    observations = document["observations"] if isinstance(document, dict) else document
    generations = {o["id"]: o for o in observations if o["type"] == "GENERATION"}
    parent = {o["id"]: o.get("parentObservationId") for o in observations}
    outer = set()
    for generation in generations:
        above = parent.get(generation)
        while above:
            outer.add(above)
            above = parent.get(above)
    for name, o in generations.items():
        usage = o.get("usageDetails") or {}
        if name in outer or not usage and not o.get("input"):
            continue
        parts = {k: v for k, v in usage.items() if k != "total" and "_details." not in k}
        prompt = sum(v for k, v in parts.items() if "input" in k)
        answer = sum(v for k, v in parts.items() if "output" in k)
        if usage.get("input", 0) + usage.get("output", 0) == usage.get("total"):
            prompt, answer = usage.get("input", 0), usage.get("output", 0)
        cached = sum(v for k, v in usage.items() if "cache" in k and "creat" not in k and "write" not in k)
        reasoning = sum(v for k, v in usage.items() if "reasoning" in k)
        yield prompt, answer, cached, reasoning


def aibrix(path):
    """Workloads: each line has the requests of one instant."""
    for line in open(path):
        if line.strip():
            for request in json.loads(line)["requests"]:
                yield request["Prompt Length"], request["Output Length"], 0, 0


def trie(path):
    """Sessions: each call has the prompt of the one before, its answer and its tool's output."""
    for line in open(path):
        row = json.loads(line)
        prompt = row["input_prompt_length"]
        for answer, observed in zip(row["assistant_response_length"], row["tool_call_output_length"]):
            yield prompt, answer, 0, 0
            prompt += answer + observed
        yield prompt, row["final_assistant_response_length"], 0, 0


def langsmith(path):
    """Runs as the SDK sends them, of models only."""
    for line in open(path):
        run = json.loads(line)
        usage = (run.get("outputs") or {}).get("usage_metadata") or {}
        if run["run_type"] == "llm":
            cached = (usage.get("input_token_details") or {}).get("cache_read", 0)
            reasoning = (usage.get("output_token_details") or {}).get("reasoning", 0)
            yield usage.get("input_tokens", 0), usage.get("output_tokens", 0), cached, reasoning


def mlflow(path):
    """Spans of models; attributes are JSON in strings."""
    for line in open(path):
        for span in json.loads(line)["data"]["spans"]:
            attributes = {k: json.loads(v) for k, v in span["attributes"].items()}
            usage = attributes.get("mlflow.chat.tokenUsage")
            if attributes["mlflow.spanType"] in ("CHAT_MODEL", "LLM") and usage:
                answer = attributes.get("mlflow.spanOutputs")
                details = ((answer.get("usage") or {}) if isinstance(answer, dict) else {}).get("completion_tokens_details") or {}
                cached = usage.get("cache_read_input_tokens", 0)
                yield usage["input_tokens"], usage["output_tokens"], cached, details.get("reasoning_tokens", 0)


def otel_genai(path):
    """Spans with usage, flat or in OTLP, in the words of OpenTelemetry or OpenInference."""
    for line in open(path):
        document = json.loads(line)
        spans = [document]
        if "resourceSpans" in document:
            spans = [s for r in document["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
        for span in spans:
            found = span.get("attributes") or {}
            if isinstance(found, list):
                found = {a["key"]: next(iter(a["value"].values())) for a in found}

            def number(*names):
                return next((int(found[n]) for n in names if n in found), None)

            prompt = number("gen_ai.usage.input_tokens", "llm.token_count.prompt")
            if prompt is not None:
                cached = number("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read")
                reasoning = number("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "llm.token_count.completion_details.reasoning")
                yield prompt, number("gen_ai.usage.output_tokens", "llm.token_count.completion"), cached, reasoning


def api_log(path):
    """Bodies of requests and responses, whole or as events of a stream."""
    for line in open(path):
        body = json.loads(line)["response"]
        events = [body]
        if isinstance(body, str) and body.lstrip().startswith("{"):
            events = [json.loads(body)]
        elif isinstance(body, str):
            data = [piece[5:].strip() for piece in body.splitlines() if piece.startswith("data:")]
            events = [json.loads(piece) for piece in data if piece.startswith("{")]
        usage = {}
        for event in events:
            for holder in (event, event.get("message"), event.get("response")):
                if isinstance(holder, dict):
                    found = holder.get("usage") or {}
                    usage.update({k: v for k, v in found.items() if v is not None})
        if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
            cached = usage.get("cache_read_input_tokens", 0)
            prompt = usage["input_tokens"] + cached + usage.get("cache_creation_input_tokens", 0)
        else:
            prompt = usage.get("prompt_tokens", usage.get("input_tokens", 0))
            details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
            cached = details.get("cached_tokens", 0)
        details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
        answer = usage.get("completion_tokens", usage.get("output_tokens", 0))
        yield prompt, answer, cached, details.get("reasoning_tokens", details.get("thinking_tokens", 0))


def dynamo_requests(path):
    """Request ends of Dynamo's request trace, compressed as it writes them."""
    for line in gzip.open(path):
        record = json.loads(line)["event"]
        if record["event_type"] == "request_end":
            request = record["request"]
            yield request["input_tokens"], request["output_tokens"], request.get("cached_tokens", 0), 0


def trtllm_trace(path):
    """Messages of the assistant in an execution trace; compact and whole ones are alike."""
    for event in json.load(open(path))["events"]:
        if event["event_type"] == "message" and event["role"] == "assistant":
            yield event["prompt_tokens"], event["completion_tokens"], 0, event.get("reasoning_tokens")


def main():
    count = globals()[sys.argv[1].replace("-", "_")]
    for path in sys.argv[2:]:
        rows = list(count(path))
        totals = [sum(row[i] or 0 for row in rows) for i in range(4)]
        print(json.dumps([len(rows), *totals]))


if __name__ == "__main__":
    main()
