#!/bin/sh
# Finds the commit that made an engine slower:
#
#   export GOOD=v1.2 BAD=v1.3
#   git bisect start "$BAD" "$GOOD" && git bisect run sh bisect.sh
#
# Before that, measure both ends five times: sh bisect.sh measure "$GOOD", and the same
# for "$BAD". The exit codes are those that git bisect run asks for: 0 good, 3 bad, 125
# skip, 128 stop.
#
# Change build and serve below to what your engine needs. Further flags of replay and
# history are variables, such as REPRISE_RATE=poisson:20 and REPRISE_TRUST=max-errors=5%.

runs=${RUNS:-$HOME/bisect-runs}           # results of all commits, outside of the repository
workload=${WORKLOAD:-workload.parquet}    # the same for every commit
port=${PORT:-8000}
metric=${METRIC:-p99_ttft}

build() { make; }                         # its failure skips the commit
serve() { exec ./serve --port "$port"; }  # in the foreground

# measure sends the workload to the engine as it is built, and records the commit.
measure() {
    mkdir -p "$runs" || exit 128
    serve >"$runs/serve.log" 2>&1 &
    engine=$!
    reprise replay "$workload" --url "http://127.0.0.1:$port" --ready-check-timeout-sec 60 --cache cold \
        --note "commit=$1" -o "$runs/$(date +%s%N).parquet" --quiet >"$runs/replay.log" 2>&1
    code=$?
    kill $engine
    wait $engine 2>/dev/null
    case $code in
    0 | 4) ;;                             # 4: not trustworthy; history leaves it out
    *) cat "$runs/replay.log"; exit 125 ;;
    esac
}

build || exit 125
if [ "$1" = measure ]; then
    for _ in 1 2 3 4 5; do measure "$2"; done
    exit
fi
commit=$(git rev-parse HEAD) || exit 128
for _ in 1 2 3 4 5; do                    # a commit near the middle is measured again
    measure "$commit"
    reprise history "$runs" --metric "$metric" --bisect "$GOOD..$BAD"
    code=$?
    [ $code = 125 ] || exit $code
done
exit 125
