"""The lines of the ledger: their form, the chain of seals, appending and merging.

A line is one JSON object. `seal` is the SHA-256 of the seal before it, a newline and the line's other fields as JSON with sorted keys and no
spaces. So a line that was changed, written by hand, taken out or moved breaks the chain. It is no signature: this module
makes any chain. What a line claims is held against git by `check`.

Two branches that both appended have two chains. `merge` verifies both, takes each line once, in the order of their dates, and makes the
seals again; nothing else of a line changes.
"""
import fcntl
import json
import os
import re
from datetime import datetime, timezone

from .tree import sha256

TIME = "%Y-%m-%dT%H:%M:%SZ"
ACCELERATORS = ("tcg", "kvm", "none", "unknown")   # none: no machine was started; unknown: the lab was not asked in time
USED = ("drivers", "engines", "images", "modules", "playbooks")   # what runs used (used.py)
SPENT = ("boots", "booting", "steps")   # how runs spent their seconds (spent.py)
IMAGES = ("built", "cached")   # where the images came from that the controllers had (images.py)
LAB = ("bring_up", "name", "paid")   # the lab that it shares with other tests (labs.py)
HEX = re.compile(r"[0-9a-f]+")
NAME = re.compile(r"[a-z0-9][a-z0-9._/-]*")


class Broken(Exception):
    """The ledger cannot be appended to or merged as it is."""


def canonical(line):
    return json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def bare(line):
    return {key: value for key, value in line.items() if key != "seal"}


def seal(before, line):
    return sha256(f"{before}\n{canonical(bare(line))}".encode())


def _digest(value, length):
    return isinstance(value, str) and len(value) == length and HEX.fullmatch(value) is not None


def _count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _date(value):
    try:
        return isinstance(value, str) and datetime.strptime(value, TIME).strftime(TIME) == value
    except ValueError:
        return False


def _used(value):
    return (isinstance(value, dict) and set(value) == set(USED)
            and all(isinstance(names, list) and all(isinstance(n, str) and NAME.fullmatch(n) for n in names) and names == sorted(set(names))
                    for names in value.values()))


def _counts(of):
    return lambda value: isinstance(value, dict) and set(value) == set(of) and all(_count(number) for number in value.values())


def _lab(value):
    return (isinstance(value, dict) and set(value) == set(LAB) and isinstance(value["name"], str) and NAME.fullmatch(value["name"]) is not None
            and _count(value["bring_up"]) and isinstance(value["paid"], bool))


FIELDS = {
    "name": lambda v: isinstance(v, str) and re.fullmatch(r"[a-z0-9][a-z0-9-]*", v) is not None,
    "date": _date,
    "commit": lambda v: _digest(v, 40),
    "tree": lambda v: v in ("clean", "dirty"),
    "script": lambda v: _digest(v, 64),
    "programs": lambda v: _digest(v, 64),
    "seconds": _count,
    "cores": lambda v: _count(v) and v > 0,
    "accelerator": lambda v: v in ACCELERATORS,
    "load": lambda v: isinstance(v, list) and len(v) == 2 and all(_number(n) for n in v),
    "used": _used,
    "spent": _counts(SPENT),
    "images": _counts(IMAGES),
    "lab": _lab,
    "seal": lambda v: _digest(v, 64),
}
# A test without a controller of its own, one that shares no lab, and lines from before there was such a record.
MAY_LACK = {"used", "spent", "images", "lab"}


def time_of(date):
    return datetime.strptime(date, TIME).replace(tzinfo=timezone.utc).timestamp()


def parse(text):
    """(lines, complaints) of a ledger's text; a line that is none is left out and complained about."""
    lines, bad, before = [], [], ""
    if text and not text.endswith("\n"):
        bad.append("the last line has no end: it was cut off, or written by hand")
    for number, row in enumerate(text.splitlines(), 1):
        try:
            line = json.loads(row)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            bad.append(f"line {number} is no JSON object")
            before = "?"
            continue
        wrong = sorted((set(line) ^ set(FIELDS)) - (MAY_LACK - set(line))) + sorted(k for k in FIELDS if k in line and not FIELDS[k](line[k]))
        if wrong:
            bad.append(f"line {number}: missing, unknown or of the wrong form: {', '.join(wrong)}")
            before = str(line.get("seal"))
            continue
        if canonical(line) != row or seal(before, line) != line["seal"]:
            bad.append(f"line {number} ({line['name']}, {line['date']}): its seal does not fit it and the line before: changed, "
                       "moved or written by hand, or a line before it was taken out")
        before = line["seal"]
        lines.append(line)
    return lines, bad


def read(path):
    return parse(path.read_text(encoding="utf-8") if path.is_file() else "")


def _sync_folder(path):
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def append(path, line):
    """Seals a line behind those that are there and writes it in one go."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        lines, bad = read(path)
        if bad:
            raise Broken(bad[0])
        line = {**line, "seal": seal(lines[-1]["seal"] if lines else "", line)}
        data = (canonical(line) + "\n").encode()
        if os.write(handle, data) != len(data):
            raise Broken(f"{path} was not written whole")
        os.fsync(handle)
        _sync_folder(path)
    finally:
        os.close(handle)


def merge(path, others):
    """Takes in the lines of other ledgers, given as texts; how many were new."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        lines, bad = read(path)
        known, mine = {canonical(bare(line)) for line in lines}, len(lines)
        for name, text in others:
            theirs, wrong = parse(text)
            bad += [f"{name}: {complaint}" for complaint in wrong]
            for line in theirs:
                if canonical(bare(line)) not in known:
                    known.add(canonical(bare(line)))
                    lines.append(line)
        if bad:
            raise Broken(bad[0])
        if len(lines) > mine:
            _write(path, sorted(lines, key=lambda line: line["date"]))
        return len(lines) - mine
    finally:
        os.close(handle)


def keep(path, wanted):
    """Takes out the lines for which wanted(line) does not hold; how many those were."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        lines, bad = read(path)
        if bad:
            raise Broken(bad[0])
        kept = [line for line in lines if wanted(line)]
        if len(kept) < len(lines):
            _write(path, kept)
        return len(lines) - len(kept)
    finally:
        os.close(handle)


def _write(path, lines):
    before, rows = "", []
    for line in lines:
        before = seal(before, line)
        rows.append(canonical({**bare(line), "seal": before}) + "\n")
    # In place: one who waits for the lock of this file goes on with this file.
    with open(path, "r+", encoding="utf-8") as file:
        file.write("".join(rows))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
