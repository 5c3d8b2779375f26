# shellcheck shell=bash
# Tries the alert rules of playbook `monitoring` on what the exporter shows: rules_test.yml of the case, by promtool.
# A case's try.sh sources it.
set -eu
command -v promtool >/dev/null || { echo "no promtool: apt install prometheus"; exit 77; }
python3 - "$SRC/playbooks/monitoring.yaml" >"$WORK/rules.yml" <<'PY'
import sys
lines = open(sys.argv[1]).read().split("\n")
begin = next(i for i, line in enumerate(lines) if line.strip() == "groups:")
indent = len(lines[begin]) - len(lines[begin].lstrip())
for line in lines[begin:]:
    if line.strip() and len(line) - len(line.lstrip()) < indent:
        break
    print(line[indent:])
PY
cp "$CASE/rules_test.yml" "$WORK/"
cd "$WORK"
promtool test rules rules_test.yml
