# shellcheck shell=bash
# Tries the alert rules of playbook `monitoring` on what the exporter shows: rules_test.yml of the case, by promtool.
# A case's try.sh sources it.
set -eu
command -v promtool >/dev/null || { echo "no promtool: apt install prometheus"; exit 77; }
"$SRC/scripts/alert-rules.sh" >"$WORK/rules.yml"
cp "$CASE/rules_test.yml" "$WORK/"
cd "$WORK"
promtool test rules rules_test.yml
