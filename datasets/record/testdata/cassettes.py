"""Makes the samples of TestSamples of recorded HTTP exchanges (VCR cassettes in YAML):

    python3 cassettes.py FOLDER > $REPRISE_TEST_SAMPLES/exchanges.jsonl

Each line has a request, the server's answer, and what the answer says, counted here and
not by the code under test.
"""
import glob, json, sys, yaml

PATHS = ("/chat/completions", "/responses", "/v1/messages", "/embeddings")


def events(text):
    for block in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(l[5:].lstrip(" ") for l in block.split("\n") if l.startswith("data:"))
        if data and data.strip() != "[DONE]":
            try:
                yield json.loads(data)
            except ValueError:
                pass


def openai(usage, out):
    usage = usage or {}
    out["input"] = usage.get("prompt_tokens", usage.get("input_tokens"))
    out["output"] = usage.get("completion_tokens", usage.get("output_tokens"))
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    out["cached"] = details.get("cached_tokens")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    out["reasoning"] = details.get("reasoning_tokens")


def anthropic(usage, out):
    if usage.get("input_tokens") is not None:
        out["input"] = usage["input_tokens"] + (usage.get("cache_creation_input_tokens") or 0) + (usage.get("cache_read_input_tokens") or 0)
    out["output"] = usage.get("output_tokens", out.get("output"))
    out["cached"] = usage.get("cache_read_input_tokens", out.get("cached"))
    out["reasoning"] = (usage.get("output_tokens_details") or {}).get("thinking_tokens")


def expect(path, answer, streamed):
    out = {"input": None, "output": None, "cached": None, "reasoning": None, "text": ""}
    if path.endswith("/v1/messages"):
        if streamed:
            usage = {}
            for e in events(answer):
                if e.get("type") == "message_start":
                    usage.update({k: v for k, v in e["message"]["usage"].items() if v is not None})
                elif e.get("type") == "content_block_start":
                    out["text"] += e["content_block"].get("text") or ""
                elif e.get("type") == "content_block_delta":
                    out["text"] += e["delta"].get("text") or ""
                elif e.get("type") == "message_delta":
                    usage.update({k: v for k, v in (e.get("usage") or {}).items() if v is not None})
            anthropic(usage, out)
        else:
            anthropic(answer.get("usage") or {}, out)
            out["text"] = "\n".join(p["text"] for p in answer.get("content") or [] if p.get("type") == "text" and p["text"])
    elif path.endswith("/responses"):
        if streamed:
            for e in events(answer):
                if e.get("type") == "response.output_text.delta":
                    out["text"] += e["delta"]
                if e.get("type") in ("response.completed", "response.incomplete"):
                    openai(e["response"].get("usage"), out)
        else:
            openai(answer.get("usage"), out)
            out["text"] = "".join("\n".join(p["text"] for p in i.get("content") or [] if p.get("text")) for i in answer.get("output") or [] if i.get("type") == "message")
    elif streamed:
        usage = None
        for e in events(answer):
            if e.get("usage"):
                usage = e["usage"]
            for c in e.get("choices") or []:
                if c.get("index", 0) == 0:
                    content = (c.get("delta") or {}).get("content")
                    out["text"] += content if isinstance(content, str) else ""
        openai(usage, out)
    else:
        openai(answer.get("usage"), out)
        for c in (answer.get("choices") or [])[:1]:
            content = (c.get("message") or {}).get("content")
            out["text"] = content if isinstance(content, str) else ""
    return out


for name in sorted(glob.glob(sys.argv[1] + "/**/*.yaml", recursive=True)):
    for i in yaml.load(open(name), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)).get("interactions") or []:
        q, a = i["request"], i["response"]
        path = q["uri"].split("?")[0]
        path = path[path.index("/", 8):]
        if q["method"] != "POST" or not path.endswith(PATHS):
            continue
        body = q.get("parsed_body")
        if body is None:
            try:
                body = json.loads(q.get("body") or "")
            except (TypeError, ValueError):
                continue
        kind = (a["headers"].get("content-type") or [""])[0]
        streamed = kind.startswith("text/event-stream")
        answer = a.get("parsed_body")
        text = (a.get("body") or {}).get("string") if answer is None else json.dumps(answer, ensure_ascii=False)
        if not isinstance(text, str):
            continue
        if answer is None and not streamed:
            try:
                answer = json.loads(text)
            except ValueError:
                continue
        status = a.get("status", {}).get("code", 200)
        failed = status >= 400 or streamed and any(e.get("error") or e.get("type") == "error" for e in events(text)) or not streamed and not ({"choices", "content", "output", "data"} & set(answer))
        print(json.dumps({"name": name.split("/")[-1], "path": path, "request": json.dumps(body, ensure_ascii=False), "status": status, "type": kind, "answer": text,
                          "want": expect(path, text if streamed else answer, streamed) if not failed else None}))
