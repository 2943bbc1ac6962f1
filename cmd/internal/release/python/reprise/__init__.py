"""Run the command reprise, and have what it writes as frames of pandas or Polars.

    import reprise

    run = reprise.replay("workload.parquet", output="run.parquet", url="http://localhost:8000")
    run.requests                         # a row for each request
    run.report                           # a row for each figure
    reprise.trace("workload.parquet")    # a row for each request of a trace or a workload

A frame is one of pandas where that is installed, and else one of Polars; ``frame="polars"`` chooses.
Keywords are flags: ``max_requests=100`` is ``--max-requests 100``, ``open_loop=True`` is ``--open-loop``,
and a list repeats its flag. A command that fails raises ``Error`` with the words of the command. Where
only its judgement is bad, its output is there: ``Untrusted`` (exit code 4) and ``CheckFailed`` (3) have
it as ``result``, and ``check=False`` returns it in place of the error.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Union

__all__ = ["CheckFailed", "Error", "Run", "Untrusted", "binary", "command", "replay", "report", "results", "trace"]

PathLike = Union[str, "os.PathLike[str]"]

# The judgements of a replay that its report has to make too.
_JUDGEMENTS = ("slo", "trust", "contract")


class Error(Exception):
    """A command that failed: its exit code, and what it said on stderr."""

    meaning = "the command failed"

    def __init__(self, args: list[str], code: int, stderr: str, result: Any = None) -> None:
        said = stderr.strip() or "it said nothing on stderr"
        super().__init__(f"reprise {args[0]}: {self.meaning} (exit code {code})\n{said}")
        self.code, self.stderr, self.result = code, stderr, result


class CheckFailed(Error):
    """Exit code 3: a contract or a limit does not hold. The output is there, as result."""

    meaning = "a check did not hold; the output is there, as result of this error"


class Untrusted(Error):
    """Exit code 4: the measurement cannot be trusted. The output is there, as result."""

    meaning = "the measurement cannot be trusted; the output is there, as result of this error"


class Run:
    """A replay: its results file, its summary as ``reprise replay --json`` prints it, and frames of both."""

    def __init__(self, path: PathLike, summary: dict[str, Any], requests: Any, figures: Any) -> None:
        self.path, self.summary = Path(path), summary
        self.requests, self.report = requests, figures

    @property
    def trustworthy(self) -> bool:
        return bool(self.summary["verdict"]["trustworthy"])

    def __repr__(self) -> str:
        return f"<reprise.Run {self.path}, {'' if self.trustworthy else 'not '}trustworthy>"


def binary() -> str:
    """The command's file: the one that was installed with this module, else the first on the PATH."""
    name = "reprise.exe" if os.name == "nt" else "reprise"
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    folders.append(str(Path(__file__).parent.parent / "bin"))  # of pip install --target
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"the command {name} is neither in {folders[0]} nor on the PATH: "
                                "install it with pip install reprise-llm")
    return found


def command(*args: PathLike, **flags: Any) -> str:
    """Run ``reprise ARGS FLAGS``, and return what it prints on stdout."""
    words = _words(args, flags)
    printed: str = _checked(words, *_run(words))
    return printed


def results(*paths: PathLike, frame: str | None = None) -> Any:
    """The requests of one or more results files: the columns of ``reprise export --to table``."""
    read = _frames(frame)
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "requests.parquet")
        command("export", *paths, to="table", output=table)
        return _parquet(read, [table])


def trace(path: PathLike, frame: str | None = None) -> Any:
    """The rows of a trace or a workload, in a file or in a folder of partitions."""
    read, at = _frames(frame), Path(path)
    files = sorted(at.glob("part-*.parquet")) if at.is_dir() else [at]
    if not files:
        raise FileNotFoundError(f"{at} holds no part-*.parquet: name a trace, or the folder of a partitioned one")
    return _parquet(read, [str(file) for file in files])


def report(path: PathLike, frame: str | None = None, check: bool = True, **flags: Any) -> Any:
    """The figures of a results file: the rows of ``reprise report --format csv``."""
    read = _frames(frame)
    words = _words(["report", path], {"format": "csv", **flags})
    code, out, err = _run(words)
    return _checked(words, code, _csv(read, out) if code in _JUDGED else out, err, check)


def replay(workload: PathLike | None = None, *, output: PathLike, frame: str | None = None, check: bool = True,
           **flags: Any) -> Run:
    """Replay a workload, or requests of ``input_tokens``, to a results file at output."""
    _frames(frame)  # a reader that is missing is known before the load, and not after it
    words = _words(["replay"] + [w for w in (workload,) if w is not None],
                   {"output": output, "quiet": True, "json": True, **flags})
    code, out, err = _run(words)
    if code not in _JUDGED:
        raise Error(words, code, err, out)
    judgements = {name: flags[name] for name in _JUDGEMENTS if name in flags}
    run = Run(output, json.loads(out), results(output, frame=frame),
              report(output, frame=frame, check=False, **judgements))
    reasons = [reason["text"] for reason in run.summary["verdict"]["reasons"]]
    _checked(words, code, run, "\n".join([err.strip(), *reasons]), check)
    return run


# Exit codes with which a command has written all of its output, and the errors of those that judge it.
_JUDGED = {0: Error, 3: CheckFailed, 4: Untrusted}


def _words(args: Any, flags: dict[str, Any]) -> list[str]:
    words = [os.fspath(arg) for arg in args]
    for name, value in flags.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None and one is not False:
                flag = "--" + name.replace("_", "-")
                words.append(flag if one is True else f"{flag}={one}")
    return words


def _run(words: list[str]) -> tuple[int, str, str]:
    with subprocess.Popen([binary(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        try:
            out, err = process.communicate()
        except KeyboardInterrupt:
            process.communicate()  # the terminal interrupts the command too, and it keeps what it has
            raise
    return process.returncode, out, err


def _checked(words: list[str], code: int, result: Any, stderr: str, check: bool = True) -> Any:
    if code == 0 or (code in _JUDGED and not check):
        return result
    raise _JUDGED.get(code, Error)(words, code, stderr, result)


def _frames(name: str | None) -> Any:
    names = [name] if name else ["pandas", "polars"]
    if name not in (None, "pandas", "polars"):
        raise ValueError(f"frame is {name!r}: want 'pandas' or 'polars'")
    needs = {"pandas": ["pandas", "pyarrow"], "polars": ["polars"]}
    for one in names:
        if all(find_spec(package) for package in needs[one]):
            return import_module(one)
    missing = " and no ".join(" with ".join(needs[one]) for one in names)
    raise ImportError(f"there is no {missing} here: pip install 'reprise-llm[{names[0]}]'")


def _parquet(read: Any, paths: list[str]) -> Any:
    parts = [read.read_parquet(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    return read.concat(parts, ignore_index=True) if read.__name__ == "pandas" else read.concat(parts)


def _csv(read: Any, text: str) -> Any:
    if read.__name__ == "pandas":
        return read.read_csv(io.StringIO(text))
    return read.read_csv(io.BytesIO(text.encode()), infer_schema_length=None)
