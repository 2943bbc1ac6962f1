#!/usr/bin/env bash
# setup.sh [DIR]: installs the peers of the race into DIR, by default .race of the
# project. It takes about 6.5 GB and some minutes, and fetches from PyPI only. It may be
# repeated: what is installed stays. To remove all of it, delete DIR. With RELEASES=current it
# installs the newest releases instead of those that are raced, as make test-peers does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
dir=${1:-$project/.race}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd)

# The versions that are raced.
peers="aiperf==0.13.0 guidellm==0.8.1 inference-perf==0.7.0"
vllm=vllm==0.33.0
upgrade=()
if [ "${RELEASES:-}" = current ]; then
  peers="aiperf guidellm inference-perf" vllm=vllm upgrade=(--upgrade)
fi

python=""
for candidate in python3.12 "$HOME"/.pyenv/versions/3.12*/bin/python python3.13 "$HOME"/.pyenv/versions/3.13*/bin/python python3; do
  if "$candidate" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 14))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "setup: no Python 3.12 or 3.13 on the PATH, which the peers need. Install one, for example with pyenv." >&2
  exit 1
fi

# uv installs in a minute what takes pip many. Each peer has an environment of its own.
[ -x "$dir/uv/bin/uv" ] || { "$python" -m venv "$dir/uv" && "$dir/uv/bin/pip" install -q uv; }
for peer in $peers; do
  environment=$dir/${peer%%==*}
  echo "setup: $peer" >&2
  [ -x "$environment/bin/python" ] || "$dir/uv/bin/uv" venv -q --python "$python" "$environment"
  "$dir/uv/bin/uv" pip install -q "${upgrade[@]}" --python "$environment/bin/python" "$peer"
done

# vLLM's wheel holds its client in Rust. Nothing else of it is needed.
if [ ! -x "$dir/vllm-rs" ]; then
  echo "setup: the Rust client of $vllm" >&2
  "$python" -m pip download -q --no-deps --only-binary :all: --python-version 3.12 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_31_x86_64 --platform manylinux1_x86_64 -d "$dir/wheel" "$vllm"
  "$python" -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("vllm/vllm-rs", sys.argv[2])' "$dir"/wheel/vllm-*.whl "$dir/wheel"
  chmod +x "$dir/wheel/vllm/vllm-rs"
  mv "$dir/wheel/vllm/vllm-rs" "$dir/vllm-rs"
  rm -rf "$dir/wheel"
fi

if [ ! -f "$dir/hf/hub/models--truth--tok/refs/main" ]; then
  echo "setup: a tokenizer, trained on the documentation of the project" >&2
  "$dir/aiperf/bin/python" "$here/tokenizer.py" "$dir" "$project"/README.md "$project"/docs/*.md
fi
echo "setup: done; next: make peers-race RACE_DIR=$dir" >&2
