#!/usr/bin/env bash
# Runs end-to-end tests by name: tests/e2e/run.sh NAME...|all|list. Each is tests/e2e/NAME.sh; its first comment line says what
# it proves. Needs root (network namespaces). Closes with "N passed, N failed"; exit 0 only when none failed.
# An image is built by the first test that needs it and shared with the others of this run; with MUSTER_IMAGE_CACHE=DIR also with
# later runs.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
here=tests/e2e
all=()
for f in "$here"/*.sh; do
  n=$(basename "$f" .sh)
  [[ $n == run || $n == lib ]] || all+=("$n")
done
[[ $# -gt 0 ]] || { echo "usage: tests/e2e/run.sh NAME...|all|list   (${all[*]})" >&2; exit 2; }
if [[ $1 == list ]]; then
  for n in "${all[@]}"; do printf '%-18s %s\n' "$n" "$(sed -n '2s/^# //p' "$here/$n.sh")"; done
  exit 0
fi
[[ $1 != all ]] || set -- "${all[@]}"
if [[ -z ${MUSTER_IMAGE_CACHE:-} && $# -gt 1 ]]; then
  MUSTER_IMAGE_CACHE=$(mktemp -d /var/tmp/muster-e2e-images.XXXXXX)
  trap 'rm -rf "$MUSTER_IMAGE_CACHE"' EXIT
fi
export MUSTER_IMAGE_CACHE=${MUSTER_IMAGE_CACHE:-}
passed=0
failed=0
for n in "$@"; do
  [[ -f $here/$n.sh ]] || { echo "no such test: $n" >&2; failed=$((failed + 1)); continue; }
  start=$SECONDS
  echo "==> $n: $(sed -n '2s/^# //p' "$here/$n.sh")"
  if bash "$here/$n.sh"; then
    passed=$((passed + 1)); echo "ok    $n ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1)); echo "FAIL  $n ($((SECONDS - start)) s)"
  fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
