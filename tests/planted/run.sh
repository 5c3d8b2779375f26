#!/usr/bin/env bash
# Plants faults in what decides of parts, ports, counters and GPUs, of lists of hosts and the ways onto them, of other work on a host, and of
# libraries and programs for GPUs and RDMA, and looks whether the field cases find them: tests/planted/run.sh BUILD [NAME...].
# BUILD is a build of a tree with the faults, each of which an environment variable switches on:
#   git worktree add ../planted && cd ../planted && git apply tests/planted/faults.patch
#   scripts/build.sh dev muster_tests muster-accept muster-accept-nvml && tests/planted/run.sh build
# For each line of faults.tsv (name, cases, tests) the tests run once with nothing planted, and have to pass, and once with MUSTER_PLANTED=NAME, and
# each case has to fail. Exit 0: each fault is found by each case named for it.
set -u
build=$(realpath "${1:?usage: tests/planted/run.sh BUILD [NAME...]}"); shift
table="$(dirname "$(realpath "$0")")/faults.tsv"
[[ -x $build/muster_tests ]] || { echo "no $build/muster_tests" >&2; exit 2; }
exec python3 - "$build/muster_tests" "$table" "$@" <<'P'
import os, re, subprocess, sys
program, table, only = sys.argv[1], sys.argv[2], set(sys.argv[3:])

# Test names -> passed. A test that was begun and did not end (the program died) failed.
def run(tests, planted):
    env = dict(os.environ)
    env.pop('MUSTER_PLANTED', None)
    if planted: env['MUSTER_PLANTED'] = planted
    try:
        out = subprocess.run([program, tests, '-r', 'xml'], env=env, capture_output=True, timeout=600).stdout.decode('utf-8', 'replace')
    except subprocess.TimeoutExpired as e:
        out = (e.stdout or b'').decode('utf-8', 'replace')
    found, name = {}, None
    for part in re.finditer(r'<TestCase name="([^"]*)"|<OverallResult success="(true|false)"', out):
        if part.group(1) is not None:
            name = part.group(1).replace('&apos;', "'").replace('&quot;', '"').replace('&lt;', '<').replace('&gt;', '>').replace('&amp;', '&')
            found[name] = False
        elif name is not None:
            found[name] = part.group(2) == 'true'
    return found

def of(case, found):  # the tests of one case: "field: NAME" and "field: NAME: what about"
    return {n: ok for n, ok in found.items() if n == 'field: ' + case or n.startswith('field: ' + case + ':')}

clean, bad, lines = {}, 0, 0
for line in open(table):
    name, folders, tests = line.rstrip('\n').split('\t')
    if only and name not in only: continue
    lines += 1
    if tests not in clean: clean[tests] = run(tests, '')
    before, now = clean[tests], run(tests, name)
    cases = [] if folders == '-' else [os.path.basename(f) for f in folders.split()]
    wrong = []
    if not before: wrong.append('no test is named so')
    wrong += ['fails with nothing planted: ' + n for n, ok in before.items() if not ok]
    for case in cases:
        if not of(case, before): wrong.append('no test of ' + case)
        elif all(of(case, now).values()) and of(case, now): wrong.append(case + ' passes')
        elif not of(case, now): wrong.append(case + ' did not run')
    if not cases and (not now or all(now.values())): wrong.append('all tests pass')
    failed = sorted(n.removeprefix('field: ') for n, ok in now.items() if not ok)
    print('%-10s %-26s failed: %s%s' % ('NOT CAUGHT' if wrong else 'caught', name, '; '.join(failed) or 'none',
                                        '   ** ' + '; '.join(wrong) if wrong else ''), flush=True)
    bad += bool(wrong)
print('%d faults, %d caught, %d not' % (lines, lines - bad, bad))
sys.exit(1 if bad else 0)
P
