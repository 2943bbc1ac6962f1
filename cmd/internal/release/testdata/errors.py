"""Holds the module's errors, without a package of frames, to what a command said: errors.py FOLDER, where FOLDER has
the module. The command is one that prints its arguments, complains, and exits with a code."""
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import reprise

with tempfile.TemporaryDirectory() as folder:
    fake = os.path.join(folder, "reprise")
    with open(fake, "w") as f:
        f.write('#!/bin/sh\nprintf "%s\\n" "$@"\necho "its own words" >&2\nexit "$CODE"\n')
    os.chmod(fake, 0o755)
    reprise.binary = lambda: fake
    for code, kind, result in (("0", None, None), ("1", reprise.Error, "report\nr.parquet\n--by=user\n--by=turn\n--server-block-size=16\n--json\n"),
                               ("3", reprise.CheckFailed, "report\n"), ("4", reprise.Untrusted, "report\n")):
        os.environ["CODE"] = code
        try:
            printed = reprise.command("report", "r.parquet", by=["user", "turn"], server_block_size=16,
                                     json=True, html=None, details=False)
        except reprise.Error as e:
            assert type(e) is kind and e.code == int(code) and e.stderr == "its own words\n", repr(e)
            assert e.result.startswith(result) and str(e).endswith("its own words"), repr(e)
            assert kind.meaning in str(e) and (kind is reprise.Error or kind.meaning != reprise.Error.meaning)
        else:
            assert kind is None and printed == "report\nr.parquet\n--by=user\n--by=turn\n--server-block-size=16\n--json\n", printed
try:
    reprise.trace("t.parquet", frame="excel")
except ValueError as e:
    assert "want 'pandas' or 'polars'" in str(e), e
else:
    raise AssertionError("there are no frames of excel")
