#!/usr/bin/env python3
"""Stop, starve and crowd the client, and hold what it reports against a server that knows.

    go build -o /tmp/reprise ./cmd/reprise && go build -o /tmp/truth ./examples/race/truth
    sudo examples/witness/witness.py --reprise /tmp/reprise --truth /tmp/truth

Each case runs a replay against examples/race/truth, which records when each token was
written, and disturbs the client alone. Then it reads the report twice, by the instants of
the reads and by those of the kernel, and compares p50 and p99 (with too few values, the
maximum) of TTFT, chunk ITL and E2E with the record. A case holds if each of the two is
either within --within ms of the record or not trusted. Controls are not disturbed, and
must be trusted. The server runs under chrt, so that it keeps its times; so do the
controls, since other work on the machine is a disturbance too. A virtual machine may be
halted by its host, which nobody in it can prevent: beside each control cyclictest (of
rt-tests) tells by how much the machine's own timers were late, and a control in whose time
that was --still ms or more is repeated and counted apart. Without the right to use chrt or
control groups, or without cyclictest, the cases that need them are skipped, and said.

It prints a table in Markdown, and exits with 1 where a case does not hold.
"""
import argparse, contextlib, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time, urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--reprise", required=True)
parser.add_argument("--truth", required=True)
parser.add_argument("--controls", type=int, default=20, help="undisturbed runs at each rate")
parser.add_argument("--still", type=float, default=2.0, help="ms that timers may be late on a machine that counts as undisturbed")
parser.add_argument("--within", type=float, default=2.0, help="ms that a figure may be off")
parser.add_argument("--only", default="", help="run the cases whose name has this in it")
options = parser.parse_args()

TTFT_MS, ITL_MS, TOKENS = 100, 10, 20
RATES = {0.5: 8, 50: 400}  # requests per second: requests


def can(*command):
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


REALTIME = ["chrt", "-r", "5"] if can("chrt", "-r", "5", "true") else []


class Group:
    """A control group with a quota in percent of one core."""

    def __init__(self, percent):
        v1 = pathlib.Path("/sys/fs/cgroup/cpu")
        root = v1 if (v1 / "cpu.cfs_quota_us").exists() or (v1 / "tasks").exists() else pathlib.Path("/sys/fs/cgroup")
        self.path = root / f"reprise-witness-{os.getpid()}"
        self.path.mkdir()
        try:
            if root == v1:
                (self.path / "cpu.cfs_period_us").write_text("100000")
                (self.path / "cpu.cfs_quota_us").write_text(str(percent * 1000))
            else:
                (self.path / "cpu.max").write_text(f"{percent * 1000} 100000")
        except OSError:
            self.path.rmdir()
            raise

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        for _ in range(50):
            with contextlib.suppress(OSError):
                return self.path.rmdir()
            time.sleep(0.1)


def arrived(url):
    return int(urllib.request.urlopen(url + "/arrived").read())


def stop_when_sent(seconds, after=0.03):
    """Stop the client once, so long after its middle request has arrived."""
    def disturb(client, url, rate):
        middle = RATES[rate] // 2
        while client.poll() is None and arrived(url) < middle:
            time.sleep(0.004)
        time.sleep(after)
        client.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        client.send_signal(signal.SIGCONT)
    return disturb


class Timers:
    """How late the machine's timers are, each core's every millisecond, by cyclictest."""

    def __init__(self):
        self.process = subprocess.Popen(["cyclictest", "--quiet", "--mlockall", "--priority=80", "--smp", "--interval=1000"],
                                        stdout=subprocess.PIPE, text=True)

    def latest_ms(self):
        self.process.send_signal(signal.SIGINT)
        return max(int(n) for n in re.findall(r"Max:\s*(\d+)", self.process.communicate()[0])) / 1000


@contextlib.contextmanager
def neighbours():
    spin = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
            for core in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for process in spin:
            process.kill()
            process.wait()


def percentile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def truth_of(log):
    ttft, itl, e2e = [], [], []
    for line in log.read_text().splitlines():
        writes = [us / 1000 for us in json.loads(line)["writes_us"]]
        if json.loads(line)["max_tokens"] != TOKENS or len(writes) != TOKENS:
            continue  # a probe
        ttft.append(writes[0])
        e2e.append(writes[-1])
        itl += [b - a for a, b in zip(writes, writes[1:])]
    return {"ttft": ttft, "itl": itl, "e2e": e2e}


def off_by(summary, truth):
    """The largest difference from the record in ms, None without figures."""
    stats = {"ttft": summary["latency"]["from_sent"]["ttft"], "itl": summary["latency"]["itl_chunk"], "e2e": summary["latency"]["from_sent"]["e2e"]}
    worst = None
    for name, stat in stats.items():
        for figure, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1)):
            if stat[figure] is None or figure == "max_ms" and stat["p99_ms"] is not None:
                continue
            difference = abs(stat[figure] - percentile(truth[name], share))
            worst = max(worst or 0, difference)
    return worst


def run(rate, disturb=None, group=None, realtime=False, crowd=False):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        log = folder / "log.jsonl"
        log.write_text("".join(
            json.dumps({"timestamp": int(i * 1000 / rate), "input_length": 40, "output_length": TOKENS, "hash_ids": [i]}) + "\n"
            for i in range(RATES[rate])))
        subprocess.run([options.reprise, "import", log, "-o", folder / "w.parquet", "--quiet"], check=True, capture_output=True)
        server = subprocess.Popen([*REALTIME, options.truth, "-ttft", f"{TTFT_MS}ms", "-itl", f"{ITL_MS}ms", "-log", folder / "truth.jsonl"],
                                  stdout=subprocess.PIPE, text=True)
        stack.callback(server.kill)
        url = server.stdout.readline().strip()
        if crowd:
            stack.enter_context(neighbours())
        client = subprocess.Popen([*(REALTIME if realtime else []), options.reprise, "replay", folder / "w.parquet", "--url", url + "/v1", "--api", "completions",
                                   "-o", folder / "r.parquet", "--quiet"],
                                  preexec_fn=group.enter if group else None, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        stack.callback(client.kill)
        if disturb:
            disturb(client, url, rate)
        try:
            _, errors = client.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            return ["no end in 180 s"] * 2, True
        server.terminate()
        server.wait()
        truth = truth_of(folder / "truth.jsonl")
        cells, holds = [], True
        for instants in "read", "kernel":
            out = subprocess.run([options.reprise, "report", folder / "r.parquet", "--json", "--set", "instants=" + instants], capture_output=True, text=True)
            if not out.stdout:
                cells.append("no results: " + (errors.decode() + out.stderr).strip().splitlines()[-1][:100])
                continue
            summary = json.loads(out.stdout)
            trusted, off = summary["verdict"]["trustworthy"], off_by(summary, truth)
            cell = "no figure" if off is None else f"off {off:.1f} ms"
            left_out = summary.get("receipt", {}).get("uncertain_events", 0)
            if instants == "kernel" and left_out:
                cell += f", {left_out} events left out"
            if trusted:
                cell = "trusted, " + cell
                holds = holds and off is not None and off <= options.within
            else:
                cell = "**not trusted**, " + cell + ": " + ", ".join(r["code"] for r in summary["verdict"]["reasons"])
            cells.append(cell)
        return cells, holds


def main():
    bad = 0

    def case(name, rate, must_trust=False, **how):
        nonlocal bad
        name = f"{name}, {rate} req/s"
        if options.only not in name:
            return None
        cells, holds = run(rate, **how)
        trusted = all(c.startswith("trusted") for c in cells)
        holds = holds and (trusted or not must_trust)
        bad += not holds
        print(f"| {name} | {cells[0]} | {cells[1]} | {'yes' if holds else '**no**'} |", flush=True)
        return trusted

    print("| client | instants of the reads | of the kernel | holds |\n|---|---|---|---|", flush=True)
    for rate in RATES:
        for seconds in 0.2, 0.9, 5:
            case(f"stopped for {seconds} s", rate, disturb=stop_when_sent(seconds))
    case("stopped for 0.9 s while nothing is in flight", 0.5, must_trust=True, realtime=bool(REALTIME), disturb=stop_when_sent(0.9, after=0.6))
    for percent in 1, 10, 50:
        for rate in RATES:
            try:
                group = Group(percent)
            except OSError as e:
                print(f"| quota of {percent} % of a core, {rate} req/s | skipped: {e.strerror} | | |")
                continue
            try:
                case(f"quota of {percent} % of a core", rate, group=group)
            finally:
                group.remove()
    for rate in RATES:
        case("a spinning neighbour on each core", rate, crowd=True)
    for rate in RATES:
        if options.only not in f"undisturbed, {rate} req/s":
            continue
        if not REALTIME or not shutil.which("cyclictest"):
            print(f"| undisturbed, {rate} req/s | skipped: needs chrt and cyclictest | | |")
            continue
        still = disturbed = noticed = 0
        while still < options.controls and disturbed < 4 * options.controls:
            timers = Timers()
            cells, holds = run(rate, realtime=True)
            latest = timers.latest_ms()
            trusted = all(c.startswith("trusted") for c in cells)
            if latest >= options.still:
                disturbed, noticed = disturbed + 1, noticed + (not trusted)
                print(f"| by the machine, timers {latest:.1f} ms late, {rate} req/s | {cells[0]} | {cells[1]} | |", flush=True)
                continue
            still += 1
            bad += not (holds and trusted)
            print(f"| undisturbed {still} of {options.controls}, timers {latest:.1f} ms late, {rate} req/s | {cells[0]} | {cells[1]} | {'yes' if holds and trusted else '**no**'} |", flush=True)
        print(f"\nAt {rate} req/s {disturbed} more runs were disturbed by the machine (timers {options.still} ms late or more); {noticed} of them were not trusted.\n", flush=True)
    sys.exit(1 if bad else 0)


main()
