#!/usr/bin/env bash
# The first step of action.yml: runs a suite, and writes its table to the summary of the
# job and to a file for the comment. All that is given stands in variables, and none of
# it is ever read as shell code.
#
#   INPUT_SUITE            file of a suite, or the name of a built-in one
#   INPUT_URL              endpoint to measure, or
#   INPUT_SERVE_CMD        command that starts it, with {port}
#   INPUT_BASELINE         folder of an earlier run; one that is not there is left out
#   INPUT_MAX_REGRESSION   share by which primary metrics may be worse than in it
#   INPUT_OUTPUT           folder of the results
#   INPUT_ARGS             further flags of reprise bench, one a line, as --flag=value
#   INPUT_BINARY           reprise itself; empty builds it from the action's source
#
# Its outputs are exit-code and comment, the file. It is given no token: what it starts
# may be code of the pull request.
#
# Exit code 3 is a regression or a contract that fails, 4 a run that cannot be trusted,
# others as reprise bench has them.
set -euo pipefail

suite=${INPUT_SUITE:?"the input suite is missing: a file, or a name that reprise bench --list prints"}
output=${INPUT_OUTPUT:-results}
table=$(mktemp "${RUNNER_TEMP:-/tmp}/reprise-table.XXXXXX")
body=$(mktemp "${RUNNER_TEMP:-/tmp}/reprise-comment.XXXXXX")
# One comment for each suite: this line finds it again. It is ASCII, and ends no comment.
marker="<!-- reprise bench $(printf '%s' "$suite" | tr -c 'A-Za-z0-9_./ ' '_') -->"

if [ -n "${INPUT_BINARY:-}" ]; then
  reprise=$INPUT_BINARY
  if ! "$reprise" version >&2; then
    echo "::error title=Reprise::the input binary does not name a reprise that runs here"
    exit 1
  fi
else
  reprise=${RUNNER_TEMP:-/tmp}/reprise-bin/reprise
  if ! command -v go >/dev/null; then
    echo "::error title=Reprise::there is no Go here to build reprise with: use actions/setup-go before, or give the input binary"
    exit 1
  fi
  (cd "$GITHUB_ACTION_PATH" && CGO_ENABLED=0 go build -trimpath -o "$reprise" ./cmd/reprise)
fi

flags=(-o "$output" --format=markdown --quiet)
if [ -n "${INPUT_URL:-}" ]; then flags+=(--url "$INPUT_URL"); fi
if [ -n "${INPUT_SERVE_CMD:-}" ]; then flags+=(--serve-cmd "$INPUT_SERVE_CMD"); fi
if [ -n "${INPUT_BASELINE:-}" ]; then
  if [ -d "$INPUT_BASELINE" ]; then # one that holds no results is an error of reprise, and not taken for none
    flags+=(--baseline "$INPUT_BASELINE")
    if [ -n "${INPUT_MAX_REGRESSION:-}" ]; then flags+=(--max-regression "$INPUT_MAX_REGRESSION"); fi
  else
    echo "::notice title=Reprise::there is no baseline yet, so that nothing is compared with an earlier run"
  fi
fi
while IFS= read -r line; do
  if [ -n "$line" ]; then flags+=("$line"); fi
done <<<"${INPUT_ARGS:-}"

# What servers say reaches the log through reprise. It must not be taken for commands
# of the runner.
pause=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$pause"
status=0
"$reprise" bench "${flags[@]}" -- "$suite" >"$table" || status=$?
echo "::$pause::"

case $status in
  0) answer="passed" level=notice ;;
  1) answer="could not be run: the log of the job says why" level=error ;;
  2) answer="was called wrongly: the log of the job says what to change" level=error ;;
  3) answer="found a regression, or a contract that fails: the table says by how much" level=error ;;
  4) answer="cannot be trusted: the machine was busy, or requests failed. This says nothing of the change: run it again on a quiet machine" level=error ;;
  *) answer="ended with exit code $status" level=error ;;
esac
{
  printf '%s\n**The suite %s.**\n\n' "$marker" "$answer"
  # A comment may have 65,536 characters. Cut lines, not characters in the middle.
  awk '{ n += length($0) + 1 } n > 60000 { print "\n(The rest is in the results.)"; exit } { print }' "$table"
} >"$body"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$body" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'exit-code=%s\ncomment=%s\n' "$status" "$body" >>"$GITHUB_OUTPUT"
fi

echo "::$level title=Reprise::the suite $answer"
exit "$status"
