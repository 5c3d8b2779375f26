"""Labs that several end-to-end tests share: tests/e2e/labs/NAME.sh.

A test is a member of the lab whose file it sources; that file's `# members: NAME...` has all of them, in the order in which they run. A round
runs the members that it has one after another. The first brings the lab up, each leaves it up for the next if it passed, which resets it
(shared_lab in lib.sh), and the last takes it down. So does one that failed, or was stopped: the next brings up its own, as a test that runs
alone does. The next does so, too, where the programs or the tree are no longer those of the bring-up: its line would name what the lab does
not run. A test has the lab's folder in MUSTER_E2E_SHARED_LAB, and MUSTER_E2E_LAB_STAYS if a member follows.

For the ledger the lab's file is a part of each member: of its script's digest, of what makes it old, and of what it stands on. A line says in
`lab` which lab it was, how long its bring-up took, and whether that is in the line's seconds (`paid`).
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .tree import sha256

NOT_SHARED = {"MUSTER_E2E_SHARED_LAB": "", "MUSTER_E2E_LAB_STAYS": ""}
SOURCED = re.compile(r"(?m)^source tests/e2e/labs/([a-z0-9-]+)\.sh$")


def of_text(script):
    """Name of the lab whose file a script sources, or None."""
    found = SOURCED.search(script)
    return found[1] if found else None


def path_of(lab):
    return f"tests/e2e/labs/{lab}.sh"


def members(text):
    """The tests that a lab's file names, in order."""
    return [name for line in re.findall(r"(?m)^# members: (.*)$", text) for name in line.split()]


def digest(read, name):
    """SHA-256 of a test's script, and of its lab's file; `read` gives the bytes of a path, or None. None if one is missing."""
    script = read(f"tests/e2e/{name}.sh")
    if script is None:
        return None
    lab = of_text(script.decode(errors="replace"))
    if not lab:
        return sha256(script)
    beside = read(path_of(lab))
    return None if beside is None else sha256(script + beside)


def ordered(names, lab_of, order_of):
    """The names, with the members of a lab behind the first of them, in the order that its file has."""
    found = []
    for name in names:
        lab = lab_of(name)
        if lab is None:
            found.append(name)
        elif name not in found:
            # A test that the file does not have is wrong (`complaints`), and runs nevertheless.
            found += [member for member in order_of(lab) if member in names and member not in found]
            found += [name] if name not in found else []
    return found


def complaints(scripts):
    """Tests and files of labs that do not name one another."""
    bad = []
    for lab, text in scripts.labs.items():
        named, sourced = members(text), [name for name in scripts.text if scripts.lab_of(name) == lab]
        bad += [f"{path_of(lab)}: {name}.sh sources it, and is not among its `# members: NAME...`" for name in sourced if name not in named]
        bad += [f"{path_of(lab)}: its member {name} does not source it" for name in named if name not in sourced]
    bad += [f"tests/e2e/{name}.sh: there is no {path_of(lab)}" for name in scripts.text for lab in [scripts.lab_of(name)]
            if lab and lab not in scripts.labs]
    return bad


def usual(names, lines, lab_of):
    """Seconds that each of these tests, in this order, is likely to take: its newest pass, with a lab's bring-up only where it brings it up."""
    own, bring_up, shares = {}, {}, {}   # a line that shares no lab, of before there was one, has its bring-up in it
    for line in lines:
        lab = line.get("lab")
        shares[line["name"]] = lab is not None
        own[line["name"]] = max(0, line["seconds"] - (lab["bring_up"] if lab and lab["paid"] else 0))
        if lab:
            bring_up[lab["name"]] = lab["bring_up"]
    found, before = dict(own), None
    for name in names:
        lab = lab_of(name)
        if shares.get(name) and lab and lab != before:
            found[name] = own[name] + bring_up.get(lab, 0)
        before = lab
    return found


class Shared:
    """The lab that stays up between two tests of a round. `down` takes down the lab in a folder; `made_of` says what the tree and the programs
    are now."""

    def __init__(self, lab_of, down, made_of, parent="/var/tmp"):
        self.lab_of, self.down, self.made_of, self.parent = lab_of, down, made_of, parent
        self.folder = self.of = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._forget()

    def run(self, name, following, run_one):
        """What run_one(variables) returns: exit status, and signal or 0. `following`: the test that runs next, or None."""
        lab = self.lab_of(name)
        stays = lab is not None and following is not None and self.lab_of(following) == lab
        if self.folder and self.made_of() != self.of:
            self._forget()
        if not stays and not self.folder:
            return run_one({})
        if not self.folder:
            self.of, self.folder = self.made_of(), Path(tempfile.mkdtemp(prefix="muster-e2e.", dir=self.parent))
        passed = False
        try:
            status, stopped = run_one({"MUSTER_E2E_SHARED_LAB": str(self.folder), "MUSTER_E2E_LAB_STAYS": "yes" if stays else ""})
            passed = status == 0 and not stopped
            if status and os.environ.get("MUSTER_E2E_KEEP"):
                self.folder = None   # lib.sh left it up, and said where
            return status, stopped
        finally:
            if not passed or not stays:
                self._forget()

    def _forget(self):
        """The lab is down afterwards: lib.sh has done that, unless the test was killed."""
        folder, self.folder = self.folder, None
        if folder is None:
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))
        try:
            if (folder / "lab").exists():
                self.down(folder / "lab")
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_down(muster):
    """Down for Shared: by a build's program."""
    def down(folder):
        # In a session of its own: ^C must not end it.
        subprocess.run([str(muster), "lab", "down"], env={**os.environ, "MUSTER_LAB_DIR": str(folder)}, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, check=False,
                       preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()))
    return down
