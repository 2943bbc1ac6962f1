"""Reads a table of requests with pandas, Polars and DuckDB, as Parquet and as CSV, and
prints what each of them counts and averages, for interop_test.go to compare."""
import json
import sys

parquet, csv = sys.argv[1:3]


def pandas():
    import pandas as pd

    for df in (pd.read_parquet(parquet), pd.read_csv(csv)):
        df = df[(df["phase"] == "measured") & (df["status"] == "succeeded")]
        yield len(df), df["ttft_ms"].mean(), df["e2e_ms"].mean(), df["tpot_ms"].mean(), int(df["output_tokens"].sum())


def polars():
    import polars as pl

    for df in (pl.read_parquet(parquet), pl.read_csv(csv, infer_schema_length=None)):
        df = df.filter(phase="measured", status="succeeded")
        yield len(df), df["ttft_ms"].mean(), df["e2e_ms"].mean(), df["tpot_ms"].mean(), df["output_tokens"].sum()


def duckdb():
    import duckdb as db

    for name in (parquet, csv):
        query = f"""FROM '{name}' SELECT count(*), avg(ttft_ms), avg(e2e_ms), avg(tpot_ms), sum(output_tokens)::BIGINT
            WHERE phase = 'measured' AND status = 'succeeded'"""
        yield db.sql(query).fetchall()[0]


out = {}
for read in (pandas, polars, duckdb):
    try:
        out[read.__name__] = list(read())
    except ImportError:
        continue
json.dump(out, sys.stdout)
