#!/usr/bin/env bash
# Prints the folder of a system tree for field cases, and makes it first where this machine has none: tests/field/tree.sh slurm-trixie: Debian 13 as
# an image has it, with what the playbooks scheduler and accounting install. It needs the network, so run.py calls it outside of a case's namespaces.
# MUSTER_FIELD_CACHE=FOLDER: where trees are kept. 77 with a reason: it cannot be made.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# -eq 1 && $1 == slurm-trixie ]] || { echo "no tree is called ${1:-}"; exit 2; }
[[ $EUID -eq 0 ]] || { echo "needs root"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "needs mmdebstrap"; exit 77; }
packages=$(python3 -c '
import yaml
names = {"systemd-sysv", "udev"}
for playbook in ("scheduler", "accounting"):
    for step in yaml.safe_load(open(f"playbooks/{playbook}.yaml"))["steps"]:
        if step["name"] == "packages":
            names.update(step["params"]["names"])
print(",".join(sorted(names)))')
cache=${MUSTER_FIELD_CACHE:-/var/cache/muster-field}
tree=$cache/$1-$(cksum <<<"$packages" | cut -d ' ' -f 1)
mkdir -p "$cache"
exec 9>"$tree.lock"
flock 9
if [[ ! -d $tree ]]; then
  rm -rf "$tree.part"
  mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" trixie "$tree.part" http://deb.debian.org/debian >"$tree.log" 2>&1 ||
    { echo "mmdebstrap made no Debian 13: $(tail -n 1 "$tree.log")"; rm -rf "$tree.part"; exit 77; }
  mv "$tree.part" "$tree"
fi
echo "$tree"
