"""Tries field cases and prints their table; run.sh says how it is called."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD") or SRC / "build").resolve()
SCRIPT_SECONDS = 600


def cases(wanted):
    """Folders of the cases that were named; all without a name."""
    found = {f.parent.name: f.parent for f in sorted(HERE.glob("*/*/case.yaml"))}
    areas = {f.parent.name for f in found.values()}
    unknown = [w for w in wanted if w not in found and w not in areas]
    if unknown:
        print(f"no such case or area: {', '.join(unknown)}", file=sys.stderr)
        raise SystemExit(2)
    return [f for f in found.values() if not wanted or f.name in wanted or f.parent.name in wanted]


def has_been_wrong(folder):
    return bool(re.search(r"^before: wrong$", (folder / "case.yaml").read_text(), re.M))


def run_tests():
    """What the unit tests named "field: ..." came to: name of the case -> (passed, seconds)."""
    out = {}
    program = BUILD / "muster_tests"
    if not program.is_file():
        raise SystemExit(f"no {program}: scripts/build.sh builds it")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        subprocess.run([program, "[field]", "-r", "junit", "-o", report], check=False)
        if not report.is_file():
            raise SystemExit(f"{program} gave no report")
        for one in ElementTree.parse(report).iter("testcase"):
            # Catch2 names a section with a slash behind its test.
            match = re.match(r"field: ([a-z0-9-]+)", one.get("name", ""))
            if match is None:
                continue
            passed, seconds = out.get(match[1], (True, 0.0))
            bad = one.find("failure") is not None or one.find("error") is not None or one.find("skipped") is not None
            out[match[1]] = (passed and not bad, seconds + float(one.get("time") or 0))
    return out


def run_script(folder):
    """(exit status, what it printed last, seconds) of a case's script."""
    if os.geteuid() != 0:
        return 77, "needs root", 0.0
    tree = ""
    if (folder / "tree").is_file():
        made = subprocess.run([HERE / "tree.sh", (folder / "tree").read_text().strip()], stdout=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0:
            return 77, made.stdout.strip(), 0.0
        tree = made.stdout.strip()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muster-field.", dir="/var/tmp") as work:
        environment = dict(os.environ, BUILD=str(BUILD), SRC=str(SRC), CASE=str(folder), WORK=work, TREE=tree)
        try:
            done = subprocess.run(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", folder / "try.sh"],
                env=environment, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=SCRIPT_SECONDS, check=False)
            status, text = done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            status, text = 1, (late.stdout or b"").decode(errors="replace") + f"\nno end after {SCRIPT_SECONDS} s"
    return status, text.strip(), time.monotonic() - begin


def try_all(folders):
    """A row per case: name, area, before, result (right, wrong, left out), why, seconds."""
    tests = run_tests()
    rows = []
    for folder in folders:
        passed, seconds = tests.get(folder.name, (True, 0.0))
        result, why = ("right", "") if passed else ("wrong", "its unit test failed (above)")
        if (folder / "try.sh").is_file():
            status, text, took = run_script(folder)
            seconds += took
            if status == 77 and passed:
                result, why = "left out", text.splitlines()[-1] if text else "without a reason"
            elif status not in (0, 77):
                result, why = "wrong", text
        elif folder.name not in tests:
            result, why = "wrong", "nothing tries it"
        rows.append({"name": folder.name, "area": folder.parent.name, "was_wrong": has_been_wrong(folder), "result": result, "why": why,
                     "seconds": round(seconds, 1)})
    return rows


def print_table(rows):
    by_area = collections.defaultdict(list)
    for row in rows:
        by_area[row["area"]].append(row)
    print(f"{'area':<14}{'tried':>7}{'wrong before':>14}{'wrong now':>11}{'left out':>10}{'seconds':>9}")
    for area, those in [*sorted(by_area.items()), ("all", rows)]:
        count = collections.Counter(row["result"] for row in those)
        print(f"{area:<14}{len(those) - count['left out']:>7}{sum(row['was_wrong'] for row in those):>14}"
              f"{count['wrong']:>11}{count['left out']:>10}{sum(row['seconds'] for row in those):>9.1f}")


def main():
    parser = argparse.ArgumentParser(prog="tests/field/run.sh", description="Tries the field cases and prints their table.")
    parser.add_argument("--json", action="store_true", help="a JSON object with a row per case instead of the table")
    parser.add_argument("names", nargs="*", metavar="AREA|NAME")
    arguments = parser.parse_args()
    rows = try_all(cases(arguments.names))
    for row in rows:
        if row["result"] != "right":
            print(f"{row['result']}: {row['area']}/{row['name']}: {row['why']}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"rows": rows}))
    else:
        print_table(rows)
    results = {row["result"] for row in rows}
    return 1 if "wrong" in results else 3 if "left out" in results else 0


if __name__ == "__main__":
    sys.exit(main())
