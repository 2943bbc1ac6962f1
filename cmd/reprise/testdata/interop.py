"""Reads a trace, histograms and results with PyArrow, Polars and DuckDB, and
prints what each of them sees, for interop_test.go to compare."""
import json
import sys

trace, results = sys.argv[1:3]


def arrow(path):
    import pyarrow.parquet as pq

    t = pq.read_table(path)
    return {f.name: str(f.type) for f in t.schema}, t.to_pylist()


def polars(path):
    import polars as pl

    t = pl.read_parquet(path)
    return {n: str(d) for n, d in t.schema.items()}, t.to_dicts()


def duckdb(path):
    import duckdb as db

    t = db.sql(f"select * from read_parquet('{path}')")
    return dict(zip(t.columns, map(str, t.types))), [dict(zip(t.columns, r)) for r in t.fetchall()]


out = {}
for name, read in (("pyarrow", arrow), ("polars", polars), ("duckdb", duckdb)):
    try:
        types, rows = read(trace)
        rtypes, rrows = read(results)
    except ModuleNotFoundError:
        continue
    out[name] = {"types": types, "rows": rows, "result_types": rtypes, "results": len(rrows)}
json.dump(out, sys.stdout)
