#!/usr/bin/env python3
"""Counts the calls and tokens in session files of agents, apart from the readers in Go.

    agents.py FORMAT FOLDER

Prints a line of JSON: calls, input, output, cached and reasoning tokens, and parts of
them that the readers estimate.
A test of package datasets compares it with what the reader makes of the same folder.
"""
import datetime
import json
import pathlib
import sys


def lines(folder, pattern="*.jsonl"):
    for path in sorted(pathlib.Path(folder).rglob(pattern)):
        for line in open(path, encoding="utf-8"):
            if line.lstrip().startswith("{"):
                yield json.loads(line)


def claude_code(folder):
    """A call for each message.id and request; of its records the largest output, and its size."""
    calls, seen = {}, set()
    for r in lines(folder):
        m = r.get("message")
        if r.get("type") != "assistant" or not m.get("usage") or m.get("model") == "<synthetic>":
            continue
        usage = m["usage"]
        parts = [usage.get(k, 0) for k in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
        if r.get("isApiErrorMessage") or not sum(parts) + usage["output_tokens"]:
            continue
        call = calls.setdefault((m.get("id", r["uuid"]), r.get("requestId")), {"out": -1, "bytes": 0, "stop": None})
        if usage["output_tokens"] >= call["out"]:
            call.update(out=usage["output_tokens"], prompt=sum(parts), cached=parts[2])
        call["stop"] = call["stop"] or m.get("stop_reason")
        if r["uuid"] not in seen:
            seen.add(r["uuid"])
            for block in m["content"]:
                tool = json.dumps(block["input"], ensure_ascii=False, separators=(",", ":")) if "input" in block else ""
                call["bytes"] += len((block.get("text", "") + block.get("thinking", "") + tool).encode())
    for call in calls.values():
        guessed = call["stop"] is None and call["out"] * 8 < call["bytes"]
        yield call["prompt"], call["bytes"] // 3 if guessed else call["out"], call["cached"], 0


def codex(folder):
    """A call for each token_count of which the total is another than the one before."""
    for path in sorted(pathlib.Path(folder).rglob("*.jsonl")):
        before = None
        began = {}  # turns that began long before they were written were copied from another session
        copied = False
        for r in lines(path.parent, path.name):
            payload = r["payload"]
            if payload.get("type") == "task_started" and "forked_from_id" in began:
                written = datetime.datetime.fromisoformat(r["timestamp"].replace("Z", "+00:00")).timestamp()
                copied = written - payload["started_at"] > 60
            if r["type"] == "session_meta" and not began:
                began = payload
            info = payload.get("info") if payload.get("type") == "token_count" else None
            if info and info["total_token_usage"] != before:
                total = info["total_token_usage"]
                u = info.get("last_token_usage") or {k: n - (before or {}).get(k, 0) for k, n in total.items()}
                before = total
                if sum(u.values()) and not copied:
                    yield u["input_tokens"], u["output_tokens"], u["cached_input_tokens"], u["reasoning_output_tokens"]


def openhands(folder):
    """The usage of every call that has an event."""
    for r in lines(folder):
        events = {((e.get("tool_call_metadata") or {}).get("model_response") or {}).get("id") for e in r["history"]}
        for u in r["metrics"]["token_usages"]:
            if u["response_id"] in events:
                yield u["prompt_tokens"], u["completion_tokens"], u["cache_read_tokens"], 0


def cline(folder):
    """The messages that tell of a call, each at its own time."""
    for path in pathlib.Path(folder).rglob("ui_messages.json"):
        for m in json.load(open(path, encoding="utf-8")):
            if m.get("say") == "api_req_started":
                u = json.loads(m["text"])
                if "tokensIn" in u and "tokensOut" in u:
                    yield u["tokensIn"] + u["cacheReads"] + u["cacheWrites"], u["tokensOut"], u["cacheReads"], 0


def gemini_cli(folder):
    """The answers, each as it was last written; thoughts stand beside the output."""
    answers = {}
    for r in lines(folder):
        if r.get("type") == "gemini" and r.get("tokens"):
            answers[r["id"]] = r["tokens"]
    for u in answers.values():
        yield u["input"], u["output"] + u["thoughts"], u["cached"], u["thoughts"]


def qwen_code(folder):
    """The answers; what is no prompt of the total is the output."""
    for r in lines(folder):
        u = r.get("usageMetadata")
        if r.get("type") == "assistant" and u:
            yield u["promptTokenCount"], u["totalTokenCount"] - u["promptTokenCount"], u["cachedContentTokenCount"], u["thoughtsTokenCount"]


def opencode(folder):
    """The sums that each session gives of itself, and its answers with tokens."""
    for path in pathlib.Path(folder).rglob("*.json"):
        session = json.load(open(path, encoding="utf-8"))
        answers = sum(1 for m in session["messages"] if (m["info"].get("tokens") or {}).get("total"))
        u = session["info"]["tokens"]
        cache = u["cache"]
        yield u["input"] + cache["read"] + cache["write"], u["output"] + u["reasoning"], cache["read"], u["reasoning"]
        for _ in range(answers - 1):
            yield 0, 0, 0, 0


def weka(folder):
    """Requests, with those of subagents."""
    def flat(requests):
        for r in requests:
            if r["type"] == "subagent":
                yield from flat(r["requests"])
            else:
                yield r["in"], r["out"], 0, 0
    for path in sorted(pathlib.Path(folder).rglob("*.json")):
        yield from flat(json.load(open(path))["requests"])


def aider(folder):
    """The messages that were sent."""
    for r in lines(folder):
        if r["event"] == "message_send":
            yield r["properties"]["prompt_tokens"], r["properties"]["completion_tokens"], 0, 0


def swe_agent(folder):
    """The answers; their tokens are not in the file."""
    for path in pathlib.Path(folder).rglob("*.traj"):
        for m in json.load(open(path))["history"]:
            if m["role"] == "assistant" and not m.get("is_demo"):
                yield 0, 0, 0, 0


def main():
    rows = list(globals()[sys.argv[1].replace("-", "_")](sys.argv[2]))
    print(json.dumps([len(rows)] + [sum(row[i] for row in rows) for i in range(4)]))


if __name__ == "__main__":
    main()
