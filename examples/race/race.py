#!/usr/bin/env python3
"""Races Reprise against other load clients, on one timed trace and one server whose times are known.

See README.md beside this file. It needs only Python's standard library; setup.sh installs the peers.
"""

import argparse
import datetime
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass

import meter
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
TTFT, ITL = '200ms', '20ms'  # of the server
BUSY = 0.2  # cores; more work of others is too much for figures that are to be kept


@dataclass
class Load:
    """A trace of evenly spaced requests, in the three forms in which the clients read it."""

    name: str
    rate: int  # requests per second
    seconds: float
    output_tokens: int

    def __str__(self):
        return f'{self.rate} requests/s for {self.seconds:g} s, {self.output_tokens} output tokens each'

    @property
    def requests(self):
        return int(self.rate * self.seconds)

    def write(self, folder, reprise):
        """Writes the trace as Mooncake's JSON lines, as Reprise's Parquet and as Azure's CSV."""
        os.makedirs(folder, exist_ok=True)
        self.mooncake, self.parquet, self.azure = (f'{folder}/{self.name}{end}' for end in ('.jsonl', '.parquet', '.azure.csv'))
        generator = random.Random(7)
        rows = [{'timestamp': round(number * 1000 / self.rate),  # whole milliseconds, as in Mooncake's traces
                 'input_length': generator.randint(520, 900),
                 'output_length': self.output_tokens,
                 # The first 512 tokens are one of ten prefixes, the rest is the request's own.
                 'hash_ids': [generator.randint(0, 9), 100 + number]} for number in range(self.requests)]
        self.due = [row['timestamp'] / 1e3 for row in rows]  # seconds
        with open(self.mooncake, 'w') as file:
            file.writelines(json.dumps(row) + '\n' for row in rows)
        with open(self.azure, 'w') as file:
            file.write('TIMESTAMP,ContextTokens,GeneratedTokens\n')
            for row in rows:
                at = datetime.datetime(2023, 11, 16, 18) + datetime.timedelta(milliseconds=row['timestamp'])
                file.write(f'{at:%Y-%m-%d %H:%M:%S.%f}0,{row["input_length"]},{row["output_length"]}\n')
        done = subprocess.run([reprise, 'import', self.mooncake, '-o', self.parquet, '--overwrite', '--quiet'], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f'race: reprise did not import {self.mooncake}:\n{done.stderr}')


LOADS = {
    'a': Load('a', 20, 15, 100),
    'b': Load('b', 200, 10, 50),
    's': Load('s', 20, 2, 100),
}


def race(client, load, folder, tools, truth, timeout):
    """Runs one client against a server of its own. Returns the measurements, as a line of the results has them."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    busy, began = meter.busy_cores(), datetime.datetime.now(datetime.timezone.utc)
    record_file = f'{folder}/truth.jsonl'
    server = subprocess.Popen([truth, '-ttft', TTFT, '-itl', ITL, '-log', record_file], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        command, read = peers.CLIENTS[client](load, url, folder, tools)
        usage = meter.run_measured(command, folder, client_environment(tools), timeout)
    finally:
        server.terminate()
        server.wait()
    result = {'tool': client, 'load': load.name, 'trace': str(load), 'folder': folder, 'time': began.isoformat(timespec='seconds'),
              'cores': os.cpu_count(), 'busy_cores': busy,
              'exit_status': usage.exit_status, 'timed_out': usage.timed_out, 'wall_s': usage.wall_seconds,
              'cpu_s': usage.cpu_seconds, 'cpu_source': usage.cpu_source, 'memory_mb': usage.memory_mb,
              'requests': load.requests}
    with open(record_file) as file:
        records = [json.loads(line) for line in file]
    # Other lengths are those of probes and of warm-ups.
    records = [record for record in records if record['max_tokens'] == load.output_tokens and record['writes_us']]
    records.sort(key=lambda record: record['arrival_unix_ns'])
    result['sent'] = len(records)
    if records:
        result |= arrivals(records, load, usage)
        try:
            result |= bias(records, load, read())
        except (OSError, ValueError, LookupError, TypeError) as fault:
            result['unread'] = f'{type(fault).__name__}: {fault}'  # of what the client reported
    return result


def client_environment(tools):
    """Keeps the clients offline, and their output plain."""
    return os.environ | {
        'HF_HOME': f'{tools.installed}/hf', 'HF_HUB_OFFLINE': '1', 'HF_HUB_DISABLE_TELEMETRY': '1',
        'TRANSFORMERS_VERBOSITY': 'error', 'TOKENIZERS_PARALLELISM': 'false', 'PYTHONWARNINGS': 'ignore',
        'NO_COLOR': '1', 'COLUMNS': '200',
    }


def arrivals(records, load, usage):
    """Measures how late requests came to the server, in ms, and what they cost the client."""
    times = [record['arrival_unix_ns'] / 1e9 for record in records]
    lags = [(came - due) * 1e3 for came, due in zip(times, load.due)]
    # When the client started its clock is not known from outside: its earliest requests
    # count as punctual, without the first per cent.
    start = quantile(lags, 0.01)
    lags = [lag - start for lag in lags]
    events = sum(len(record['writes_us']) for record in records)
    return {'start_s': times[0] - usage.started,
            'lag_p50_ms': quantile(lags, 0.5), 'lag_p99_ms': quantile(lags, 0.99), 'lag_max_ms': max(lags),
            'cpu_s_per_1000_tokens': usage.cpu_seconds / events * 1e3,
            'body_bytes': statistics.mean(record['body_bytes'] for record in records)}


def bias(records, load, reported):
    """Compares what the client reported with what the server did: a positive difference means that the client reports more. In ms."""
    whole = [[at / 1e3 for at in record['writes_us']] for record in records if len(record['writes_us']) == load.output_tokens]
    difference = {'completed': reported.completed}
    if not whole:
        return difference
    if reported.ttft:
        true = [writes[0] for writes in whole]
        difference['ttft_bias_mean_ms'] = statistics.mean(reported.ttft) - statistics.mean(true)
        difference['ttft_bias_p99_ms'] = quantile(reported.ttft, 0.99) - quantile(true, 0.99)
    if reported.gaps:
        seen, true = reported.gaps, [after - before for writes in whole for before, after in zip(writes, writes[1:])]
    else:
        seen, true = reported.mean_gaps, [(writes[-1] - writes[0]) / (len(writes) - 1) for writes in whole]
    if seen:
        difference['itl_bias_mean_ms'] = statistics.mean(seen) - statistics.mean(true)
        difference['itl_bias_p99_ms'] = quantile(seen, 0.99) - quantile(true, 0.99)
    return difference


def shown(path):
    """Returns a path as a reader types it: relative below the current folder, else absolute."""
    relative = os.path.relpath(path)
    return path if relative.startswith('..') else relative


def quantile(numbers, share):
    """Returns a quantile by linear interpolation, as NumPy does."""
    ordered = sorted(numbers)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


# Columns of the table: heading, field of a result, digits after the point.
COLUMNS = [
    ('start s', 'start_s', 2),
    ('lag p50', 'lag_p50_ms', 2), ('p99', 'lag_p99_ms', 2), ('max', 'lag_max_ms', 1),
    ('TTFT bias', 'ttft_bias_mean_ms', 2), ('ITL bias', 'itl_bias_mean_ms', 3),
    ('CPU s/1k', 'cpu_s_per_1000_tokens', 3), ('MB', 'memory_mb', 0),
]


def print_tables(results):
    """Prints a Markdown table for each load, of the medians over rounds, and what a reader must know of them."""
    for trace in dict.fromkeys(result['trace'] for result in results):
        of_load = [result for result in results if result['trace'] == trace]
        rows = [['tool', 'sent'] + [heading for heading, _, _ in COLUMNS]]
        for tool in dict.fromkeys(result['tool'] for result in of_load):
            rounds = [result for result in of_load if result['tool'] == tool]
            rows.append([tool, f'{median(rounds, "sent", 0)}/{rounds[0]["requests"]}']
                        + [median(rounds, name, digits) for _, name, digits in COLUMNS])
        print(f'\n{trace}:\n')
        print_markdown(rows)
    print('\nTimes are in ms; start is in seconds. CPU is seconds per 1,000 output tokens, by '
          + ' and '.join(sorted({result['cpu_source'] for result in results})) + '.')
    if any(result['cpu_source'] == 'rusage' for result in results):
        print('rusage misses processes that outlive their parent. As root, control groups count all.')
    busy = [result['busy_cores'] for result in results]
    print(f'Rounds: {rounds_of(results)}. Of {results[0]["cores"]} cores, {min(busy):.2f} to {max(busy):.2f} were busy before the runs.')
    if max(busy) > BUSY:
        print('Other work was running: do not keep these figures.')
    for result in results:
        for complaint in complaints(result):
            print(f'{result["tool"]}, load {result["load"]}: {complaint}; see {shown(result["folder"])}')


def rounds_of(results):
    """Returns how many rounds the medians are of, such as 3, or 1 to 3."""
    counts = [sum(other['tool'] == result['tool'] and other['trace'] == result['trace'] for other in results) for result in results]
    return f'{min(counts)}' if min(counts) == max(counts) else f'{min(counts)} to {max(counts)}'


def complaints(result):
    """Lists what went wrong in a run."""
    if result['timed_out']:
        yield f'stopped after {result["wall_s"]:.0f} s, see --timeout'
    # Reprise says by exit code 4 that a run is not to be trusted, as on a busy machine.
    elif result['exit_status'] == 4 and result['tool'].startswith('reprise'):
        yield 'Reprise does not trust its own run (exit code 4)'
    elif result['exit_status'] != 0:
        yield f'failed with exit code {result["exit_status"]}'
    if result['sent'] != result['requests']:
        yield f'sent {result["sent"]} of {result["requests"]} requests'
    elif result.get('completed', result['sent']) != result['sent']:
        yield f'reports {result["completed"]} completed requests of {result["sent"]}'
    if 'unread' in result:
        yield f'its results could not be read: {result["unread"]}'


def median(rounds, name, digits):
    """Returns the median of a field, or a dash where no round has it."""
    values = [result[name] for result in rounds if result.get(name) is not None]
    return f'{statistics.median(values):,.{digits}f}' if values else '–'


def print_markdown(rows):
    """Prints rows, of which the first is the heading, in columns that also read well as text."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows = [[row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])] for row in rows]
    rule = ['-' * widths[0]] + ['-' * (width - 1) + ':' for width in widths[1:]]
    for row in [rows[0], rule] + rows[1:]:
        print('| ' + ' | '.join(row) + ' |')


def arguments():
    parser = argparse.ArgumentParser(
        description='Races load clients, one after another, on one timed trace against one server whose times are known.',
        epilog='Loads: ' + '; '.join(f'{name} = {load}' for name, load in LOADS.items()) + ' (a smoke test).')
    parser.add_argument('-d', '--dir', default=os.environ.get('RACE_DIR', f'{PROJECT}/.race'),
                        help='folder in which setup.sh installed the peers; the race writes there too (default: RACE_DIR, else .race of the project)')
    parser.add_argument('-t', '--tools', default='reprise,vllm-rs,aiperf,guidellm,inference-perf',
                        help='clients to race, with commas between (default: %(default)s; there is reprise-pooled too)')
    parser.add_argument('-l', '--loads', default='a,b', help='loads to race on, with commas between (default: %(default)s)')
    parser.add_argument('-r', '--rounds', type=int, default=1, help='rounds; the table has their medians, and every other round runs in reverse order (default: 1)')
    parser.add_argument('-s', '--seconds', type=float, help='length of the loads, in place of their own')
    parser.add_argument('--timeout', type=float, default=300, help='seconds after which a client is stopped (default: 300)')
    parser.add_argument('--reprise', default=f'{PROJECT}/bin/reprise', help='binary of Reprise (default: bin/reprise of the project)')
    parser.add_argument('--truth', default=f'{PROJECT}/bin/truth', help='binary of the server (default: bin/truth of the project)')
    parser.add_argument('--table', action='store_true', help='print the table of all results that are kept in the folder, and run nothing')
    args = parser.parse_args()
    args.dir = os.path.abspath(args.dir)
    args.tools, args.loads = args.tools.split(','), args.loads.split(',')
    for kind, chosen, known in (('tool', args.tools, peers.CLIENTS), ('load', args.loads, LOADS)):
        for name in chosen:
            if name not in known:
                parser.error(f'there is no {kind} {name!r}; there are {", ".join(known)}')
    return args


def check_installed(args, tools):
    """Ends the program when something is missing, and says what makes it."""
    for binary in (args.reprise, args.truth):
        if not os.access(binary, os.X_OK):
            sys.exit(f'race: {shown(binary)} is missing: "make peers-race" builds it')
    programs = [tools.program(name) for name in args.tools if not name.startswith('reprise')]
    for path in [f'{tools.tokenizer}/tokenizer.json'] + programs:
        if not os.path.exists(path):
            sys.exit(f'race: {shown(path)} is missing. Install the peers first (about 6.5 GB, some minutes):\n\n'
                     f'  {shown(HERE)}/setup.sh {shown(args.dir)}')


def main():
    args = arguments()
    kept = f'{args.dir}/results.jsonl'
    if args.table:
        try:
            with open(kept) as file:
                return print_tables([json.loads(line) for line in file])
        except FileNotFoundError:
            sys.exit(f'race: no results in {shown(kept)} yet: run a race first')
    tools = peers.Tools(os.path.abspath(args.reprise), args.dir)
    check_installed(args, tools)
    results = []
    try:
        for name in args.loads:
            load = LOADS[name]
            load.seconds = args.seconds or load.seconds
            load.write(f'{args.dir}/traces', tools.reprise)
            for number in range(args.rounds):
                for tool in args.tools if number % 2 == 0 else reversed(args.tools):
                    folder = f'{args.dir}/runs/{load.name}-{number + 1}-{tool}'
                    print(f'load {name}, round {number + 1}: {tool} …', file=sys.stderr, flush=True)
                    results.append(race(tool, load, folder, tools, os.path.abspath(args.truth), args.timeout))
                    with open(kept, 'a') as file:
                        file.write(json.dumps(results[-1]) + '\n')
    except KeyboardInterrupt:
        print('race: interrupted; what follows is of the runs that ended', file=sys.stderr)
        if results:
            print_tables(results)
        sys.exit(130)
    print_tables(results)
    print(f'Every run is a line of {shown(kept)}.')
    if any(result['exit_status'] not in (0, 4) or result['timed_out'] for result in results):
        sys.exit(1)


if __name__ == '__main__':
    main()
