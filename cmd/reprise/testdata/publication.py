"""Prints as JSON what the published validators and loaders find in a folder of
"reprise export --to hf". Those that are not installed are left out."""

import importlib.util
import itertools
import json
import os
import sys
import tempfile

folder = sys.argv[1]
os.environ.update(HF_HUB_OFFLINE="1", HF_HOME=tempfile.mkdtemp(), HF_DATASETS_DISABLE_PROGRESS_BARS="1")
found = {}


def installed(name):
    return importlib.util.find_spec(name) is not None


if installed("mlcroissant"):
    import mlcroissant

    data = mlcroissant.Dataset(jsonld=os.path.join(folder, "croissant.json"))
    issues = data.metadata.ctx.issues
    fields = [f.name for f in data.metadata.record_sets[0].fields]
    first = next(iter(itertools.islice(data.records("requests"), 1)))
    found["mlcroissant"] = {
        "errors": sorted(issues.errors),
        "warnings": sorted(issues.warnings),
        "fields": fields,
        "rows": sum(1 for _ in data.records("requests")),
        "input_tokens": int(first["requests/input_tokens"]),
    }

if installed("cffconvert"):
    from cffconvert import Citation

    try:
        with open(os.path.join(folder, "CITATION.cff"), encoding="utf-8") as f:
            Citation(f.read()).validate()
        found["cffconvert"] = {"fault": ""}
    except Exception as fault:
        found["cffconvert"] = {"fault": str(fault)[:2000] or repr(fault)}

if installed("huggingface_hub"):
    from huggingface_hub import DatasetCard

    found["huggingface_hub"] = DatasetCard.load(os.path.join(folder, "README.md")).data.to_dict()

if installed("datasets"):
    import datasets

    rows = datasets.load_dataset(folder, split="train")
    found["datasets"] = {"rows": rows.num_rows, "columns": rows.column_names, "input_tokens": rows[0]["input_tokens"]}

json.dump(found, sys.stdout)
