#!/usr/bin/env bash
# The requests of the driver sakura-phy against an independent checker: Prism (npm, Apache-2.0) over the provider's description.
# Usage: tests/peers/phy-prism.sh [--no-fetch] [FOLDER]. FOLDER: where `npm install @stoplight/prism-cli` was done, or is to be done (90 MB; default
# ~/.cache/muster-prism); never the checkout. Needs a build of muster_tests (MUSTER_TESTS: another place than build/muster_tests).
# Part of ./test.sh, which fetches nothing. Exit 0: all valid; 1: not; 77: skipped, with the reason and the package to install.
set -euo pipefail
cd "$(dirname "$0")/../.."
fetch=1
[[ ${1:-} != --no-fetch ]] || { fetch=0; shift; }
folder=${1:-$HOME/.cache/muster-prism}
tests=${MUSTER_TESTS:-build/muster_tests}
version=5.16.0  # another one may judge otherwise
skip() { echo "skipped: $*"; exit 77; }
command -v npm >/dev/null || skip "npm is missing (package npm)"
for tool in curl jq; do command -v "$tool" >/dev/null || skip "$tool is missing (package $tool)"; done
[[ -x $tests ]] || skip "$tests is not built (scripts/build.sh dev muster_tests)"
prism=$folder/node_modules/.bin/prism
if [[ ! -x $prism ]]; then
  [[ $fetch -eq 1 ]] || skip "Prism is not in $folder (tests/peers/phy-prism.sh fetches it)"
  mkdir -p "$folder"
  (cd "$folder" && timeout 900 npm install --no-fund --no-audit --loglevel=error --fetch-retries=1 "@stoplight/prism-cli@$version" >&2) ||
    skip "npm could not fetch @stoplight/prism-cli@$version into $folder"
fi

work=$(mktemp -d /var/tmp/muster-prism.XXXXXX)
judge=
cleanup() { [[ -z $judge ]] || kill "$judge" 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
# Prism knows nothing of the path in `servers`.
jq '.paths |= with_entries(.key = "/cloud/api/dedicated-phy/1.0" + .key)' tests/golden/phy/openapi.json >"$work/openapi.json"
MUSTER_PHY_REQUESTS=$work/requests "$tests" "[.phy-requests]" >"$work/tests.log" || { cat "$work/tests.log"; exit 1; }
port=$((20000 + RANDOM % 20000))
"$prism" mock "$work/openapi.json" -h 127.0.0.1 -p "$port" --errors >"$work/prism.log" 2>&1 &
judge=$!
for ((i = 0; i < 120; i++)); do
  ! curl -s -o /dev/null "http://127.0.0.1:$port/" || break
  kill -0 "$judge" 2>/dev/null || { cat "$work/prism.log"; exit 1; }
  sleep 0.5
done

# ask JSON: the status that Prism gives this request.
ask() {
  local args=(-s -o "$work/answer" -w '%{http_code}' -X "$(jq -r .method <<<"$1")")
  while IFS= read -r header; do args+=(-H "$header"); done < <(jq -r '.headers | to_entries[] | "\(.key): \(.value)"' <<<"$1")
  local body
  body=$(jq -r .body <<<"$1")
  [[ -z $body ]] || args+=(--data-binary "$body")
  curl "${args[@]}" "http://127.0.0.1:$port$(jq -r .target <<<"$1")"
}
valid=0 failed=0
while IFS= read -r request; do
  status=$(ask "$request")
  if [[ $status == 20? ]]; then
    valid=$((valid + 1))
  else
    failed=$((failed + 1))
    echo "FAIL  $status $(jq -r '.method + " " + .target' <<<"$request"): $(head -c 300 "$work/answer")"
  fi
done <"$work/requests"
# That it judges at all: each of these is wrong in one thing.
refused() {
  local status
  status=$(ask "$(jq -c "$2" <<<"$post")")
  if [[ $status == 4?? ]]; then valid=$((valid + 1)); else failed=$((failed + 1)); echo "FAIL  $1 was not refused ($status)"; fi
}
post=$(grep -m1 power_control "$work/requests")
refused "an order without X-Requested-With" 'del(.headers["X-Requested-With"])'
refused "an order without a login" 'del(.headers.Authorization)'
refused "an unknown operation" '.body = "{\"operation\": \"cycle\"}"'
refused "a path without its last slash" '.target |= rtrimstr("/")'
echo "prism: $valid passed, $failed failed"
[[ $failed -eq 0 ]]
