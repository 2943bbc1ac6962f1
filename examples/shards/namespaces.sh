#!/bin/bash
# Sends one workload as N shards from N network namespaces of this machine, each with an address
# and ports of its own, and joins the results. Needs root and iproute2.
#
#   namespaces.sh N REPRISE WORKLOAD FOLDER [flags of reprise replay]
#
# The server must listen on 10.77.0.1, the address of the bridge, such as
#   reprise serve --listen 10.77.0.1:8000
# QUOTA=0.4 gives each process that many cores, by a control group of version 1 or 2.
# ONLY="2 5" sends these shards alone. START is the instant of the start, by default +60s.
set -eu
n=$1 reprise=$2 workload=$3 folder=$4
shift 4
start=${START:-$(date -u -d '+60 seconds' +%Y-%m-%dT%H:%M:%SZ)}
bridge=rpshards
mkdir -p "$folder"

cleanup() {
  for i in $(seq 0 $((n - 1))); do ip netns del "shard$i" 2>/dev/null || true; done
  for i in $(seq 0 $((n - 1))); do rmdir "/sys/fs/cgroup/cpu/shard$i" "/sys/fs/cgroup/shard$i" 2>/dev/null || true; done
  [ -n "${KEEP_BRIDGE:-}" ] || ip link del "$bridge" 2>/dev/null || true
}
trap cleanup EXIT

ip link show "$bridge" >/dev/null 2>&1 || {
  ip link add "$bridge" type bridge
  ip addr add 10.77.0.1/16 dev "$bridge"
  ip link set "$bridge" up
}

# quota PID INDEX puts a process into a control group with $QUOTA cores.
quota() {
  [ -n "${QUOTA:-}" ] || return 0
  local us
  us=$(awk -v q="$QUOTA" 'BEGIN { print int(q * 100000) }')
  if [ -d /sys/fs/cgroup/cpu ]; then
    mkdir -p "/sys/fs/cgroup/cpu/shard$2"
    echo 100000 >"/sys/fs/cgroup/cpu/shard$2/cpu.cfs_period_us"
    echo "$us" >"/sys/fs/cgroup/cpu/shard$2/cpu.cfs_quota_us"
    echo "$1" >"/sys/fs/cgroup/cpu/shard$2/cgroup.procs"
  else
    mkdir -p "/sys/fs/cgroup/shard$2"
    echo "$us 100000" >"/sys/fs/cgroup/shard$2/cpu.max"
    echo "$1" >"/sys/fs/cgroup/shard$2/cgroup.procs"
  fi
}

pids=()
for i in ${ONLY:-$(seq 0 $((n - 1)))}; do
  ip netns add "shard$i"
  ip link add "rpv$i" type veth peer name eth0 netns "shard$i"
  ip link set "rpv$i" master "$bridge" up
  ip -n "shard$i" addr add "10.77.1.$((i + 1))/16" dev eth0
  ip -n "shard$i" link set eth0 up
  ip -n "shard$i" link set lo up
  clock=(--set clock-listen=:7123 --set clock-peer=10.77.1.1:7123)
  [ -z "${ONLY:-}" ] || clock=()
  ip netns exec "shard$i" "$reprise" replay "$workload" --shard "$i/$n" --start-clock "$start" "${clock[@]}" \
    -o "$folder/shard-$i.parquet" --quiet "$@" >"$folder/shard-$i.out" 2>"$folder/shard-$i.err" &
  pids+=($!)
  quota $! "$i"
done
echo "${pids[@]}" >"$folder/pids"
failed=0
for p in "${pids[@]}"; do wait "$p" || failed=1; done
[ "$failed" = 0 ] || { tail -n 2 "$folder"/*.err; exit 1; }
[ -n "${ONLY:-}" ] || "$reprise" merge "$folder" -o "$folder.parquet" --overwrite
