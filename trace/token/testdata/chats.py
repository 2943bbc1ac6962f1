"""Writes chats.json beside a tokenizer.json and a chat template: chats, and what Hugging Face makes of them.

    python3 chats.py DIRECTORY...    # needs Jinja2 3.1 and tokenizers 0.23

The template is chat_template.jinja, or that of tokenizer_config.json, set up as transformers sets it up. Arguments of calls
are objects and a missing content is an empty text, as vLLM passes them, but for a template that adds arguments to a text.
"""
import datetime
import json
import pathlib
import sys
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city, e.g. \"São Paulo\" <now> & 'later'", "parameters": {
    "type": "object", "properties": {
        "zone": {"type": "string", "description": "The city"},
        "days": {"type": "integer", "default": 3},
        "units": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "at": {"type": "array", "items": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat"]}},
        "tags": {"type": "array", "items": {"type": "string"}, "nullable": True},
        "any": {"type": "array"},
        "kind": {"type": ["string", "null"]},
        "one": {"oneOf": [{"type": "string", "description": "a name", "default": "x"}, {"type": "number"}]},
        "flag": {"type": "boolean", "description": "yes or no", "default": False},
        "free": {"type": "object"},
        "nested": {"type": "object", "properties": {"a": {"type": "string", "nullable": True}, "b": {}}},
    }, "required": ["zone", "at"]}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}, "required": ["b", "a"]}}}
PING = {"type": "function", "function": {"name": "ping", "description": "Ping"}}


def user(s): return {"role": "user", "content": s}
def system(s): return {"role": "system", "content": s}
def said(s): return {"role": "assistant", "content": s}
def result(s): return {"role": "tool", "content": s, "tool_call_id": "abcdefghi"}
def call(*calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": n, "arguments": json.dumps(a, ensure_ascii=False)}} for n, a in calls]}


CHATS = [
    ([user("Hello")], None),
    ([system("Be brief."), user("Hello")], None),
    ([system(" Be brief.\n"), user(" Hello \n"), said("Hi there!  "), user("\n\nZürich 東京 é? 12345")], None),
    ([user("a"), said("b"), user("c"), said("<think>\nhm\n</think>\n\nd"), user("e")], None),
    ([system("s"), user("one\n"), said("two\n\n"), user("  three"), said("\tfour"), user("five")], None),
    ([user("")], None),
    ([user("Weather?")], [WEATHER]),
    ([system("You are a bot."), user("Weather in Paris?"), call(("get_weather", {"zone": "Paris", "days": 2})), result('{"t": 21, "s": "é\\n"}'), said("21 degrees."), user("And \"Rome\"?")], [WEATHER, ADD, PING]),
    ([user("Weather in Paris?"), call(("get_weather", {"zone": "Zürich", "x": 1.0, "y": [None, True]})), result("21")], [WEATHER]),
    ([user("Two?"), call(("add", {"b": 1, "a": 2}), ("add", {"b": 3, "a": 4}), content="Let me add."), result("3"), result("7"), said("3 and 7")], [ADD]),
    ([user("Then"), call(("ping", {})), result("pong"), said("ok"), user("Again"), call(("ping", {}), content="Sure."), result("pong")], [PING]),
    ([user("x"), said("y"), user("z"), said("w"), user("last")], [ADD]),
]


def template(directory):
    config = directory / "tokenizer_config.json"
    config = json.loads(config.read_text()) if config.exists() else {}
    file = directory / "chat_template.jinja"
    text = file.read_text() if file.exists() else config["chat_template"]
    spelled = lambda t: t["content"] if isinstance(t, dict) else t or ""
    return text, spelled(config.get("bos_token")), spelled(config.get("eos_token"))


def prepared(m, plain):
    m = dict(m)
    if "tool_calls" in m and plain:
        m["content"] = m["content"] or None
    elif "tool_calls" in m:
        m["tool_calls"] = [{**c, "function": {**c["function"], "arguments": json.loads(c["function"]["arguments"])}} for c in m["tool_calls"]]
    return m


def render(text, bos, eos, messages, tools):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 5, 1, 12, 0, 7).strftime(f)
    plain = "['arguments'] + " in text
    return env.from_string(text).render(messages=[prepared(m, plain) for m in messages], tools=tools, documents=None,
                                        add_generation_prompt=True, bos_token=bos, eos_token=eos)


def main():
    for directory in map(pathlib.Path, sys.argv[1:]):
        tok = Tokenizer.from_file(str(directory / "tokenizer.json"))
        text, bos, eos = template(directory)
        out = []
        for messages, tools in CHATS:
            try:
                prompt = render(text, bos, eos, messages, tools)
            except Exception as e:
                print(f"{directory}: left out: {e}", file=sys.stderr)
                continue
            out.append({"messages": messages, "tools": tools, "prompt": prompt, "ids": tok.encode(prompt, add_special_tokens=False).ids})
        (directory / "chats.json").write_text(json.dumps(out, ensure_ascii=False))


if __name__ == "__main__":
    main()
