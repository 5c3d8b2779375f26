#!/usr/bin/env bash
# Runs end-to-end tests by name: tests/e2e/run.sh NAME...|all [--again]|stale [--list] [NAME...]; or says what there is, and what ran: list|status
# [--json]. Each is tests/e2e/NAME.sh; its first comment line says what it proves. Needs root (network namespaces). Exit 0 only when none failed, 2
# when a name is unknown (nothing runs then). A test that exits with 77 needs something that is not there, such as a mirror, and says what (`#
# needs: ...` in its head): it is left out, neither passed nor failed; the exit status is then 77 if none failed. MUSTER_BUILD=FOLDER: another build
# than build/.
#
# An image is built by the first test that needs it, and kept for all that run later: in e2e-images/ in the build's folder, or in
# MUSTER_IMAGE_CACHE=DIR, which builds may share. Below it is one folder for each state of the code that makes images, so that no pass is
# recorded with images of older code: the head of tests/e2e/passes/images.py. With them is what tests make themselves at some cost, such as a
# stock Debian. What was made two weeks ago is made again; beyond 20 GB, what was used longest ago goes. Nothing goes while another call runs.
#
# Tests that need the same lab share one, tests/e2e/labs/NAME.sh: those of them that a call runs come one after another; the lab stays up
# between them, and each resets it. It is down after the last one, one that failed, or ^C. A test that runs alone has its own.
#
# Before each test stands how long it usually takes (its newest pass in the ledger; else the median of the others), and how long the rest is
# likely to take. At the end one table: result, seconds, usual seconds, logs; then "N passed, N failed". A test that failed leaves one folder,
# which is named: its output, the lab's logs, the machines' consoles, the journals of those that still answer, the controller's database
# (/var/tmp/muster-e2e-NAME.*; below another folder with MUSTER_E2E_LOGS=FOLDER). ^C, or a signal to this script, goes to the test, which
# brings its lab down; then come the table and the end. The next `all` goes on there, with the tests that were not run yet, failed ones not
# among them, as long as the programs and the commit are the same but for the ledger; `all --again` starts over. What `all` did is in
# e2e-all.json in the build's folder (MUSTER_E2E_STATE=FILE: there), which goes when all were run.
#
# What ran. Each pass is appended to the ledger, tests/e2e/passed.jsonl, by `ledger.py run NAME`, which runs the test; this script calls it,
# and nothing else writes there. docs/benchmarks.md shows the ledger. A line has: name; date; commit; tree (`clean`: nothing but the ledger
# and its table differed from the commit, before and after the run; else `dirty`, which does not count as a pass); SHA-256 of the script and
# of the programs; seconds; cores; accelerator of the lab's machines; one-minute load before and after; what the controller's runs used, how
# they spent their seconds, and how many of its images were built and how many were kept of an earlier test (none of the three where there
# was no controller, nor in older lines); the lab that it shares, the seconds of its bring-up, and whether the line's seconds have them; a
# seal over the line and the one before it. Of a lab that an earlier test brought up, `used` has that bring-up, too, and the images are all
# that there are; the rest is only what came after it.
# Recorded is only what programs of HEAD did: `muster version` has to name HEAD's commit, else the pass is said not to be recorded, with the
# reason; likewise where a variable is set that puts other programs in their place (MUSTER_MUSTERD, LD_PRELOAD ...). So build, then run, and
# do not commit while a test runs: what ran on one commit and ended on another does not count. MUSTER_LEDGER=FILE: into another ledger,
# for example that of another work tree; `ledger.py merge FILE|BRANCH` takes in the lines of another one. Commit the ledger with the page.
# A line that was committed stays, unless its commit is no longer in HEAD's history, after a rebase or squash: `ledger.py drop-strays`.
#
# Older than the code. The head of each script names what it stands on: `# stands on: PATH...`, the paths whose change can break what the
# test proves. A path is a file, a folder with all that is in it, or has `{a,b}` or a `*`, which does not cross a slash. The way that all
# nodes go (spec, plan, run, api, bring-up, agent, image, lab ...) is named by the general tests (short, reimage, stack, hgx, packages ...)
# and by those about that very part; a special test names what it is about, and the files of each power driver, engine and playbook of its
# spec. What the head of a shared lab's file names, each test that has it stands on. A pass is old when, since its commit, one of these
# files, the script itself or that of its lab changed in more than comments, blank lines and `#include` lines; moves change nothing. The
# paths are those of today's head and of the head at the pass's commit, as far as they still exist. So a change in most product folders ages
# the general tests and no special one: a special test that is current says that what it is about has not changed since, and not that
# nothing else which it runs through has. base/, which everything stands on, and lib.sh age no test at all; with a broken helper of lib.sh
# the next test that runs fails. `stale` runs what never passed, in the order of `list`, then what is old, oldest pass first; what passed is
# not in it the next time, so it goes on where the last run ended.
#
# What was spent. From the journal of each controller: boots, how often its runs booted a machine; booting, the seconds in which at least one
# machine was on its way up; steps, those in which none was, and a run had another action open. Several controllers of one test are added up.
# The table has the rest of the pass, too: building images, the lab, the script's own commands. What is not in it, such as a machine that the
# script restarts: the head of tests/e2e/passes/spent.py.
#
# What was used. A pass whose line has that record, and that is not old, is held against the head: it has to name each power driver, storage
# engine and playbook that was used; each image recipe, acceptance profile and step module too, unless the newest pass of `short` used it (then
# it is on the way that all nodes go); and no path that is only about those which were not used, nor are in the spec. Either is corrected in the
# head, which ages nothing unless a file that is now named changed since. What a run uses where the record does not show it (a controller in a
# machine of the lab, a program beside the controller) is named in the head's `# beside the record: PATH...`, which says of a test the same as
# `# stands on:`. Lines without the record are held against nothing. `tests/e2e/ledger.py check`, in test.sh, holds all of this to it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
here=tests/e2e
all=()
for f in "$here"/*.sh; do
  n=$(basename "$f" .sh)
  [[ $n == run || $n == lib ]] || all+=("$n")
done
ledger() { python3 "$here/ledger.py" "$@"; }
known() {
  local n bad=0
  for n in "$@"; do [[ " ${all[*]} " == *" $n "* ]] || { echo "no such test: $n (tests/e2e/run.sh list)" >&2; bad=1; }; done
  return $bad
}
usage="usage: tests/e2e/run.sh NAME...|all [--again]|stale [--list] [NAME...]|list|status [--json]   (${all[*]})"
case "${1:-}" in
  "" | -*) echo "$usage" >&2; exit 2 ;;
  list)
    for n in "${all[@]}"; do printf '%-18s %s\n' "$n" "$(sed -n '2s/^# //p' "$here/$n.sh")"; done
    exit 0 ;;
  status) shift; ledger status "$@"; exit ;;
  all)
    shift
    [[ $# -eq 0 || "$*" == --again ]] || { echo "$usage" >&2; exit 2; }
    set -- --all "$@" ;;
  stale)
    shift
    only_list=0
    [[ ${1:-} != --list ]] || { only_list=1; shift; }
    known "$@" || exit 2
    listed=$(ledger stale "$@") || exit 2
    if [[ $only_list -eq 1 ]]; then [[ -z $listed ]] || echo "$listed"; exit 0; fi
    mapfile -t names < <(grep . <<<"$listed")
    [[ ${#names[@]} -gt 0 ]] || { echo "nothing is older than the code"; exit 0; }
    set -- "${names[@]}" ;;
  *) known "$@" || exit 2 ;;
esac
exec python3 "$here/ledger.py" round "$@"   # in this one's place: a signal to it stops the test that runs
