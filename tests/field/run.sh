#!/usr/bin/env bash
# Tries the field cases, tests/field/AREA/NAME (case.h says what one is), and prints a table by area: how many were tried, how many of
# them muster got wrong when they were first tried, how many it gets wrong now, seconds.
#   tests/field/run.sh [--json] [AREA|NAME]...    all without a name. Scripts need root; a case that was left out is named with its reason.
# Exit 0 only when none is wrong and none was left out, 3 when some were left out, 2 for a name that is none.
# MUSTER_BUILD=FOLDER: another build than build/. A script gets BUILD, SRC and CASE (its own folder), TREE where the case has a file `tree` (the folder
# that tree.sh makes for the name in it), and WORK, an empty folder that is gone afterwards, in mount, network and PID namespaces that end with it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
exec python3 tests/field/run.py "$@"
