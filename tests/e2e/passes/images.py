"""What end-to-end tests keep for later calls of run.sh: node images, and what scripts make that takes long.

  FOLDER/code-KEY/DIGEST         an image, or the packages of one: KEY is MUSTER_IMAGE_CACHE of the controllers, who share their builds there
  FOLDER/programs-DIGEST/...     likewise, of programs that name no commit
  FOLDER/made/NAME-DIGEST        what a script made, named by all that it is made of; MUSTER_E2E_CACHE is FOLDER
  FOLDER/lock                    shared by all who use FOLDER; something is removed only by one who is alone

The controller finds an image by its own key (controller/image/image.cc): name, recipe, packages, files, rendered steps, archives, and numbers
that a person raises where the code makes another image of the same. Until then, images of older code would be taken: hence KEY, of the code
that makes images. That is controller/image, and what the agent carries out the steps of layers with. What goes into an image by the key alone
is not in it: recipes, playbooks, the spec. Nor are the programs: agent and acceptance programs come with the RAM system, which is packed
beside an image after it was taken from here, and from the controller (controller/image/programs.h).

KEY is of the commit that the programs name, since they build the images, whatever the tree has become. What ages no pass, such as comments,
changes no KEY (aging.py); but base, host and sys count here: a change there would be in the images of the next pass, if it built any.
"""
import fcntl
import json
import os
import re
import shutil
import time
from pathlib import Path

from .aging import what_matters
from .tree import programs_commit, programs_digest, sha256

MAKERS = ("agent/core", "agent/disk", "agent/image", "agent/main.cc", "agent/steps", "base", "controller/image", "host", "sys")
LIMIT = 20 * 10**9        # bytes; what was used longest ago goes first
OLDEST = 14 * 24 * 3600   # seconds since it was made: what archives and the host's tools are now is to be met, too
DIGEST = re.compile("[0-9a-f]{64}")
SEAL = "cache-seal"       # written last (controller/image/shared_cache.cc)


def key_of(tree, build):
    """The name of the folder for images of these programs; None where programs are missing."""
    commit, dirty = (None, False) if tree.why_not else programs_commit(tree, build)
    if commit and not dirty:
        return "code-" + sha256("".join(sorted(sha256(what_matters(*file)) for file in tree.below(commit, MAKERS))).encode())[:16]
    digest = programs_digest(build)
    return digest and "programs-" + digest[:16]


# ---- the folder

def _made(entry):
    """When it was made; 0: never ready."""
    return max((file.stat().st_mtime for file in entry.iterdir() if file.is_file()), default=0)


def _bytes(entry):
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(entry) for name in names)


class Cache:
    """Within `with` this process uses the folder. An entry's own time is that of its last use."""

    def __init__(self, path):
        self.path, self.lock = Path(path), None

    def __enter__(self):
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)   # as private as a controller's state
        self.lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._tidy_if_alone()
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        return self

    def __exit__(self, *_):
        self._tidy_if_alone()
        os.close(self.lock)

    def _tidy_if_alone(self):
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        folders = [folder for pattern in ("code-*", "programs-*", "made") for folder in self.path.glob(pattern)]
        kept = []
        for entry in (entry for folder in folders for entry in folder.iterdir() if entry.is_dir()):
            if "." in entry.name or _made(entry) < time.time() - OLDEST:   # a dot: its maker was killed
                shutil.rmtree(entry, ignore_errors=True)
            else:
                kept.append((entry.stat().st_mtime, _bytes(entry), entry))
        left = sum(size for _, size, _ in kept)
        for _, size, entry in sorted(kept):
            if left <= LIMIT:
                break
            shutil.rmtree(entry, ignore_errors=True)
            left -= size
        for folder in folders:
            if not any(folder.iterdir()):
                folder.rmdir()


class OfTest:
    """The folder as one test has it; with `key` None its controllers share nothing."""

    def __init__(self, cache, key):
        self.cache, self.folder, self.began = cache, key and cache.path / key, time.time()
        if key:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        self.before = dict(self._images())

    def _images(self):
        """(digest, entry) of each image that is there."""
        for manifest in self.folder.glob("*/manifest.json") if self.folder else ():
            with manifest.open(encoding="utf-8") as file:
                found = re.match(r'\{"digest":"sha256:([0-9a-f]{64})"', file.read(100))   # its keys are sorted (base/manifest.cc)
            if found:
                yield found[1], manifest.parent

    def variables(self):
        return {"MUSTER_IMAGE_CACHE": str(self.folder or ""), "MUSTER_E2E_CACHE": str(self.cache.path)}

    def counted(self, records):
        """How many of the images that the controllers had were built meanwhile, and how many were there before; None without records."""
        if not records:
            return None
        built_at = {}
        for record in records:
            for digest, when in record.items():
                built_at[digest] = max(when, built_at.get(digest, 0))
        cached = [digest for digest, when in built_at.items() if digest in self.before and when < self.began * 1000]
        for digest in cached:
            if self.before[digest].is_dir():   # else its build was replaced
                os.utime(self.before[digest])
        return {"built": len(built_at) - len(cached), "cached": len(cached)}

    def forget_new(self):
        """Removes the images that came since the test began: they may be of other programs."""
        for seal in list(self.folder.glob(f"*/{SEAL}")) if self.folder else ():
            if seal.stat().st_mtime >= self.began:
                shutil.rmtree(seal.parent, ignore_errors=True)


# ---- what controllers had

def of_state(state):
    """The images that a controller has, or had: digest, and when it was built (ms)."""
    found = {}
    for record in Path(state).glob("images/*/*/build.json"):
        if DIGEST.fullmatch(record.parent.name):   # else the link to the current one
            found[record.parent.name] = json.loads(record.read_text(encoding="utf-8")).get("built_at", 0)
    return found


def is_record(value):
    return isinstance(value, dict) and all(DIGEST.fullmatch(digest) and isinstance(when, int) for digest, when in value.items())
