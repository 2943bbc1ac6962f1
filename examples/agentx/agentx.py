"""Plays one small data set in Weka's form with two clients by the rules of AgentX, and compares what the server saw.

    python3 agentx.py play reprise|aiperf FOLDER     plays it, and leaves FOLDER/NAME.jsonl
    python3 agentx.py compare FOLDER                 compares FOLDER/reprise.jsonl and FOLDER/aiperf.jsonl

Each request of the data set has an output length of its own, by which the server's log
names it. Nothing but the standard library is needed, beside the two clients.
"""

import argparse
import hashlib
import http.server
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

LANES, SECONDS, START = 3, 75, 0.4
FIRST, EACH = 0.05, 0.01  # of an answer: seconds to the first token, and for each


def make_traces():
    """Makes five conversations: a root of seven turns, two sub-agents that it joins, one that it does not wait for, another agent in its own list, and a pause of 18 s."""
    traces, length = [], iter(range(2, 1000))
    for k in range(5):
        ids = iter(range(1, 1000))
        tools = [next(ids) for _ in range(4)]

        def stream(*turns, begins=tools):
            blocks, out = list(begins), []
            for t, api, think in turns:
                blocks = blocks + [next(ids) for _ in range(2)]
                out.append({'t': t, 'type': 's', 'model': 'm', 'in': 64 * len(blocks) + 10, 'out': next(length), 'hash_ids': blocks, 'input_types': [], 'output_types': [], 'stop': 'end_turn', 'api_time': api, 'think_time': think})
            return out

        def agent(name, t, duration, status, *turns):
            return {'t': t, 'type': 'subagent', 'agent_id': name, 'subagent_type': 'Explore', 'duration_ms': duration, 'total_tokens': None, 'tool_use_count': None,
                    'status': status, 'requests': stream(*turns), 'models': ['m'], 'tool_tokens': 0, 'system_tokens': 0}
        step = 0.25 * k  # conversations differ
        other = stream((15.2 + step, 0.5, 0), begins=[])  # of another agent, which only its blocks tell
        root = stream((0, 1.0, 0), (3 + step, 1.0, 1.5), (9 + step, 1.0, 1), (14 + step, 1.0, 4), (16 + step, 1.0, 1), (18 + step, 1.0, 1), (37 + step, 1.0, 18))
        traces.append({'id': f'trace{k}', 'models': ['m'], 'block_size': 64, 'hash_id_scope': 'local', 'tool_tokens': 128, 'system_tokens': 128, 'requests': [
            root[0], root[1],
            agent('a', 4.5 + step, 3300, 'completed', (4.5 + step, 0.8, 0), (7.0 + step, 0.8, 1.7)),
            agent('b', 4.6 + step, 2000, 'completed', (4.6 + step, 2.0, 0)),
            root[2],
            agent('c', 11 + step, None, 'async_launched', (11 + step, 1.0, 0), (15.5 + step, 1.0, 3.5), (22 + step, 1.0, 5.5), (45 + step, 1.0, 22)),
            root[3], *other, *root[4:]]})
    return traces


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.log, self.lock, self.began = [], threading.Lock(), time.monotonic()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = '/models' in self.path
        self.reply(200 if models or 'health' in self.path else 404, {'object': 'list', 'data': [{'id': 'truth', 'object': 'model', 'max_model_len': 131072}]} if models else {})

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        came = time.monotonic()
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        if not self.path.endswith('/chat/completions'):
            return self.reply(404, {})
        tokens = body.get('max_tokens') or body.get('max_completion_tokens') or 1
        texts = [m['content'] if isinstance(m['content'], str) else json.dumps(m['content']) for m in body['messages']]
        prompt = sum(len(t.split()) for t in texts)
        usage = {'prompt_tokens': prompt, 'completion_tokens': tokens, 'total_tokens': prompt + tokens}
        time.sleep(FIRST)
        if body.get('stream'):
            self.send_response(200)
            self.send_header('Content-Type', 'text/event-stream')
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            for i in range(tokens):
                if i:
                    time.sleep(max(0, came + FIRST + i * EACH - time.monotonic()))
                choice = {'index': 0, 'delta': {'role': 'assistant', 'content': ' a'}, 'finish_reason': 'length' if i + 1 == tokens else None}
                self.event({'id': 'x', 'object': 'chat.completion.chunk', 'created': 0, 'model': 'truth', 'choices': [choice]})
            self.event({'id': 'x', 'object': 'chat.completion.chunk', 'created': 0, 'model': 'truth', 'choices': [], 'usage': usage})
            self.event(None)
            self.wfile.write(b'0\r\n\r\n')
        else:
            self.reply(200, {'id': 'x', 'object': 'chat.completion', 'created': 0, 'model': 'truth', 'usage': usage,
                             'choices': [{'index': 0, 'finish_reason': 'length', 'message': {'role': 'assistant', 'content': ' a' * tokens}}]})
        roles = [m['role'] for m in body['messages']]
        marker = re.search(r'\[rid:(\w+)\]', ' '.join(texts))
        row = {'came': came - self.server.began, 'ended': time.monotonic() - self.server.began, 'tokens': tokens, 'roles': roles, 'marker': marker and marker[1],
               'marked': next((r for r, t in zip(roles, texts) if '[rid:' in t), None), 'head': hashlib.sha256(' '.join(texts)[:400].encode()).hexdigest()[:12],
               'begins': texts[0][:60], 'stream': body.get('stream', False), 'ignore_eos': body.get('ignore_eos'), 'min_tokens': body.get('min_tokens'),
               'session': self.headers.get('X-Session') or self.headers.get('X-Correlation-ID'), 'words': prompt}
        with self.server.lock:
            self.server.log.append(row)

    def event(self, value):
        data = b'data: ' + (b'[DONE]' if value is None else json.dumps(value).encode()) + b'\n\n'
        self.wfile.write(f'{len(data):x}\r\n'.encode() + data + b'\r\n')
        self.wfile.flush()


def play(client, folder, tools):
    os.makedirs(f'{folder}/traces', exist_ok=True)
    for trace in make_traces():
        with open(f'{folder}/traces/{trace["id"]}.json', 'w') as file:
            json.dump(trace, file)
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f'http://127.0.0.1:{server.server_address[1]}'
    if client == 'reprise':
        workload = f'{folder}/w.parquet'
        subprocess.run([tools.reprise, 'import', f'{folder}/traces', '-o', workload, '--arrivals', 'constant:1', '--quiet'], check=True)
        command = [tools.reprise, 'replay', workload, '--url', url, '-o', f'{folder}/r.parquet', '--api', 'chat', '--model', 'truth', '--tokenizer', 'o200k_base',
                   '--scenario', 'agentx-0.13', '--force', '--sessions', str(LANES), '--duration', f'{SECONDS}s', '--set', f'trajectory-start={START}..{START}',
                   '--set', 'affinity-header=X-Session', '--set', 'template-tokens=0', '--scrape', 'none']
        env = os.environ
    else:
        command = [tools.aiperf, 'profile', '-m', 'truth', '--url', url, '--endpoint-type', 'chat', '--streaming',
                   '--input-file', f'{folder}/traces', '--custom-dataset-type', 'weka_trace',
                   '--scenario', 'inferencex-agentx-mvp', '--unsafe-override', '--concurrency', str(LANES), '--benchmark-duration', str(SECONDS),
                   '--trajectory-start-min-ratio', str(START), '--trajectory-start-max-ratio', str(START),
                   '--dataset-sampling-strategy', 'sequential', '--random-seed', '42',
                   '--tokenizer', 'truth/tok', '--use-server-token-count',
                   '--artifact-dir', f'{folder}/artifacts', '--ui', 'none', '--no-server-metrics', '--no-gpu-telemetry']
        env = os.environ | {'HF_HOME': tools.hf, 'HF_HUB_OFFLINE': '1', 'HF_HUB_DISABLE_TELEMETRY': '1', 'TOKENIZERS_PARALLELISM': 'false', 'NO_COLOR': '1'}
    with open(f'{folder}/{client}.txt', 'w') as out:
        status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=env).returncode
    time.sleep(1)
    with open(f'{folder}/{client}.jsonl', 'w') as file:
        for row in sorted(server.log, key=lambda row: row['came']):
            file.write(json.dumps(row) + '\n')
    print(f'{client}: exit code {status}, {len(server.log)} requests; its output is in {folder}/{client}.txt')


class Play:
    """One play of a conversation, as the server saw it."""

    def __init__(self, trace, rows):
        self.trace, self.rows = trace, rows  # the latter by output length
        self.begin, self.end = min(row['came'] for row in rows.values()), max(row['ended'] for row in rows.values())


class Seen:
    """What the server saw of a client."""

    def __init__(self, file):
        with open(file) as lines:
            rows = [json.loads(line) for line in lines]
        self.rows = [row for row in rows if row['session']]  # others are probes
        self.warm = [row for row in self.rows if row['tokens'] == 1]
        sent = [row for row in self.rows if row['tokens'] > 1]
        self.start = sent[0]['came']
        self.sent = sent
        plays, trace_of = [], {r['out']: trace['id'] for trace in make_traces() for r in requests(trace)}
        begins = {trace['requests'][0]['out'] for trace in make_traces()}
        open_plays = {}  # by conversation: the one under way; the first of its requests begins the next
        for row in sent:
            trace = trace_of[row['tokens']]
            if trace not in open_plays or row['tokens'] in begins:
                open_plays[trace] = {}
                plays.append((trace, open_plays[trace]))
            open_plays[trace][row['tokens']] = row
        self.plays = [Play(*play) for play in plays]

    def idle(self):
        """Returns the times in which nothing was in flight, longest first."""
        out, until = [], self.start
        for row in self.sent:
            if row['came'] > until:
                out.append((row['came'] - until, until, row['came']))
            until = max(until, row['ended'])
        return sorted(out, reverse=True)


def requests(trace):
    for r in trace['requests']:
        yield from r['requests'] if r['type'] == 'subagent' else [r]


def recorded_waits():
    """Yields for each request, but the first of a root, what it waits for, how long it waited in the recording after the last of these, and of which kind it is."""
    for trace in make_traces():
        def end(r):
            return r['t'] + r['api_time']
        root, agents = None, []
        for entry in trace['requests']:
            if entry['type'] == 'subagent':
                before = root
                for i, r in enumerate(entry['requests']):
                    yield r['out'], [before['out']], r['t'] - end(before), 'turn' if i else 'first of a sub-agent'
                    before = r
                agents.append(before)
                continue
            if root and entry['hash_ids'][0] != root['hash_ids'][0]:
                yield entry['out'], [root['out']], entry['t'] - end(root), 'first of another agent'
                agents.append(entry)
                continue
            if root:
                joined = [a for a in agents if end(a) <= entry['t']]
                agents = [a for a in agents if a not in joined]
                yield entry['out'], [root['out']] + [a['out'] for a in joined], entry['t'] - max(end(r) for r in [root] + joined), 'after a join' if joined else 'turn'
            root = entry


def compare(folder):
    both = {name: Seen(f'{folder}/{name}.jsonl') for name in ('reprise', 'aiperf')}

    def line(what, figure):
        print(f'{what:<58}', *(f'{figure(seen):>24}' for seen in both.values()))
    print(f'{"":<58}', *(f'{name:>24}' for name in both))
    line('warm-up requests, of one token each', lambda s: len(s.warm))
    line('  sent, in s after the first', lambda s: ' '.join(f'{row["came"] - s.warm[0]["came"]:.2f}' for row in s.warm))
    line('measured requests', lambda s: len(s.sent))
    line('plays begun', lambda s: len(s.plays))
    line('conversations in the order of their plays', lambda s: ' '.join(play.trace[-1] for play in s.plays))
    firsts = {name: seen.plays[:LANES] for name, seen in both.items()}
    differ = [abs((a.rows[out]['came'] - both['reprise'].start) - (b.rows[out]['came'] - both['aiperf'].start))
              for a, b in zip(firsts['reprise'], firsts['aiperf']) for out in a.rows if out in b.rows]
    print(f'first plays: same requests {all(set(a.rows) == set(b.rows) for a, b in zip(firsts["reprise"], firsts["aiperf"]))}, in the same order '
          f'{all(list(a.rows) == list(b.rows) for a, b in zip(firsts["reprise"], firsts["aiperf"]))}; instants differ by {max(differ):.3f} s at most')
    whole = len(list(requests(make_traces()[0])))
    pairs = list(zip(both['reprise'].plays[LANES:], both['aiperf'].plays[LANES:]))
    later = [(a, b) for a, b in pairs if len(a.rows) == len(b.rows) == whole]
    print(f'later plays that both ended: {len(later)}; in the same order {sum(list(a.rows) == list(b.rows) for a, b in later)}')
    differ = [abs((a.rows[out]['came'] - both['reprise'].start) - (b.rows[out]['came'] - both['aiperf'].start)) for a, b in pairs for out in a.rows if out in b.rows]
    alone = [sum(out not in b.rows for out in a.rows) for a, b in pairs], [sum(out not in a.rows for out in b.rows) for a, b in pairs]
    print(f'later plays: {len(differ)} requests of both; instants differ by {statistics.median(differ):.3f} s in the median, {max(differ):.3f} s at most; of one alone: reprise {sum(alone[0])}, aiperf {sum(alone[1])}')
    line('longest time with nothing in flight, s', lambda s: f'{s.idle()[0][0]:.3f}')
    line('last request sent, s after the first', lambda s: f'{s.sent[-1]["came"] - s.start:.2f}')

    def waits(kind):
        def figure(s):
            capped = [(a, b) for took, a, b in s.idle() if took > 9.9]
            off = [row['came'] - max(play.rows[p]['ended'] for p in before) - recorded
                   for out, before, recorded, of in recorded_waits() if of == kind for play in s.plays
                   if (row := play.rows.get(out)) and all(p in play.rows for p in before)
                   and not any(min(play.rows[p]['ended'] for p in before) <= b and row['came'] >= b for a, b in capped)]
            if not off:
                return 'none'
            return f'{statistics.median(off):+.3f} ({min(off):+.3f} to {max(off):+.3f})'
        return figure
    for kind in ('turn', 'first of a sub-agent', 'first of another agent', 'after a join'):
        line(f'wait less the recorded one, s: {kind}', waits(kind))

    def recycled(s):
        ends, took = [], []
        for play in s.plays[:LANES]:
            ends.append(play.end)
        for play in s.plays[LANES:]:
            before = max((e for e in ends if e <= play.begin), default=None)
            if before is not None:
                took.append(play.begin - before)
                ends.remove(before)
            ends.append(play.end)
        return f'{statistics.median(took):.3f}, at most {max(took):.3f}'
    line('from the end of a play to the next, s', recycled)

    def markers(s):
        each = [{row['marker'] for row in play.rows.values()} for play in s.plays]
        if each[0] == {None}:
            return 'none: blocks of its own'
        return f'{len(set().union(*each))} in {len(each)} plays'
    line('markers', markers)

    def repeated(s):
        heads = {}
        for i, play in enumerate(s.plays):
            for row in play.rows.values():
                heads.setdefault(row['head'], set()).add(i)
        return sum(len(plays) > 1 for plays in heads.values())
    line('first 400 characters that several plays have', repeated)
    line('stream, ignore_eos, in all', lambda s: str(all(row['stream'] and row['ignore_eos'] for row in s.sent)))
    line('min_tokens', lambda s: str({bool(row['min_tokens']) for row in s.sent}))
    line('roles of a first turn', lambda s: ' '.join(s.plays[LANES].rows[min(s.plays[LANES].rows)]['roles']))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['play', 'compare'])
    parser.add_argument('rest', nargs='+')
    parser.add_argument('--reprise', default='reprise')
    parser.add_argument('--aiperf', default='aiperf')
    parser.add_argument('--hf', default=os.path.expanduser('~/.cache/huggingface'), help="folder with the cache of AIPerf's tokenizer")
    tools = parser.parse_args()
    if tools.what == 'play':
        return play(tools.rest[0], tools.rest[1], tools)
    return compare(tools.rest[0])


if __name__ == '__main__':
    main()
