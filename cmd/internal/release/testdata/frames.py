"""Uses the module of an installed wheel on real files, with the frames of the package that it is given:
a trace in one file and in partitions, results, a report, and replays that are good, fail or are not to be trusted."""
import json
import subprocess
import sys
from pathlib import Path

import reprise

name = sys.argv[1]
assert Path(reprise.binary()).is_relative_to(sys.prefix), reprise.binary()
reprise.command("demo", output="demo", speed=20)
reprise.command("slice", "demo/trace.parquet", partitions=4, output="parts")


def same(a, b):
    return a.equals(b) if name == "polars" else a.astype(str).equals(b.astype(str))


def figure(report, wanted):
    found = [row for row in rows(report) if row["name"] == wanted and row["statistic"] == "value"]
    assert len(found) == 1, found
    return found[0]["value"]


def rows(frame):
    return frame.to_dicts() if name == "polars" else frame.to_dict("records")


def raised(kind, code, call):
    try:
        call()
    except reprise.Error as e:
        assert type(e) is kind and e.code == code and e.stderr.strip() and e.stderr.strip() in str(e), repr(e)
        return e
    raise AssertionError(f"{kind.__name__} was not raised")


trace = reprise.trace("demo/trace.parquet")
assert type(trace).__module__.split(".")[0] == name, type(trace)
assert same(trace, reprise.trace("parts")) and len(trace) > 200 and "blocks" in trace.columns
requests = reprise.results("demo/results.parquet")
assert len(reprise.results("demo/results.parquet", "demo/results.parquet")) == 2 * len(requests)
report = reprise.report("demo/results.parquet", slo="ttft:1h", check=False)
succeeded = sum(row["status"] == "succeeded" for row in rows(requests))
assert figure(report, "requests.succeeded") == succeeded > 200

Path("never.yaml").write_text("clauses:\n  - p95 ttft <= 1us\n")
loose = ",".join(limit + "=off" for limit in (
    "max-lag", "max-lag-p50", "max-lag-drift", "max-cpu", "max-gc-pause", "max-stall", "max-stall-ttft", "max-stall-gap"))
with subprocess.Popen([reprise.binary(), "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True) as server:
    try:
        url = "http" + server.stdout.readline().strip().split("http")[1]
        load = {"url": url, "input_tokens": 50, "output_tokens": 5, "concurrency": 2, "requests": 20}
        run = reprise.replay(output="run.parquet", trust=loose, **load)
        assert run.trustworthy and len(run.requests) == 20 == figure(run.report, "requests.succeeded"), run
        assert run.summary["requests"]["succeeded"] == 20
        e = raised(reprise.CheckFailed, 3, lambda: reprise.replay(
            output="failed.parquet", trust=loose, contract="never.yaml", **load))
        assert len(e.result.requests) == 20 and e.result.trustworthy
        e = raised(reprise.Untrusted, 4, lambda: reprise.replay(output="late.parquet", trust="max-lag=1ns", **load))
        assert len(e.result.requests) == 20 and not e.result.trustworthy and "send lag" in str(e), str(e)
        assert len(reprise.replay(output="again.parquet", trust="max-lag=1ns", check=False, **load).requests) == 20
        raised(reprise.Error, 2, lambda: reprise.replay(output="run.parquet", **load))  # the file exists
        assert len(raised(reprise.Untrusted, 4, lambda: reprise.report("late.parquet", trust="max-lag=1ns")).result) > 50
    finally:
        server.terminate()
raised(reprise.Error, 1, lambda: reprise.results("nowhere.parquet"))
try:
    reprise.results("run.parquet", frame="pandas" if name == "polars" else "polars")
except ImportError as e:
    assert "pip install 'reprise-llm[" in str(e), e
else:
    raise AssertionError("the other package is not there, and its frames are")
print(json.dumps({"rows": len(trace), "requests": len(requests), "figures": len(report)}))
