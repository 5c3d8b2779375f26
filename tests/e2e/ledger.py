#!/usr/bin/env python3
"""The ledger of end-to-end passes, tests/e2e/passed.jsonl. A line is added only by a test that this program ran (tests/e2e/run.sh calls it).

  ledger.py run NAME                   runs tests/e2e/NAME.sh, hands its exit status on, and records a pass, or says why not
  ledger.py round NAME...              runs several, with an estimate and a table (passes/rounds.py)
  ledger.py round --all [--again]      runs all, and goes on where the last call on this tree ended; --again: starts over
  ledger.py status [--json]            of each test: passed, older than the code, or never
  ledger.py stale [NAME...]            names of those that are old or never passed, in the order in which to run them
  ledger.py check                      the ledger against git, the heads of the scripts, the pages. Exit 0; 1: something is wrong;
                                       77: nothing is, but a part was left out, with the reason
  ledger.py table [--write]            the table of docs/benchmarks.md; --write puts it there
  ledger.py merge FILE|REVISION...     takes in the lines of other ledgers: of files, or of branches ("git merge" keeps ours: .gitattributes)
  ledger.py drop-strays                takes out the lines whose commit is not in HEAD's history (any more: a rebase, a squash)
  ledger.py uses [NAME...]             drivers, engines and playbooks of a test's spec, as `check` sees them
  ledger.py used FOLDER [--after RUN]  what the runs in a controller's folder of state used, how they spent their seconds, and which images
                                       there were: what a line has of it is made of that (passes/used.py, passes/spent.py, passes/images.py).
                                       --after: only the runs after this one

MUSTER_LEDGER=FILE: another ledger than this tree's. MUSTER_BUILD=FOLDER: another build than build/. What the fields of a line are,
when a pass is older than the code, and other variables: tests/e2e/run.sh.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True   # the work tree stays clean
from passes import aging, images, labs, lines, pages, rounds, spent, stands_on, tree as trees, used  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def ledger_path():
    return Path(os.environ.get("MUSTER_LEDGER") or ROOT / trees.LEDGER)


def build_path():
    return ROOT / (os.environ.get("MUSTER_BUILD") or "build")


def cache_path():
    return ROOT / os.environ["MUSTER_IMAGE_CACHE"] if os.environ.get("MUSTER_IMAGE_CACHE") else build_path() / "e2e-images"


def own_ledger():
    return ledger_path().resolve() == (ROOT / trees.LEDGER).resolve()


# ---- recording

# Variables under which a program runs that is not the build's, or other code in its place. PATH is not among them: a test needs it.
SWAPS = ("MUSTER_MUSTERD", "MUSTER_RELEASE", "MUSTER_POWER_PROGRAMS", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
         "PYTHONPATH", "PYTHONHOME")
SWAPS_BEGIN = ("MUSTER_FAKE_", "BASH_FUNC_")


def swapped():
    return sorted(v for v, value in os.environ.items() if value and (v in SWAPS or v.startswith(SWAPS_BEGIN)))


def read(path):
    return (ROOT / path).read_bytes() if (ROOT / path).is_file() else None


def state_of(name, tree):
    """(what a line says of tree, script and programs, None) or (None, why it cannot be recorded)."""
    script = ROOT / "tests/e2e" / f"{name}.sh"
    if swapped():
        return None, f"{', '.join(swapped())} is set, with which other programs may run than the build's"
    weak = [v for v in stands_on.weakened_by(script.read_text(encoding="utf-8")) if os.environ.get(v)]
    if weak:
        return None, f"{', '.join(weak)} is set, with which the test proves less"
    if tree.why_not:
        return None, tree.why_not
    digest = trees.programs_digest(build_path())
    if digest is None:
        return None, f"{build_path()} lacks one of {', '.join(trees.PROGRAMS)}"
    commit, dirty = trees.programs_commit(tree, build_path())
    if commit is None:
        return None, dirty
    head = tree.head()
    if commit != head and not (commit in tree.history() and tree.only_the_ledger_since(commit)):
        return None, f"the programs in {build_path()} are of {commit[:9]}, and HEAD is {head[:9]}: build again"
    changed = tree.differs()
    return {"commit": head, "tree": "dirty" if dirty or changed else "clean", "script": labs.digest(read, name),
            "programs": digest, "why": "the programs were built from changed files" if dirty else ", ".join(changed[:3])}, None


def run_script(name, variables):
    """Exit status of the test, and the signal that came meanwhile, or 0. A signal to this process goes to the test; the terminal's own
    (^C) is there already."""
    waited, stopped = (*rounds.STOPS, signal.SIGCHLD), 0
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = subprocess.Popen(["/bin/bash", f"tests/e2e/{name}.sh"], cwd=ROOT, env={**os.environ, **variables},
                                 preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
        while child.poll() is None:
            came = signal.sigwaitinfo(waited)
            if came.si_signo != signal.SIGCHLD:
                stopped = came.si_signo
                if came.si_code <= 0:
                    child.send_signal(came.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode, stopped


def made_of():
    """Another value once the tree or the programs are others than before."""
    tree = trees.Tree(ROOT)
    return tree.why_not or (tree.head(), tree.differs()), trees.programs_digest(build_path())


def written_by_lib(path, share):
    """What lib.sh wrote of a test's runs: for each controller that it looked at, records of what they used, how they spent their time, and of
    the images; and of the lab that the test shares."""
    found = {"used": [], "spent": [], "images": [], "lab": []}
    forms = {"used": lines.FIELDS["used"], "spent": lines.FIELDS["spent"], "images": images.is_record, "lab": lines.FIELDS["lab"]}
    for row in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            records = json.loads(row)
        except ValueError:
            continue   # cut off
        for key, known in found.items():
            if isinstance(records, dict) and forms[key](records.get(key)):
                known.append(records[key])
    together = {"used": used.merged(found["used"]), "spent": spent.added(found["spent"]), "images": share.counted(found["images"]),
                "lab": found["lab"][-1] if found["lab"] else None}
    return {key: record for key, record in together.items() if record is not None}


def images_key():
    """Of the images that a test builds now; None: it is not known which programs build them."""
    return None if swapped() else images.key_of(trees.Tree(ROOT), build_path())


def run(arguments):
    with images.Cache(cache_path()) as cache:
        return run_one(arguments.name, {}, cache)[0]


def run_one(name, variables, cache):
    """Runs a test and records its pass; its exit status, and the signal that came meanwhile, or 0."""
    state, why = state_of(name, trees.Tree(ROOT))
    key = images_key()
    if state is None:
        print(f"note  a pass of {name} will not be recorded: {why}", file=sys.stderr)
    elif state["tree"] == "dirty":
        print(f"note  a pass of {name} will not count, the tree is changed: {state['why']}", file=sys.stderr)
    sys.stderr.flush()
    share = images.OfTest(cache, key)
    load, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muster-ledger-") as folder:
        accelerator, recorded = Path(folder) / "accelerator", Path(folder) / "used"    # lib.sh asks the lab, and writes it there
        status, stopped = run_script(name, {"MUSTER_E2E_ACCELERATOR": str(accelerator), "MUSTER_E2E_USED": str(recorded), **share.variables(),
                                            **labs.NOT_SHARED, **variables})
        seconds = int(time.monotonic() - began)
        said = accelerator.read_text(encoding="utf-8").strip() if accelerator.is_file() else ""
        more = written_by_lib(recorded, share)
    if images_key() != key:
        share.forget_new()
    if status == 0:
        how = {"seconds": seconds, "cores": len(os.sched_getaffinity(0)), "accelerator": said if said in lines.ACCELERATORS else "unknown",
               "load": [round(load, 2), round(os.getloadavg()[0], 2)], **more}
        print(f"not recorded: {why}" if state is None else record(name, state, how))
        sys.stdout.flush()
    return status, stopped


def round_(arguments):
    scripts = stands_on.Scripts(ROOT)
    names = list(scripts.text) if arguments.all else arguments.names
    if not names:
        print("round: no test is named", file=sys.stderr)
        return 2
    names = labs.ordered(names, scripts.lab_of, lambda lab: labs.members(scripts.labs.get(lab, "")))
    usual = labs.usual(names, lines.read(ledger_path())[0], scripts.lab_of)
    logs = os.environ.get("MUSTER_E2E_LOGS") or "/var/tmp"
    os.makedirs(logs, exist_ok=True)
    with images.Cache(cache_path()) as cache, labs.Shared(scripts.lab_of, labs.take_down(build_path() / "muster"), made_of) as shared:
        def run_it(name, kept, following):
            return shared.run(name, following, lambda variables: run_one(name, {"MUSTER_E2E_LOGS": str(kept), **variables}, cache))

        return rounds.Round(names, usual, run_it, memory_of_all(arguments.again) if arguments.all else None,
                            lambda name: stands_on.title(scripts.text[name]), logs).go()


def memory_of_all(again):
    """What `all` did with the programs of the build on this commit; a later one is the same where only the ledger changed."""
    tree = trees.Tree(ROOT)
    here = {"head": "" if tree.why_not else tree.head(), "programs": trees.programs_digest(build_path())}
    path = Path(os.environ.get("MUSTER_E2E_STATE") or build_path() / "e2e-all.json")
    memory = rounds.Memory(path if path.parent.is_dir() else None, here)

    def is_the_same(kept):
        return kept["programs"] == here["programs"] and (kept["head"] == here["head"] or (
            not tree.why_not and kept["head"] in tree.history() and tree.only_the_ledger_since(kept["head"])))

    if again:
        memory.forget()
    else:
        memory.load(is_the_same)
    return memory


def record(name, begun, how):
    """Adds the line of a pass that began in the state `begun`; what became of it, in words."""
    state, why = state_of(name, trees.Tree(ROOT))
    if state and any(state[key] != begun[key] for key in ("script", "programs")):
        state, why = None, "the script or the programs changed while it ran"
    if state is None:
        return f"not recorded: {why}"
    same = state["commit"] == begun["commit"] and begun["tree"] == state["tree"] == "clean"
    line = {"name": name, "date": datetime.now(timezone.utc).strftime(lines.TIME), "commit": begun["commit"],
            "tree": "clean" if same else "dirty", "script": state["script"], "programs": state["programs"], **how}
    try:
        lines.append(ledger_path(), line)
    except (lines.Broken, OSError) as error:
        return f"not recorded: {error}"
    if own_ledger():
        write_table()
    if not same:
        return f"recorded: {name} on {line['commit'][:9]}, tree dirty, which does not count: the tree was changed, before or meanwhile"
    of_short = records_of(lines.read(ledger_path())[0]).get(used.ORDINARY, {}).get("used")
    notes = used.complaints(stands_on.Scripts(ROOT), trees.Tree(ROOT).files(), {name: line["used"]} if "used" in line else {}, of_short)
    return "\n".join([f"recorded: {name} on {line['commit'][:9]}, tree clean", *(f"note  {note}" for note in notes)])


# ---- what is old

def changed_since(tree, scripts, files, ages, line):
    """Of what a line's test stands on, the files that changed since that pass."""
    def then(path):
        return (path and tree.file_at(line["commit"], path) or b"").decode(errors="replace")

    script = then(f"tests/e2e/{line['name']}.sh")
    lab = labs.of_text(script)
    return ages.changed(line["commit"], scripts.concerns(line["name"], (script, then(lab and labs.path_of(lab))), files))


def standing(names=None):
    """One entry for each test: name, state, and of its newest pass that is not old, or else its newest: date, commit, seconds, changed. `needs`: what
    a script's head says that not every machine has."""
    tree, scripts = trees.Tree(ROOT), stands_on.Scripts(ROOT)
    known, _ = lines.read(ledger_path())
    history = {} if tree.why_not else tree.history()
    ages = None if tree.why_not else aging.Ages(tree, tree.head())
    files = tree.files()
    found = []
    for name in names or scripts.text:
        entry = {"name": name, "state": "never"}
        needs = re.search(r"(?m)^# needs: (.*)$", scripts.text[name])
        for line in reversed([line for line in known if line["name"] == name and line["tree"] == "clean"]):
            there = line["commit"] in history
            changed = ["a commit that HEAD does not stand on"]
            if there:
                changed = changed_since(tree, scripts, files, ages, line)
            if tree.why_not:
                changed = [f"not known: {tree.why_not}"]
            if entry["state"] == "never" or not changed:
                entry = {"name": name, "state": "old" if changed else "passed", "date": line["date"], "commit": line["commit"],
                         "seconds": line["seconds"], "changed": changed}
            if not changed:
                break
        found.append({**entry, "needs": needs[1]} if needs else entry)
    return found


def in_order(entries):
    """Those to run: the ones that never passed as they are listed, then the oldest pass first."""
    return sorted((e for e in entries if e["state"] != "passed"), key=lambda e: e.get("date", ""))


def status(arguments):
    entries = standing()
    if arguments.json:
        print(json.dumps({"tests": entries, "untested": stands_on.UNTESTED}, indent=1))
        return 0
    words = {"passed": "passed", "old": "older than the code", "never": "never"}
    for entry in entries:
        row = f"{entry['name']:<18} {words[entry['state']]:<20}"
        if entry["state"] != "never":
            row += f" {entry['date'][:10]}  {entry['commit'][:9]}  {entry['seconds']:>5} s"
        if entry["state"] == "old":
            more = len(entry["changed"]) - 3
            row += "  changed: " + ", ".join(entry["changed"][:3]) + (f" and {more} more" if more > 0 else "")
        if entry["state"] != "passed" and "needs" in entry:
            row += f"  needs {entry['needs']}"
        print(row.rstrip())
    count = {state: sum(e["state"] == state for e in entries) for state in words}
    print(f"{count['passed']} passed, {count['old']} older than the code, {count['never']} never")
    for path, why in stands_on.UNTESTED.items():
        print(f"not covered: {path}: {why}")
    return 0


def stale(arguments):
    for entry in in_order(standing(arguments.names)):
        print(entry["name"])
    return 0


# ---- check

def records_of(known):
    """The lines of newest passes that have a record of what was used."""
    return {name: line for name, line in pages.passes_of(known).items() if "used" in line}


def against_records(tree, scripts, files, known):
    """Complaints about heads, by the records of passes that are not older than the code."""
    records, judged = records_of(known), {}
    ages, history = aging.Ages(tree, tree.head()), tree.history()
    for name, line in sorted(records.items()):
        if name in scripts.text and line["commit"] in history and not changed_since(tree, scripts, files, ages, line):
            judged[name] = line["used"]
    return used.complaints(scripts, files, judged, records.get(used.ORDINARY, {}).get("used"))


def against_git(tree, known):
    """Complaints about lines that git knows better."""
    bad, history, now = [], tree.history(), time.time()
    for number, line in enumerate(known, 1):
        what = f"line {number} ({line['name']}, {line['date']}): "
        if line["commit"] not in history:
            bad.append(what + f"HEAD does not stand on its commit {line['commit'][:9]}; where a rebase or squash took that away, "
                       "`tests/e2e/ledger.py drop-strays` takes the line out")
            continue
        if lines.time_of(line["date"]) < history[line["commit"]]:
            bad.append(what + "it is older than its commit")
        if lines.time_of(line["date"]) > now + 300:
            bad.append(what + "it is in the future")
        script = labs.digest(lambda path: tree.file_at(line["commit"], path), line["name"])
        if script is None:
            bad.append(what + f"there was no tests/e2e/{line['name']}.sh at its commit")
        elif line["tree"] == "clean" and script != line["script"]:
            bad.append(what + "its script is not the one of its commit")
    return bad


def taken_out(tree, known):
    """Lines of an earlier version of the ledger that are not there, unless their commit is not in HEAD's history (drop-strays)."""
    here, history = {lines.canonical(lines.bare(line)) for line in known}, tree.history()
    bad = {}
    for commit, text in tree.versions(trees.LEDGER):
        for line in lines.parse(text.decode(errors="replace"))[0]:
            if line["commit"] in history and lines.canonical(lines.bare(line)) not in here:
                shown = commit[:9] + "^" * commit.count("^")
                bad.setdefault(lines.canonical(lines.bare(line)), f"the line {line['name']}, {line['date']} was taken out: {shown} has it")
    return sorted(bad.values())


def check(_):
    tree, scripts = trees.Tree(ROOT), stands_on.Scripts(ROOT)
    files = tree.files()
    known, broken = lines.read(ledger_path())
    parts = {"the ledger's lines and seals": broken,
             "what the tests stand on": stands_on.complaints(scripts, files),
             "what pages say of the tests": pages.complaints(ROOT, files, scripts, known)}
    if not tree.why_not:
        parts["the ledger's lines and git"] = against_git(tree, known) + (taken_out(tree, known) if own_ledger() else [])
        parts["what the tests stand on and what their runs used"] = against_records(tree, scripts, files, known)
    for part, bad in parts.items():
        print(f"{'FAIL' if bad else 'ok  '}  {part}")
        for complaint in bad:
            print(f"      {complaint}")
    if tree.why_not:
        print(f"left out: the ledger's lines and git: {tree.why_not}; and what the runs used")
    return 1 if any(parts.values()) else 77 if tree.why_not else 0


# ---- table, merge, drop-strays, uses

def write_table():
    page = ROOT / trees.PAGE
    known, _ = lines.read(ledger_path())
    made = page.is_file() and pages.page_with(page.read_text(encoding="utf-8"), pages.table(stands_on.Scripts(ROOT), known))
    if not made:
        print(f"{trees.PAGE} has no place for the table: {trees.BEGIN} and {trees.END}", file=sys.stderr)
        return 1
    page.write_text(made, encoding="utf-8")
    return 0


def table(arguments):
    if arguments.write:
        return write_table()
    print(pages.table(stands_on.Scripts(ROOT), lines.read(ledger_path())[0]).strip())
    return 0


def merge(arguments):
    tree, others = trees.Tree(ROOT), []
    for name in arguments.ledgers:
        data = Path(name).read_bytes() if Path(name).is_file() else None if tree.why_not else tree.file_at(name, trees.LEDGER)
        if data is None:
            print(f"{name} is neither a file nor a revision with {trees.LEDGER}", file=sys.stderr)
            return 1
        others.append((name, data.decode(errors="replace")))
    try:
        print(f"{lines.merge(ledger_path(), others)} lines taken in")
    except lines.Broken as error:
        print(f"nothing was taken in: {error}", file=sys.stderr)
        return 1
    return write_table() if own_ledger() else 0


def drop_strays(_):
    tree = trees.Tree(ROOT)
    if tree.why_not:
        print(f"nothing was taken out: {tree.why_not}", file=sys.stderr)
        return 1
    history = tree.history()
    try:
        print(f"{lines.keep(ledger_path(), lambda line: line['commit'] in history)} lines taken out")
    except lines.Broken as error:
        print(f"nothing was taken out: {error}", file=sys.stderr)
        return 1
    return write_table() if own_ledger() else 0


def uses(arguments):
    scripts = stands_on.Scripts(ROOT)
    shipped = {path.stem for path in (ROOT / "playbooks").glob("*.yaml")}
    for name in arguments.names or scripts.text:
        found = stands_on.uses(ROOT, scripts.whole(name), shipped)
        print(f"{name:<18} {' '.join(sorted(found.drivers))} | {' '.join(sorted(found.engines))} | {' '.join(sorted(found.playbooks))}")
    return 0


def used_(arguments):
    after = int(arguments.after) if arguments.after else None
    found = {"used": used.of_state(ROOT, arguments.folder, after), "spent": spent.of_state(arguments.folder, after),
             "images": images.of_state(arguments.folder)}
    if None not in found.values():
        print(json.dumps(found))
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, arguments in (
            (run, [("name", {})]),
            (round_, [("--all", {"action": "store_true"}), ("--again", {"action": "store_true"}), ("names", {"nargs": "*"})]),
            (status, [("--json", {"action": "store_true"})]),
            (stale, [("names", {"nargs": "*"})]),
            (check, []),
            (table, [("--write", {"action": "store_true"})]),
            (merge, [("ledgers", {"nargs": "+"})]),
            (drop_strays, []),
            (uses, [("names", {"nargs": "*"})]),
            (used_, [("folder", {}), ("--after", {})])):
        one = verbs.add_parser(verb.__name__.rstrip("_").replace("_", "-"))
        one.set_defaults(run=verb)
        for flag, options in arguments:
            one.add_argument(flag, **options)
    arguments = parser.parse_args()
    for name in [*getattr(arguments, "names", []), *([arguments.name] if hasattr(arguments, "name") else [])]:
        if not (ROOT / "tests/e2e" / f"{name}.sh").is_file():
            print(f"no such test: {name}", file=sys.stderr)
            return 2
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
