"""Computes the statistics of a detailed result document a second time with numpy."""
import json
import sys

import numpy as np

doc = json.load(open(sys.argv[1]))
good = [i for i, error in enumerate(doc["errors"]) if not error]
pick = lambda key: [doc[key][i] for i in good]
ttft, e2el, out = pick("ttfts"), pick("latencies"), pick("output_lens")
values = {
    "ttft": ttft,
    "e2el": e2el,
    "itl": [gap for gaps in pick("itls") for gap in gaps],
    "tpot": [(e - t) / (n - 1) for e, t, n in zip(e2el, ttft, out) if n > 1],
}
wrong = []
for name, of in values.items():
    figures = {"mean": np.mean(of), "median": np.median(of), "std": np.std(of)}
    figures |= {f"p{p:g}": np.percentile(of, p) for p in (5, 90, 99.9)}
    for stat, want in figures.items():
        got = doc[f"{stat}_{name}_ms"]
        if abs(got - want * 1000) > 2e-6 + 1e-9 * abs(want):
            wrong.append(f"{stat}_{name}_ms: {got}, numpy says {want * 1000}")
sys.exit("\n".join(wrong) or 0)
