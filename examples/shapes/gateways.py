#!/usr/bin/env python3
"""Writes a trace of one shape of LLM traffic behind a gateway, as traffic.py does, in its form.

    gateways.py SHAPE [-n ROWS] [--seed SEED] [--sid]

gateways.py --list says what is awkward about each shape. Standard library only.
"""
import argparse
import heapq
import inspect
import itertools
import json
import math
import random

from traffic import block_ids, cut, length, rows_in_order

BLOCK = 512


class World:
    """The dice, and texts. A text is a list of spans (source, first token, tokens)."""

    def __init__(self, seed, n):
        self.dice = random.Random("more-%d" % seed)
        self.n = n
        self.sources, self.sessions = itertools.count(), itertools.count()

    def text(self, tokens):
        """Text that nobody wrote before."""
        return [(next(self.sources), 0, max(1, int(tokens)))]

    def session(self):
        return next(self.sessions)

    def lognormal(self, median, sigma, most=10 ** 9):
        return max(1, min(most, int(self.dice.lognormvariate(math.log(median), sigma))))

    def log_uniform(self, low, high):
        return int(math.exp(self.dice.uniform(math.log(low), math.log(high))))

    def geometric(self, mean, most=10 ** 9):
        return min(most, 1 + int(self.dice.expovariate(1 / (mean - 0.5)))) if mean > 1 else 1

    def zipf(self, count, exponent):
        return self.dice.choices(range(count), [(i + 1) ** -exponent for i in range(count)])[0]

    def poisson(self, rate, begin):
        t = begin
        while True:
            t += self.dice.expovariate(rate)
            yield t


# A shape yields (begin, rows) by begin, where rows are (time, prompt, output tokens, session). Time 0 is the log's
# first moment; what is before it is traffic that the log does not show.


def chat(w, t, head, turns, user=70, answer=220, speed=0.012, think=25, most_output=2048):
    """The rows of a chat that begins at t: each prompt is all that was said, and a new message."""
    session, prompt, rows = w.session(), list(head), []
    for _ in range(turns):
        paste = w.dice.random() < 0.07
        prompt = prompt + w.text(w.lognormal(900, 0.8, 12000) if paste else w.lognormal(user, 0.9, 4000))
        output = w.lognormal(answer, 0.9, most_output)
        rows.append((t, prompt, output, session))
        prompt = prompt + w.text(output)
        t += 0.5 + output * speed + w.lognormal(think, 1.0, 7200)
    return rows


def versions(w):
    """20 applications by Zipf, whose system prompts of 300-6,000 tokens get a new version now and then.

    A new version keeps the first part and changes from some point on. It is rolled out over some minutes, in which
    both are served; one in eight is rolled back, to the very text of before. Half of the applications build the prompt
    anew for each turn, so that a chat goes on under the new version and breaks there; in the others a chat keeps the
    version that it began with. Chats have 1-8 turns.
    """
    class App:
        def __init__(self, rank):
            self.every = w.dice.choice((1500, 3000, 6000, 20000))  # seconds between versions
            self.history = [(-1e9, w.text(w.log_uniform(300, 6000)))]
            self.rebuilds = w.dice.random() < 0.5
            self.rollout = w.dice.choice((1, 30, 300, 600))
            t = -4000.0
            while t < 400000:
                t += w.dice.expovariate(1 / self.every)
                old = self.history[-1][1]
                if w.dice.random() < 0.125 and len(self.history) > 1:
                    new = self.history[-2][1]
                else:
                    size = length(old)
                    keep = int(size * w.dice.betavariate(2, 1))
                    tail = max(20, int((size - keep) * w.dice.uniform(0.6, 1.5)))
                    new = cut(old, 0, keep) + w.text(min(tail, 6000 - keep) if keep < 5980 else 20)
                    # Often only one sentence is new and what follows is as before: the blocks differ all the same.
                self.history.append((t, new))

        def prompt(self, t, luck):
            now = self.history[0][1]
            for since, text in self.history:
                if t >= since + luck * self.rollout:
                    now = text
                elif t < since:
                    break
            return now

    apps = [App(i) for i in range(20)]
    for begin in w.poisson(0.2, -1500.0):
        app = apps[w.zipf(20, 1.0)]
        turns = w.dice.choices(range(1, 9), (34, 18, 13, 10, 8, 7, 5, 5))[0]
        luck = w.dice.random()
        head = app.prompt(begin, luck)
        rows = chat(w, begin, head, turns)
        if app.rebuilds:
            rows = [(t, app.prompt(t, luck) + cut(prompt, length(head), 10 ** 9), output, session)
                    for t, prompt, output, session in rows]
        yield begin, rows


def groups(w):
    """Three groups of models behind one gateway, each with its own lengths, rates, templates, answers and bursts.

    classify: a small model, 5 templates of 250-1,100 tokens, answers of 1-6 tokens, sent by workers that empty a queue:
    seconds of 20-60 requests per second, then silence. chat: 6 assistants, chats by a Poisson process. summarise:
    long documents of 15k-110k tokens by an arrival process of CV 3, answers of 400-1,600 tokens; one document in four
    is summarised again within minutes, with another instruction behind it or, rarely, with the same.
    """
    templates = [w.text(w.log_uniform(250, 1100)) for _ in range(5)]
    assistants = [w.text(w.log_uniform(150, 3500)) for _ in range(6)]
    head, orders = w.text(340), [w.text(w.dice.randint(15, 90)) for _ in range(4)]

    def classify():
        t = -400.0
        while True:
            t += w.dice.expovariate(1 / 45)
            template, at = templates[w.zipf(5, 1.0)], t
            for _ in range(w.lognormal(14, 1.1, 800)):
                at += w.dice.expovariate(40)
                yield at, [(at, template + w.text(w.lognormal(45, 0.7, 500)), w.dice.choice((1, 1, 1, 2, 3, 6)),
                            w.session())]
            t = at

    def chats():
        for begin in w.poisson(0.12, -2000.0):
            yield begin, chat(w, begin, assistants[w.zipf(6, 0.9)], w.geometric(3.5, 40))

    def summarise():
        t = -2000.0
        while True:
            t += w.dice.gammavariate(1 / 9, 9) / 0.03
            document = w.text(w.log_uniform(15000, 110000))
            session, at, rows = w.session(), t, []
            order = w.zipf(4, 1.0)
            for _ in range(1 + (w.dice.random() < 0.25) + (w.dice.random() < 0.06)):
                rows.append((at, head + document + orders[order], w.dice.randint(400, 1600), session))
                at += w.lognormal(90, 1.0)
                order = w.zipf(4, 0.3)
            yield t, rows

    yield from heapq.merge(classify(), chats(), summarise(), key=lambda item: item[0])


def evals(w):
    """Usual chats, plus evaluation runs: 50-1,500 single requests on one few-shot template at a constant concurrency.

    A benchmark has its template of 600-5,000 tokens, its questions, and answers of one token or a chain of thought.
    Half of the runs take up an earlier benchmark, with the same prompts in the same order, as for the next checkpoint.
    """
    assistants = [w.text(w.log_uniform(200, 2500)) for _ in range(5)]

    def chats():
        for begin in w.poisson(0.2, -1500.0):
            yield begin, chat(w, begin, assistants[w.zipf(5, 1.0)], w.geometric(3, 30))

    def runs():
        benchmarks, t = [], -900.0
        while True:
            t += w.dice.expovariate(1 / 500)
            if benchmarks and w.dice.random() < 0.5:
                prompts, thought, width = benchmarks[-1 - w.zipf(len(benchmarks), 0.7)]
            else:
                template, question = w.text(w.log_uniform(600, 5000)), w.log_uniform(40, 400)
                prompts = [template + w.text(w.lognormal(question, 0.5, 3000))
                           for _ in range(min(1500, max(50, w.lognormal(200, 0.9))))]
                thought, width = w.dice.choice((0, 0, 180, 350)), w.dice.choice((8, 16, 32, 64))
                benchmarks.append((prompts, thought, width))
            slots = [t + i * 0.004 for i in range(width)]
            heapq.heapify(slots)
            for prompt in prompts:
                at = heapq.heappop(slots)
                output = w.lognormal(thought, 0.5, 1024) if thought else 1
                heapq.heappush(slots, at + 0.25 + output * 0.014 * w.dice.uniform(0.9, 1.3))
                yield at, [(at, prompt, output, w.session())]
            t = max(slots)

    yield from heapq.merge(chats(), runs(), key=lambda item: item[0])


def templates(w):
    """12 templates of 120-4,500 tokens with a question each, single requests.

    Popularity is very different (Zipf 1.6). Answers are by template: labels, fields of a form (nearly constant),
    sentences, pages. One question in fourteen is a common one, word for word. Calls come in little groups, as a
    page or a job makes several.
    """
    kinds = []
    for _ in range(12):
        answer = w.dice.choice(((2, 0.4, 8), (38, 0.08, 60), (120, 0.6, 1024), (700, 0.5, 2048)))
        kinds.append((w.text(w.log_uniform(120, 4500)), w.log_uniform(20, 600), w.dice.uniform(0.3, 1.0), answer,
                      w.dice.choice((1, 1, 2, 5))))
    common = [[w.text(w.lognormal(question, spread, 6000)) for _ in range(15)] for _, question, spread, _, _ in kinds]
    for begin in w.poisson(1.2, -60.0):
        k = w.zipf(12, 1.6)
        template, question, spread, (median, sigma, most), group = kinds[k]
        at = begin
        for _ in range(w.geometric(group)):
            again = w.dice.random() < 0.07
            asked = common[k][w.zipf(15, 1.0)] if again else w.text(w.lognormal(question, spread, 6000))
            yield begin, [(at, template + asked, w.lognormal(median, sigma, most), w.session())]
            at += w.dice.expovariate(5)


def documents(w):
    """Questions on documents: a system prompt of 1,340 tokens, a document, the questions. Documents come and go.

    A document is in fashion for minutes to hours, then nobody asks for it. A session is 1-5 questions on one document;
    in two of three the talk so far stands before the next question, in the others each question stands alone.
    """
    system = w.text(1340)
    shelf = []  # (came at, fades in, weight, text)
    arrivals = w.poisson(1 / 70, -8000.0)
    next_document = next(arrivals)
    for begin in w.poisson(0.3, -6000.0):
        while next_document <= begin or not shelf:
            shelf.append((next_document, w.log_uniform(200, 9000), w.dice.paretovariate(1.1),
                          w.text(w.lognormal(6000, 0.9, 60000))))
            next_document = next(arrivals)
        # Interest rises over some minutes and fades.
        weights = [weight * min(1.0, 0.1 + (begin - came) / 240) * math.exp(-(begin - came) / fades)
                   for came, fades, weight, _ in shelf]
        document = w.dice.choices(shelf, weights)[0][3]
        shelf = [d for d in shelf if begin - d[0] < 8 * d[1]] or shelf[-1:]
        t, session, talk, rows = begin, w.session(), [], []
        keeps = w.dice.random() < 0.67
        for _ in range(w.dice.choices((1, 2, 3, 4, 5), (40, 25, 17, 11, 7))[0]):
            question, output = w.text(w.lognormal(28, 0.6, 400)), w.lognormal(180, 0.7, 1500)
            rows.append((t, system + document + talk + question, output, session))
            if keeps:
                talk = talk + question + w.text(output)
            t += 1 + output * 0.013 + w.lognormal(35, 0.9, 3600)
        yield begin, rows


def tools(w):
    """Coding agents with tool schemas, parallel calls, a context limit and retries.

    A prompt is the harness's system prompt, its tools, schemas of the user's own servers, the date and the folder,
    notes of the repository, then the task and all calls with their results. A turn may have several calls at once, and their
    results come together; some calls are helpers, that run as requests of their own beside each other on a shorter
    prompt. What the model thought is not kept. Above the limit the oldest results are replaced by stubs, so that the
    prefix breaks far in front. A failed request is sent again after 1, 2, 4 s, with the same prompt. A session is a
    task with its helpers.
    """
    parts = ((2200, 6000), (3500, 9000), (500, 1500))
    harnesses = [tuple(w.text(w.dice.randint(*tokens)) for tokens in parts) for _ in range(3)]
    servers = [w.text(w.log_uniform(200, 4000)) for _ in range(8)]
    users = []
    for _ in range(40):
        own = [s for s in servers if w.dice.random() < 0.2]
        users.append((w.zipf(3, 1.0), sum(own, []), [w.text(w.log_uniform(100, 5000)) for _ in range(3)],
                      w.dice.choice((48000, 96000, 128000))))

    def send(rows, t, prompt, output, session):
        wait = 1.0
        while w.dice.random() < 0.04 and wait <= 4:
            rows.append((t, prompt, w.dice.randint(1, max(1, output)), session))  # it broke off here
            t, wait = t + w.dice.uniform(0.2, 20) + wait, wait * 2
        rows.append((t, prompt, output, session))
        return t + 1 + output * 0.015

    for begin in w.poisson(0.016, -3000.0):
        harness, own, notes, limit = users[w.zipf(40, 0.7)]
        system, schemas, helper = harnesses[harness]
        session, rows, t = w.session(), [], begin
        head = system + schemas + own + w.text(w.dice.randint(30, 90)) + notes[w.zipf(3, 1.2)]
        history = []  # (text, is a result)
        for _ in range(w.geometric(2.2, 12)):
            history.append((w.text(w.lognormal(60, 1.2, 6000)), False))
            for step in range(w.geometric(9, 90)):
                while length(head) + sum(length(x) for x, _ in history) > limit:
                    olds = [i for i, (_, result) in enumerate(history) if result]
                    if not olds:
                        history = history[len(history) // 2:]
                        break
                    for i in olds[:max(1, len(olds) // 2)]:
                        history[i] = (w.text(9), False)
                output, thought = w.lognormal(110, 0.9, 4000), w.lognormal(80, 1.0, 3000)
                t = send(rows, t, head + sum((x for x, _ in history), []), output + thought, session)
                history.append((w.text(output), False))
                calls = w.dice.choices((1, 2, 3, 5), (70, 15, 10, 5))[0]
                if w.dice.random() < 0.02:
                    ends = []
                    for i in range(w.dice.randint(1, 4)):
                        at, prompt = t + i * 0.05, helper + schemas + w.text(w.lognormal(250, 0.6))
                        for _ in range(w.geometric(5, 30)):
                            said = w.lognormal(90, 0.8, 2000)
                            at = send(rows, at, prompt, said, session) + w.lognormal(0.8, 1.0)
                            prompt = prompt + w.text(said) + w.text(w.lognormal(700, 1.2, 15000))
                        ends.append(at)
                    t = max(ends)
                for _ in range(calls):
                    history.append((w.text(w.lognormal(420, 1.3, 20000)), True))
                t += w.dice.lognormvariate(0, 1.2)
            t += w.lognormal(60, 1.2, 7200)
        rows.sort(key=lambda row: row[0])
        yield begin, rows


def diurnal(w):
    """Chat users in three time zones over 24 h, and a nightly batch of one template with answers of a fixed length.

    Each zone has assistants of its own and a day of its own. The batch begins at 02:30 and sends a sixth of the log's
    rows, 12 at a time. The number of rows sets the rate: the log is always about one day.
    """
    day, batch = 86400.0, w.text(1730)
    zones = [(7 * 3600, 0.45), (15 * 3600, 0.33), (23 * 3600, 0.22)]  # when it is night (UTC), and the share
    assistants = [[w.text(w.log_uniform(250, 2800)) for _ in range(3)] for _ in zones]
    sessions_a_day = w.n * 5 / 6 / 3.6

    def chats(k):
        night, share = zones[k]
        t, peak = -7200.0, 1.9 * share * sessions_a_day / day
        while True:
            t += w.dice.expovariate(peak)
            if w.dice.random() < (1 - 0.9 * math.cos(2 * math.pi * (t - night) / day)) / 1.9:
                yield t, chat(w, t, assistants[k][w.zipf(3, 1.0)], w.geometric(3.6, 40), think=40)

    def nightly():
        for k in itertools.count():
            slots = [k * day + 2.5 * 3600 + i * 0.01 for i in range(12)]
            for _ in range(w.n // 6):
                at = heapq.heappop(slots)
                heapq.heappush(slots, at + 4 * w.dice.uniform(0.97, 1.1))
                yield at, [(at, batch + w.text(w.lognormal(600, 0.5, 4000)), 256, w.session())]

    yield from heapq.merge(chats(0), chats(1), chats(2), nightly(), key=lambda item: item[0])


def embedfew(w):
    """A mass of very short prompts without reuse, and a few giant ones that are sent again with small edits.

    Short: 10-200 tokens, an answer of one token, in gusts. Giant: seven texts of 60k-120k tokens; each is sent again
    every half to several minutes, after an edit of 1-200 tokens, mostly near the end, at times in the middle. A session
    is a giant's; each short request has its own.
    """
    def shorts():
        t = -5.0
        while True:
            t += w.dice.gammavariate(0.3, 1 / 0.3) / 3.0
            yield t, [(t, w.text(w.dice.triangular(10, 200, 35)), 1, w.session())]

    def giants(born):
        t, text, session = born, w.text(w.dice.randint(60000, 120000)), w.session()
        pace = w.log_uniform(30, 240)
        while True:
            t += 5 + w.dice.expovariate(1 / pace)
            yield t, [(t, text, w.lognormal(600, 0.7, 4000), session)]
            size = length(text)
            at = int(size * (1 - min(1.0, w.dice.expovariate(12)))) if w.dice.random() < 0.8 else w.dice.randrange(size)
            text = cut(text, 0, at) + w.text(w.log_uniform(1, 200)) + cut(text, at + w.log_uniform(1, 150), size)

    births = [w.dice.uniform(-600, 0) for _ in range(4)] + [w.dice.uniform(0, 900) for _ in range(3)]
    yield from heapq.merge(shorts(), *(giants(b) for b in births), key=lambda item: item[0])


SHAPES = {f.__name__: f for f in (versions, groups, evals, templates, documents, tools, diurnal, embedfew)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="?", choices=sorted(SHAPES))
    parser.add_argument("-n", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sid", action="store_true", help="write session ids")
    parser.add_argument("--list", action="store_true", help="describe the shapes")
    o = parser.parse_args()
    if o.list or not o.shape:
        for name, shape in SHAPES.items():
            print("%s: %s\n" % (name, inspect.getdoc(shape)))
        return
    rows = (row for row in rows_in_order(SHAPES[o.shape](World(o.seed, o.n))) if row[0] >= 0)
    known = {}
    for t, prompt, output, session in itertools.islice(rows, o.n):
        line = {"timestamp": int(t * 1000), "input_length": length(prompt), "output_length": output,
                "hash_ids": block_ids(prompt, BLOCK, known)}
        print(json.dumps({"session_id": "s%d" % session, **line} if o.sid else line))


if __name__ == "__main__":
    main()
