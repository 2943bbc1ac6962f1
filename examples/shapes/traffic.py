#!/usr/bin/env python3
"""Writes a trace of one shape of LLM traffic, as JSON lines in Mooncake's form, to standard output.

    traffic.py SHAPE [-n ROWS] [--seed SEED] [--sid] [--rate SESSIONS_PER_SECOND] [--block TOKENS]

Each line has timestamp (ms), input_length, output_length and hash_ids: an id for each block of the prompt, chained, so
that equal ids mean equal prompts up to there. The last block may be partial; it has the id of a full one nowhere, and
its own id again only where the whole prompt is the same. --sid adds session_id, as the operator of such traffic would
log it. The same arguments give the same lines. The log begins in the middle of the traffic, as logs do.
traffic.py --list says who has which shape and what is awkward about it. Standard library only.
"""
import argparse
import heapq
import inspect
import itertools
import json
import math
import random
import sys


class World:
    """The dice, and texts that nobody wrote before. A prompt is a list of spans (source, start, tokens)."""

    def __init__(self, seed, rate):
        self.dice = random.Random(seed)
        self.rate = rate
        self.sources = itertools.count()
        self.sessions = itertools.count()

    def text(self, tokens):
        """A span that shares nothing with any other."""
        return (next(self.sources), 0, max(1, int(tokens)))

    def session(self):
        return next(self.sessions)

    def geometric(self, mean):
        """A whole number from 1 on."""
        return 1 + int(self.dice.expovariate(1) / -math.log(1 - 1 / mean)) if mean > 1 else 1

    def gamma(self, mean, k):
        return self.dice.gammavariate(k, mean / k)

    def pareto(self, least, alpha, most):
        return min(most, least * self.dice.paretovariate(alpha))

    def rank(self, count, exponent):
        """An index below count, the first the likeliest."""
        return self.dice.choices(range(count), [(i + 1) ** -exponent for i in range(count)])[0]

    def starts(self, default_rate):
        """The times at which sessions begin: a Poisson process."""
        t = 0.0
        while True:
            t += self.dice.expovariate(self.rate or default_rate)
            yield t


def length(spans):
    return sum(tokens for _, _, tokens in spans)


def cut(spans, start, stop):
    """The tokens from start up to stop of a text."""
    out, at = [], 0
    for source, first, tokens in spans:
        lo, hi = max(start, at), min(stop, at + tokens)
        if lo < hi:
            out.append((source, first + lo - at, hi - lo))
        at += tokens
    return out


def block_ids(spans, block, known):
    """Ids of the blocks of a prompt, by all that stands from the prompt's start to the block's end."""
    ids, parent, held, room = [], None, [], block

    def close():
        key = (parent, tuple(held))
        ids.append(known.setdefault(key, len(known)))
        return ids[-1], [], block

    for source, start, tokens in spans:
        while tokens:
            take = min(room, tokens)
            # Two spans that stand side by side in their source are one, wherever a prompt was put together.
            if held and held[-1][0] == source and held[-1][1] + held[-1][2] == start:
                held[-1] = (source, held[-1][1], held[-1][2] + take)
            else:
                held.append((source, start, take))
            start, tokens, room = start + take, tokens - take, room - take
            if room == 0:
                parent, held, room = close()
    if held:
        close()
    return ids


# Each shape yields sessions in the order in which they begin, as (start, rows), and rows are
# (time, spans of the prompt, output tokens, session). Its first lines of code are constants of that traffic.


def autocomplete(w):
    """Completion in editors (fill in the middle), as Copilot, Tabby or Continue send it.

    A prompt is instructions, snippets of other files, up to 1,536 tokens before the cursor and 512 after it. Awkward:
    the window slides with each key once a file is longer, so that the prefix breaks in its first block; nearly no
    prompt goes on from an earlier one's answer; colleagues open the same files; most answers are cut off within a
    second. A session is a sitting of one developer.
    """
    before, after, most_output = 1536, 512, 64
    instructions = w.text(220)
    repositories = [[(w.text(12), [w.text(w.pareto(150, 0.9, 20000))]) for _ in range(120)] for _ in range(15)]
    for begin in w.starts(0.06):
        t, session, rows = begin, w.session(), []
        files = repositories[w.rank(15, 0.8)]
        for _ in range(1 + int(w.dice.weibullvariate(3, 0.8))):
            path, text = files[w.rank(120, 0.9)]
            snippets = [cut(files[w.rank(120, 0.9)][1], 0, 60 + w.rank(5, 0.3) * 60)
                        for _ in range(w.dice.choice((0, 0, 1, 2, 3)))]
            cursor = w.dice.randrange(length(text) + 1)
            for _ in range(w.geometric(14)):
                if w.dice.random() < 0.08:
                    cursor = w.dice.randrange(length(text) + 1)
                typed = w.text(w.geometric(3))
                text = cut(text, 0, cursor) + [typed] + cut(text, cursor, length(text))
                cursor += typed[2]
                prompt = [instructions] + sum(snippets, []) + [path]
                prompt += cut(text, max(0, cursor - before), cursor) + cut(text, cursor, cursor + after)
                gaps = w.dice.uniform(0.2, 0.9), w.gamma(6, 1.5), w.pareto(40, 1.1, 1800)
                gap = w.dice.choices(gaps, (80, 17, 3))[0]
                output = min(most_output, w.geometric(22))
                aborted = gap < 0.35 + output * 0.012
                if aborted:
                    output = min(output, max(1, int((gap - 0.3) / 0.012)))
                rows.append((t, prompt, output, session))
                if not aborted and w.dice.random() < 0.35:
                    answer = w.text(output)
                    text = cut(text, 0, cursor) + [answer] + cut(text, cursor, length(text))
                    cursor += answer[2]
                t += gap
        yield begin, rows


def voice(w):
    """Voice agents on the telephone, as Pipecat, LiveKit or Vapi run them.

    Turns of some twenty tokens, seconds apart, on a long prompt: a persona, today's date and who is calling, then
    rules and tools. Awkward: date and caller stand in the middle, so that what all calls share ends there, and for all
    calls anew at midnight; ten turns fill one block; a caller who interrupts cuts the answer, in the history too. A
    session is a call.
    """
    lines = [(w.text(w.dice.triangular(250, 1600, 500)), w.text(w.dice.uniform(900, 3400))) for _ in range(6)]
    midnight = WARM["voice"] + w.dice.uniform(60, 1200)
    dates = {line: {} for line in range(6)}
    for begin in w.starts(0.15):
        line = w.rank(6, 1.2)
        persona, rules = lines[line]
        date = dates[line].setdefault(begin > midnight, w.text(14))
        caller = [w.text(w.dice.uniform(25, 110))] if w.dice.random() < 0.6 else []
        t, session, rows = begin, w.session(), []
        prompt = [persona, date] + caller + [rules]
        for _ in range(2 + w.geometric(9)):
            prompt = prompt + [w.text(w.geometric(14))]
            output = 4 + int(w.gamma(30, 2.0))
            if w.dice.random() < 0.12:
                output = max(1, int(output * w.dice.random()))
            rows.append((t, prompt, output, session))
            prompt = prompt + [w.text(output)]
            t += 0.8 + output * 0.3 + w.gamma(3, 2.0)
        yield begin, rows


def mapreduce(w):
    """Batch summaries of long documents: each part on its own, eight at a time, then a join of the answers.

    Awkward: parts have one fixed length and are read once; the joins are made of answers and share nothing with the
    parts; lengths have two peaks and a limit; a quarter of the jobs ask a second thing of every part, and some take a
    document that an earlier job had. A session is a job, of which most requests share but the instructions.
    """
    part, most_output, width, fan_in = 3000, 400, 8, 20
    instructions, joining, tasks = w.text(700), w.text(480), [w.text(60) for _ in range(5)]
    library = []
    for begin in w.starts(0.08):
        session, rows = w.session(), []
        if library and w.dice.random() < 0.08:
            document = library[-w.rank(min(len(library), 50), 0.5) - 1]
        else:
            document = w.text(w.pareto(3500, 0.95, 200000))
            library.append(document)
        slots = [begin + i * 0.005 for i in range(width)]

        def send(ready, prompt):
            """Sends a prompt as soon as it is ready and a slot is free, and gives the answer and when it is there."""
            t = max(ready, heapq.heappop(slots))
            output = min(most_output, int(w.gamma(300, 4.0)) + 1)
            done = t + 0.4 + output * 0.015 * w.dice.uniform(0.8, 1.5)
            heapq.heappush(slots, done + 0.01)
            rows.append((t, prompt, output, session))
            return done, w.text(output)

        ready = begin
        for task in w.dice.sample(tasks, 2 if w.dice.random() < 0.25 else 1):
            answers = [send(ready, [instructions] + cut([document], at, at + part) + [task])
                       for at in range(0, document[2], part)]
            while len(answers) > 1:
                answers = [send(max(done for done, _ in group), [joining] + [text for _, text in group])
                           for group in (answers[i:i + fan_in] for i in range(0, len(answers), fan_in))]
            ready = answers[0][0] + 0.2
        yield begin, rows


def branches(w):
    """Search over answers: best of n, tree of thoughts, self-consistency with a judge.

    Awkward: the same prompt is sent 4 to 16 times within milliseconds, the best of these branches are extended and sent
    as often again, while a judge reads each candidate under a prompt of its own. A session is a problem.
    """
    harnesses = [(w.text(w.dice.uniform(600, 3600)), w.text(640)) for _ in range(3)]
    for begin in w.starts(0.04):
        session, rows = w.session(), []
        solver, judge = harnesses[w.rank(3, 1.0)]
        problem = w.text(30 + w.dice.weibullvariate(320, 1.3))
        width, t, beam = w.dice.choice((4, 8, 8, 16)), begin, [[solver, problem]]
        for _ in range(min(6, w.geometric(2.2))):
            ends = []
            for node in beam:
                for i in range(width // len(beam)):
                    output = int(w.dice.triangular(20, 1024, 260))
                    thought = w.text(output)
                    rows.append((t + i * 0.001, node, output, session))
                    done = t + 0.3 + output * 0.02
                    rows.append((done, [judge, problem] + node[2:] + [thought], w.dice.randint(1, 4), session))
                    ends.append((done + 0.5, node + [thought]))
            t = max(done for done, _ in ends)
            beam = [node for _, node in w.dice.sample(ends, min(len(ends), w.dice.choice((1, 2, 2))))]
        yield begin, rows


def compaction(w):
    """Customer support, or any long chat, whose history is put into a summary when it gets long.

    A turn may bring passages that were looked up. Above 6,000 tokens the history is summarised by a request of its
    own, and the next prompt is the system prompt, the summary and the last two exchanges. Awkward: there a session goes
    on with a prefix that nobody saw; customers come back after hours. A session is a ticket, over all its summaries.
    """
    limit, most_output = 6000, 700
    products = [w.text(w.dice.uniform(900, 2400)) for _ in range(8)]
    summarise = w.text(40)
    for begin in w.starts(0.08):
        t, session, rows = begin, w.session(), []
        system, summary, history = products[w.rank(8, 0.7)], [], []
        for _ in range(w.dice.randint(1, 4) if w.dice.random() < 0.5 else w.dice.randint(3, 60)):
            turn = [w.text(w.gamma(55, 1.2))]
            if w.dice.random() < 0.4:
                turn.append(w.text(w.dice.uniform(300, 1500)))
            if length([system] + summary + sum(history, []) + turn) > limit:
                output = w.dice.randint(350, 600)
                rows.append((t, [system] + summary + sum(history, []) + [summarise], output, session))
                t += 1 + output * 0.012
                summary, history = [w.text(output)], history[-2:]
            prompt = [system] + summary + sum(history, []) + turn
            output = min(most_output, 10 + int(w.gamma(140, 1.6)))
            rows.append((t, prompt, output, session))
            history.append(turn + [w.text(output)])
            t += output * 0.012
            t += w.dice.uniform(15, 100) if w.dice.random() < 0.9 else w.pareto(300, 0.8, 20000)
        yield begin, rows


def cron(w):
    """An office: chats by the time of day, and jobs that a clock starts, most of them at full hours.

    Awkward: the log spans hours or days; within seconds of each hour come as many requests as in many minutes else, on
    prompts that are asked for then only; a job brings its prompt back when caches have forgotten it. Session ids are
    those of chats; each request of a job has its own.
    """
    day, pace = 86400.0, w.rate or 0.006
    assistant = w.text(480)
    jobs = [(w.dice.choice((300, 900) + (3600,) * 12 + (6 * 3600, day)), w.text(w.dice.uniform(300, 5000)),
             w.dice.choice((1, 1, 1, 2, 4, 12))) for _ in range(20)]

    def chats():
        t = 0.0
        while True:
            # Candidates come at the rate of noon, and each is kept as often as its hour asks.
            t += w.dice.expovariate(2 * pace)
            if w.dice.random() > 0.5 - 0.48 * math.cos(2 * math.pi * t / day):
                continue
            at, session, rows, prompt = t, w.session(), [], [assistant]
            for _ in range(w.geometric(3.5)):
                paste = w.dice.random() < 0.15
                prompt = prompt + [w.text(w.dice.uniform(800, 4000) if paste else w.geometric(45))]
                output = int(w.dice.choices((w.gamma(60, 1.0), w.gamma(600, 5.0)), (0.6, 0.4))[0]) + 1
                rows.append((at, prompt, output, session))
                prompt = prompt + [w.text(output)]
                at += output * 0.015 + 5 + w.pareto(8, 0.9, 3600)
            yield t, rows

    def runs(period, template, width):
        offset = w.dice.choice((0, 0, 0, 300)) if period >= 3600 else 0
        for k in itertools.count(1):
            begin = k * period + offset + w.dice.expovariate(2)
            yield begin, [(begin + w.dice.uniform(0, 4), [template, w.text(min(6000, w.pareto(200, 0.8, 9000)))],
                           w.dice.randint(40, 160), w.session()) for _ in range(width)]

    yield from heapq.merge(chats(), *(runs(*job) for job in jobs), key=lambda session: session[0])


def logs(w):
    """Classification of log lines or moderation of messages: one huge prompt, tiny tails, answers of a few tokens.

    Lines come as a shipper flushes them. Awkward: all requests share all but their last block; the commonest lines come
    again word for word; in an incident there are ten times as many, and clients that time out send the same
    request again after 1, 2, 4 and 8 s. A session is a line with its retries.
    """
    taxonomy = w.text(14200)
    common = [w.text(w.dice.uniform(12, 160)) for _ in range(80)]
    every = 2 / (w.rate or 1)
    t, incident, until = 0.0, True, -1.0
    while True:
        if t > until:
            incident = not incident
            until = t + (w.gamma(50, 2.0) if incident else w.gamma(400, 1.0))
        rows = []
        for _ in range(w.geometric(26 if incident else 3) - 1):
            line = common[w.rank(80, 1.1)] if w.dice.random() < 0.4 else w.text(w.dice.triangular(15, 190, 40))
            at, wait, session = t + w.dice.uniform(0, 0.05), 1.0, w.session()
            rows.append((at, [taxonomy, line], w.dice.randint(1, 6), session))
            while incident and wait <= 8 and w.dice.random() < 0.45:
                at, wait = at + 2 + wait, wait * 2
                rows.append((at, [taxonomy, line], w.dice.randint(1, 6), session))
        yield t, rows
        t += every


def roleplay(w):
    """Games and companions: one story over hundreds of turns, in a window of the latest messages.

    A prompt is a character card of a popular character, the player's persona, then as many messages as fit into
    4,096 or 8,192 tokens. Awkward: once it is full, each turn drops the oldest messages, so that the prefix breaks
    right behind the card though a session goes on for hours; one answer in six is asked for again with the same prompt;
    notes are put between old messages for one turn. A session is a story.
    """
    cards = [w.text(w.dice.triangular(200, 2600, 600)) for _ in range(200)]
    for begin in w.starts(0.012):
        t, session, rows = begin, w.session(), []
        window = w.dice.choice((4096, 4096, 8192)) - 300
        head, messages = [cards[w.rank(200, 1.0)], w.text(w.dice.uniform(20, 200))], []
        for _ in range(int(w.pareto(12, 1.0, 600))):
            messages.append(w.text(w.dice.choices((w.geometric(18), w.gamma(130, 3.0)), (0.7, 0.3))[0]))
            note = [w.text(w.dice.uniform(100, 300))] if w.dice.random() < 0.1 else []
            while length(head + messages + note) > window:
                messages = messages[2:]
            prompt = head + messages[:-4] + note + messages[-4:]
            while True:
                output = min(300, int(w.gamma(190, 6.0)) + 1)
                rows.append((t, prompt, output, session))
                t += output * 0.02 + 4 + w.gamma(12, 1.5)
                if w.dice.random() > 0.16:
                    break
            messages.append(w.text(output))
            t += w.gamma(30, 1.0)
        yield begin, rows


SHAPES = {f.__name__: f for f in (autocomplete, voice, mapreduce, branches, compaction, cron, logs, roleplay)}
# How many seconds of traffic pass before the log begins, so that sessions of all ages are there.
WARM = {"autocomplete": 1800, "voice": 240, "mapreduce": 300, "branches": 200, "compaction": 7200,
        "cron": 6 * 3600, "logs": 60, "roleplay": 4 * 3600}


def rows_in_order(sessions):
    """The rows of sessions that overlap, by time."""
    waiting, order = [], itertools.count()
    for begin, rows in sessions:
        while waiting and waiting[0][0] <= begin:
            yield heapq.heappop(waiting)[2]
        for row in rows:
            heapq.heappush(waiting, (row[0], next(order), row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="?", choices=sorted(SHAPES))
    parser.add_argument("-n", type=int, default=4000, metavar="ROWS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sid", action="store_true", help="write session ids")
    parser.add_argument("--rate", type=float, help="sessions that begin in a second (default: by shape)")
    parser.add_argument("--block", type=int, default=512, help="tokens in a block")
    parser.add_argument("--list", action="store_true", help="describe the shapes")
    options = parser.parse_args()
    if options.list:
        for name, shape in SHAPES.items():
            print("%s: %s\n" % (name, inspect.getdoc(shape)))
        return
    if not options.shape:
        parser.error("name a shape: " + ", ".join(SHAPES))
    warm, known = WARM[options.shape], {}
    traffic = rows_in_order(SHAPES[options.shape](World(options.seed, options.rate)))
    in_log = itertools.dropwhile(lambda row: row[0] < warm, traffic)
    for t, prompt, output, session in itertools.islice(in_log, options.n):
        row = {"session_id": "s%d" % session} if options.sid else {}
        row.update(timestamp=int((t - warm) * 1000), input_length=length(prompt), output_length=output,
                   hash_ids=block_ids(prompt, options.block, known))
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
