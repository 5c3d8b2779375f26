#!/usr/bin/env bash
# From a fresh Debian machine to an accepted (virtual) cluster: installs what is needed, builds, starts a lab of three
# bare-metal machines in QEMU, runs `muster up` on it and shows the report.
#   ./quickstart.sh            leaves the lab running, so that you can look around
#   ./quickstart.sh --down     stops it and leaves nothing behind
set -euo pipefail
cd "$(dirname "$0")"
spec=lab/quickstart.yaml

if [[ "${1:-}" == --down ]]; then exec build/muster lab down; fi
[[ $# -eq 0 ]] || { echo "usage: ./quickstart.sh [--down]" >&2; exit 2; }
if [[ $EUID -ne 0 ]]; then
  echo "The lab makes its own network namespace, which needs root: run 'sudo ./quickstart.sh'." >&2
  exit 2
fi

echo "==> packages"
scripts/deps.sh build lab
echo "==> build"
scripts/build.sh dev muster musterd muster-agent muster-accept muster-accept-nvml muster-mpi-check
echo "==> lab: three virtual machines, each with its own BMC, drives and network card"
build/muster lab up "$spec"
echo "==> muster up"
status=0
build/muster up "$spec" --yes --report muster-report || status=$?
if [[ $status -eq 0 ]]; then
  cat <<TEXT

The report is muster-report/report.html. The cluster is still running:
  build/muster status                  the nodes
  build/muster lab ssh node01          a shell on a node
  build/muster reimage node02 --yes    put one node back to the declared state, data kept
  ./quickstart.sh --down               stop everything
TEXT
fi
exit $status
