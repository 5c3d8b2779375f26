#!/usr/bin/env bash
# The corpus: disks that others' tools made, shown to the real agent. Slow; run by name, not part of test.sh.
#   tests/corpus/run.sh layouts [--only TEXT] [--first N] [--no-recovery]   the drawn layouts (layouts.jsonl)
#   tests/corpus/run.sh util-linux [--only TEXT]                            the images that util-linux tests blkid with (apt-get source)
#   tests/corpus/run.sh list [--only TEXT]                                  the layouts, one line of JSON each
#   tests/corpus/run.sh layouts --accept [--again]                          writes down what is found; look at the difference
# More: --carve-first (photorec before the layout's own command, quicker), --no-guest, --batch N, --patience N (a busy machine).
# Exit 0: every answer is right or in known-wrong.json, and all in there are wrong still. Needs root, scripts/deps.sh corpus and a built
# muster-agent (AGENT=FILE; default build/muster-agent). Works in a folder that it makes in SCRATCH (/var/tmp) and removes; 10 GB.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ ${1:-} != list ]] || exec python3 -B tests/corpus/corpus.py "$@"
[[ $EUID -eq 0 ]] || { echo "corpus: needs root (chroot)" >&2; exit 2; }
agent=${AGENT:-build/muster-agent}
[[ -x $agent ]] || { echo "corpus: no $agent; scripts/build.sh dev muster-agent, or AGENT=FILE" >&2; exit 2; }
# What is mounted here is visible to no other process, whatever a tool does.
if [[ -z ${CORPUS_INSIDE:-} ]]; then
  CORPUS_INSIDE=1 exec unshare -m --propagation private bash tests/corpus/run.sh "$@"
fi
for tool in linux.uml sgdisk sfdisk wipefs photorec mkfs.btrfs zpool lvm mdadm; do
  command -v $tool >/dev/null || { echo "corpus: no $tool; scripts/deps.sh corpus" >&2; exit 2; }
done
scratch=$(mktemp -d "${SCRATCH:-/var/tmp}/muster-corpus.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
python3 -B tests/corpus/corpus.py "$@" --agent "$agent" --scratch "$scratch"
