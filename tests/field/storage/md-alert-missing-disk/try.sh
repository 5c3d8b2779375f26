#!/usr/bin/env bash
# The rules of the playbook, as Prometheus reads them, over what the exporter says of arrays.
set -euo pipefail
command -v promtool >/dev/null || { echo "no promtool: apt-get install prometheus"; exit 77; }
cp "$CASE/test.yml" .
python3 - "$SRC/playbooks/monitoring.yaml" >rules.yml <<'END'
import sys
lines = open(sys.argv[1]).read().split("\n")
at = next(i for i, line in enumerate(lines) if "muster-rules.yml" in line and "path:" in line)
at = next(i for i in range(at, len(lines)) if lines[i].strip() == "content: |") + 1
indent = len(lines[at]) - len(lines[at].lstrip())
while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" " * indent)):
    print(lines[at][indent:])
    at += 1
END
promtool test rules test.yml
