#!/usr/bin/env python3
"""Make test vectors for tokenizer.json files with the reference, Hugging Face's tokenizers (pip install tokenizers).

    vectors.py OUT NAME=path/to/tokenizer.json ...   OUT/NAME/tokenizer.json and OUT/NAME/vectors.json for each
    vectors.py OUT --variants NAME=...               the same for files derived from it by changing one setting
    vectors.py --trained hf.json.gz                  small tokenizers of every family, trained here, with their vectors

The tests of the package read OUT if REPRISE_TEST_TOKENIZERS names it, and are skipped otherwise; they always read
hf.json.gz. The ids are those without special tokens: nothing is added, and their spelling is plain text.
"""
import copy, gzip, json, os, pathlib, random, sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers, Regex

ALPHABET = (
    "aabcdeEFGsSmMtTdDrReElLvV''''      \n\n\r\t0123./,!\"-_<>|\u0301\u0902éÉǅʰª中文ひカ한İ\u00a0\u3000١½²\u2028\u0085\u0007"
    "😀\u200d\ufe0f\ufffd\u2581ſ、。「」＊"
)
HAND = [
    "", " ", "  ", "\n", "\n\n", "\t", "a", " a", "a ", "  a  ", "Hello, world!", "hello  world", "   three spaces",
    "I'm you're he'll they've she'd it's don't I'M YOU'RE HE'LL THEY'VE SHE'D IT'S DON'T", "'s's 's", "a'ſ'type'S", "'tis 'twas",
    "1 12 123 1234 12345 1234567890", "3.14159e-10, 1,000,000; ½ ² ١٢٣ Ⅷ 五", "x=1;y=22;z=333\n\treturn x+y\n", "foo_bar.baz(qux[0]) != {a: 'b'}",
    "for (int i = 0; i < n; i++) {\n    sum += a[i];\n}\n", "https://example.com/a/b?c=d&e=f#g", "ALLCAPS CamelCase camelCase snake_case",
    "naïve café Zürich ÀÉÎÕÜ", "cafe\u0301 nai\u0308ve A\u030a ﬁ Å Ω", "\u0301lone mark", "e\u0301\u0302\u0303 x\u0301y\u0301z", "Привет, мир! Как дела?",
    "你好，世界！这是一个测试。", "今日はいい天気ですね。カタカナとひらがな、漢字。", "안녕하세요 세계", "مرحبا بالعالم ١٢٣", "שלום עולם", "नमस्ते दुनिया", "สวัสดีชาวโลก",
    "😀😃👨‍👩‍👧‍👦🏳️‍🌈", "mixed中文and English文字123数字", "\u00a0nbsp\u00a0\u00a0two", "\u3000全角　スペース", "line\r\nline\r\n\r\nline", "\u2028sep\u2029", "a\u0000b\u0007c\u001b[0m",
    "<|endoftext|>", "<s>hello</s>", "<unk><0x41><0x0A>", "<|im_start|>user\nhi<|im_end|>", "<tool_call>{}</tool_call>", "a<tool_call>b <tool_call> c",
    "<｜User｜>hi<｜Assistant｜>", " <｜User｜> hi <｜fim▁hole｜>", "<mask><unused1> x<unused12>y[multimodal]", "▁under▁score ▁", "▁▁ ▁", " ▁a", "\ufffd", "\ufeffbom",
    "word " * 30, "a" * 200, " " * 100, "\n" * 50, "ab" * 100, "中" * 60, "e" + "\u0301" * 40, "a\u0323\u0301" * 20 + "\u0323\u0301" * 40, "=" * 80, "-" * 33 + "\n", "!?" * 20, "\u0301" * 20, "   \n   \n  x",
    "tab\tseparated\tvalues", "trailing spaces   ", "trailing newline\n", "\n leading", "a  b   c    d     e", "\x7f\x80\x9f\xad", "Ǆ ǅ ǆ ʰ ª º", "K Å ſ ß ẞ", "ﷺ 𝕳𝖊𝖑𝖑𝖔 𝟙𝟚𝟛",
    "\U0001F600\U000E0020\U0010FFFF", "don’t “quote” — dash… • bullet", "$100 €50 ¥1000 £20 ≠ ∞ ∑ → ←", "#hashtag @mention ~/path ./x ../y C:\\dir\\file.txt",
]


def texts():
    rnd = random.Random(1)
    out = list(HAND)
    for n in range(300):
        out.append("".join(rnd.choice(ALPHABET) for _ in range(1 + rnd.randrange(50))))
    for n in range(60):  # any character that is one
        out.append("".join(chr(rnd.choice([c for c in (rnd.randrange(0x250), rnd.randrange(0x3100), rnd.randrange(0x10000), rnd.randrange(0x20000))
                                           if not 0xD800 <= c < 0xE000] or [65])) for _ in range(1 + rnd.randrange(40))))
    words = (pathlib.Path(__file__).read_text() + json.__doc__ + random.__doc__).split(" ")
    for n in range(40):
        i = rnd.randrange(len(words) - 40)
        out.append(" ".join(words[i:i + rnd.randrange(1, 40)]))
    return out


def vectors(doc, texts):
    tok = Tokenizer.from_str(json.dumps(doc))
    tok.no_truncation()
    tok.no_padding()
    tok.encode_special_tokens = True
    return [tok.encode(t, add_special_tokens=False).ids for t in texts]


def write(out, name, doc):
    where = pathlib.Path(out) / name
    where.mkdir(parents=True, exist_ok=True)
    t = texts()
    ids = vectors(doc, t)
    (where / "tokenizer.json").write_text(json.dumps(doc, ensure_ascii=False))
    (where / "vectors.json").write_text(json.dumps([{"text": a, "ids": b} for a, b in zip(t, ids)], ensure_ascii=False))
    print(name, len(t))


SPACE, LOW = "▁", {"single_word": False, "lstrip": False, "rstrip": False}
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|"
O200K_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
UNKNOWN = r" ?[A-Za-z]+| ?\p{Lo}{1,2}|\d(?=\d)|\s+$|\s"


def byte_level(*patterns, use_regex=False, digits=None):
    steps = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
    if digits is not None:
        steps.insert(0, {"type": "Digits", "individual_digits": digits})
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "Sequence", "pretokenizers": steps + [level]} if steps else level


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
LLAMA2 = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, REPLACE]}
GEMMA = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}

# name: normalizer, pre-tokenizer
FAMILIES = {
    "gpt2": (None, byte_level(use_regex=True)),
    "llama3": (None, byte_level(CL100K % r"\p{N}{1,3}")),
    "qwen": ({"type": "NFC"}, byte_level(CL100K % r"\p{N}")),
    "o200k": (None, byte_level(WORD % (SUFFIX, SUFFIX) + r"\p{N}{1,3}" + O200K_TAIL)),
    "tekken": (None, byte_level(WORD % ("", "") + r"\p{N}" + O200K_TAIL)),
    "deepseek": ({"type": "Sequence", "normalizers": []}, byte_level(*DEEPSEEK)),
    "starcoder": (None, byte_level(use_regex=True, digits=True)),
    "digits": ({"type": "NFC"}, byte_level(use_regex=True, digits=False)),
    "unknown": (None, byte_level(UNKNOWN)),
    "unknown-steps": (None, byte_level(r"\p{N}", r"[A-Za-z]+", r"\s?[!-/:-~]+|\s+$")),
    "llama2": (LLAMA2, None),
    "gemma": (REPLACE, GEMMA),
    "metaspace-first": (None, metaspace("first", False)),
    "metaspace-always": (None, metaspace("always", True)),
    "metaspace-never": (None, metaspace("never", True)),
}


def trained():
    corpus = [t for t in HAND for _ in range(3)] + pathlib.Path(__file__).read_text().split("\n") + random.__doc__.split("\n") * 3
    sample = texts()[:len(HAND)] + texts()[len(HAND):len(HAND) + 140] + texts()[-50:]
    out = {"texts": sample, "families": []}
    for name, (normalizer, pre) in FAMILIES.items():
        level = pre is not None and "ByteLevel" in json.dumps(pre)
        tok = Tokenizer(models.BPE(byte_fallback=not level, fuse_unk=not level, unk_token=None if level else "<unk>"))
        doc = json.loads(tok.to_str())
        doc["normalizer"], doc["pre_tokenizer"] = normalizer, pre
        if not level:  # words for the trainer, which makes no merges across what is split
            doc["pre_tokenizer"] = metaspace("never", name != "gemma")
            doc["normalizer"] = None
        tok = Tokenizer.from_str(json.dumps(doc))
        first = [] if level else ["<unk>", "<s>"] + ["<0x%02X>" % b for b in range(256)]
        tok.train_from_iterator(corpus, trainers.BpeTrainer(
            vocab_size=900, special_tokens=first, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if level else [SPACE], limit_alphabet=256 if level else 120))
        doc = json.loads(tok.to_str())
        doc["normalizer"], doc["pre_tokenizer"] = normalizer, pre
        doc["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True} if level else {"type": "Fuse"}
        size = len(doc["model"]["vocab"])
        doc["added_tokens"] = [
            {"content": "<|endoftext|>", "normalized": False, "special": True, **LOW},
            {"content": "<tool_call>", "normalized": False, "special": False, **LOW},
            {"content": "<｜User｜>", "normalized": True, "special": False, **LOW},
        ]
        next_id = size
        for t in doc["added_tokens"]:
            t["id"] = doc["model"]["vocab"].get(t["content"], next_id)
            next_id += t["id"] == next_id
        doc["model"]["ignore_merges"] = name == "llama3"
        out["families"].append({"name": name, "tokenizer": doc, "ids": vectors(doc, sample)})
        print(name, size)
    return out


def variants(doc):
    """The settings that change the encoding, tried on a published vocabulary."""
    def but(**changes):
        d = copy.deepcopy(doc)
        for k, v in changes.items():
            if k in d:
                d[k] = v
            else:
                d["model"][k] = v
        return d
    if doc["model"].get("byte_fallback"):
        for scheme in ("first", "always", "never"):
            for split in (True, False):
                yield f"metaspace-{scheme}-{split}", but(normalizer=None, pre_tokenizer=metaspace(scheme, split))
        yield "prepend", but(normalizer=LLAMA2, pre_tokenizer=None)
        yield "replace", but(normalizer=REPLACE, pre_tokenizer=GEMMA)
    else:
        for name, (normalizer, pre) in FAMILIES.items():
            if pre and "ByteLevel" in json.dumps(pre):
                yield name, but(normalizer=normalizer, pre_tokenizer=pre)
        yield "ignore_merges", but(ignore_merges=True)
        yield "merges", but(ignore_merges=False)


def main(args):
    if args[0] == "--trained":
        data = json.dumps(trained(), ensure_ascii=False).encode()
        with gzip.GzipFile(args[1], "wb", mtime=0) as f:
            f.write(data)
        return
    out, rest = args[0], args[1:]
    for arg in rest:
        if arg == "--variants":
            continue
        name, path = arg.split("=", 1)
        doc = json.loads(pathlib.Path(path).read_text())
        if "--variants" in rest:
            for variant, d in variants(doc):
                write(out, f"{name}-{variant}", d)
        else:
            write(out, name, doc)


if __name__ == "__main__":
    main(sys.argv[1:])
