#!/usr/bin/env bash
# The second step of action.yml: comments on the pull request what bench.sh wrote. The
# comment that an earlier run made of the same suite is changed.
#
#   COMMENT         file with the comment; its first line finds an earlier one again
#   PR_NUMBER       the pull request; empty where there is none
#   GITHUB_TOKEN    with the permission pull-requests: write
#
# A comment that cannot be made fails no job: the table is in the summary too.
set -euo pipefail

given_up() {
  echo "::warning title=Reprise::$1. The table is in the summary of the job"
  exit 0
}

if ! [[ ${PR_NUMBER:-} =~ ^[0-9]+$ ]] || ! [ -s "${COMMENT:-}" ]; then exit 0; fi
if [ -z "${GITHUB_TOKEN:-}" ]; then given_up "there is no comment, since there is no token"; fi
if ! command -v gh >/dev/null; then given_up "there is no comment, since gh is not installed here"; fi

export GH_TOKEN=$GITHUB_TOKEN
if [ "${GITHUB_SERVER_URL:-https://github.com}" != https://github.com ]; then
  export GH_HOST=${GITHUB_SERVER_URL#https://} GH_ENTERPRISE_TOKEN=$GITHUB_TOKEN
fi
issues=repos/$GITHUB_REPOSITORY/issues
MARKER=$(head -n 1 "$COMMENT")
export MARKER
refused="the pull request takes no comment: give the job the permission pull-requests: write, which tokens for forks cannot have"
found=$(gh api --paginate "$issues/$PR_NUMBER/comments?per_page=100" \
  --jq '.[] | select(.body | startswith(env.MARKER)) | .id') || given_up "$refused"
found=${found%%$'\n'*}
if [[ $found =~ ^[0-9]+$ ]] && gh api --method PATCH "$issues/comments/$found" -F "body=@$COMMENT" >/dev/null; then
  exit 0
fi
# There is none, or somebody else wrote it.
gh api --method POST "$issues/$PR_NUMBER/comments" -F "body=@$COMMENT" >/dev/null || given_up "$refused"
