"""The repository: what git knows of it, the programs of its build, and whether they belong together.

Everything that git is needed for goes through `Tree`. A tree without git, or a shallow clone, has `why_not` set: then nothing that
needs history is decided.
"""
import hashlib
import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

LEDGER = "tests/e2e/passed.jsonl"
PAGE = "docs/benchmarks.md"
PROGRAMS = ("muster", "musterd", "muster-agent", "muster-accept", "muster-accept-nvml", "muster-mpi-check")
BEGIN = "<!-- the table: `tests/e2e/ledger.py table --write` makes it from tests/e2e/passed.jsonl -->"
END = "<!-- end of the table -->"


class GitError(Exception):
    pass


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def split_page(text):
    """What stands before, in and behind the generated table; None where a marker is missing or there twice."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        return None
    before, rest = text.split(BEGIN)
    table, behind = rest.split(END)
    return before, table, behind


class Tree:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.blobs = {}
        self.why_not = self._look()

    def _look(self):
        try:
            top, shallow, _ = self.git("rev-parse", "--show-toplevel", "--is-shallow-repository", "HEAD^{commit}").decode().splitlines()
            if Path(top).resolve() != self.root:
                return "this folder is not the top of a git work tree"
            if shallow == "true":
                return "this is a shallow clone (git fetch --unshallow)"
        except FileNotFoundError:
            return "there is no git here"
        except GitError as error:
            return f"git: {error}"
        return None

    def git(self, *arguments):
        # The end-to-end tests run as root in a work tree that may be another user's, which git refuses unless told.
        command = ["git", "-c", f"safe.directory={self.root}", "-C", str(self.root), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise GitError(words[0] if words else f"{arguments[0]} ended with {done.returncode}")
        return done.stdout

    def head(self):
        return self.git("rev-parse", "HEAD").decode().strip()

    def history(self):
        """Every commit that HEAD stands on, itself included, and when it was made (seconds)."""
        lines = self.git("log", "--format=%H %ct", "HEAD").decode().split("\n")
        return {commit: int(time) for commit, time in (line.split() for line in lines if line)}

    def file_at(self, commit, path):
        """The content of a file at a commit, None where it has none."""
        try:
            return self.git("cat-file", "blob", f"{commit}:{path}")
        except GitError:
            return None

    def versions(self, path, most=300):
        """Of the newest changes of a file in HEAD's history, on every branch merged into it: (commit, the file's content after it)."""
        listed = self.git("log", f"--max-count={most}", "--full-history", "-m", "--raw", "--no-abbrev", "--no-renames", "--format=%H", "HEAD",
                          "--", path).decode().splitlines()
        found, commit = {}, ""
        for row in listed:
            if row.startswith(":"):
                before, after, how = row.split("\t")[0].split(" ")[2:5]
                for digest, there in ((after, how != "D"), (before, how != "A")):
                    if there:
                        found.setdefault(digest, commit if digest == after else f"{commit}^")
            elif row:
                commit = row
        return [(commit, self.blob(digest)) for digest, commit in found.items()]

    def blob(self, digest):
        if digest not in self.blobs:
            self.blobs[digest] = self.git("cat-file", "blob", digest)
        return self.blobs[digest]

    def below(self, commit, paths):
        """(path, content) of each file that these paths, or folders, have at a commit."""
        there = [path for path in self.git("ls-tree", "--name-only", "-z", commit, "--", *paths).decode().split("\0") if path]
        if not there:   # with no path it is all
            return []
        with tarfile.open(fileobj=io.BytesIO(self.git("archive", "--format=tar", commit, "--", *there))) as archive:
            return [(member.name, archive.extractfile(member).read()) for member in archive if member.isfile()]

    def files(self):
        """Paths of the tree, in order: those that git knows and those not ignored; without git all but builds."""
        if self.why_not is None or self.why_not.startswith("this is a shallow"):
            listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode()
            names = {name for name in listed.split("\0") if name}
        else:
            names = set()
            for folder, folders, files in os.walk(self.root):
                folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
                names |= {str((Path(folder) / file).relative_to(self.root)) for file in files}
        return sorted(name for name in names if (self.root / name).is_file())

    def differs(self):
        """Paths in which the work tree is not HEAD: the ledger and the table made from it do not count, nor ignored files."""
        listed = self.git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal").decode().split("\0")
        return [entry[3:] for entry in listed if entry and entry[3:] != LEDGER and not self._only_the_table(entry[3:])]

    def _only_the_table(self, path, old="HEAD", new=None):
        if path != PAGE:
            return False
        was = self.file_at(old, path)
        now = self.file_at(new, path) if new else (self.root / path).read_bytes() if (self.root / path).is_file() else None
        if was is None or now is None:
            return False
        was, now = split_page(was.decode()), split_page(now.decode())
        return bool(was and now and was[0] == now[0] and was[2] == now[2])

    def only_the_ledger_since(self, commit):
        """Nothing but the ledger, and the table made from it, differs between a commit and HEAD."""
        changed = self.git("diff", "--name-only", "-z", "--no-renames", commit, "HEAD").decode().split("\0")
        return all(path == LEDGER or self._only_the_table(path, commit, "HEAD") for path in changed if path)


def programs_digest(build):
    """One digest over the programs of a build; None where one is missing."""
    together = hashlib.sha256()
    for name in PROGRAMS:
        path = build / name
        if not path.is_file():
            return None
        data = path.read_bytes()
        together.update(f"{name} {len(data)}\n".encode() + data)
    return together.hexdigest()


def programs_commit(tree, build):
    """(commit that the programs of a build name, were they built from changed files) or (None, why not)."""
    program = build / "muster"
    try:
        done = subprocess.run([str(program), "version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              env={**os.environ, "MUSTER_SOCKET": "/nonexistent"}, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{program} does not say its version: {error}"
    said = next((line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("muster ")), "")
    found = re.search(r"\+\d{8}(?:\.\d{6})?\.g([0-9a-f]{7,40})(\.dirty)?(?:\s|$)", said)
    if not found:
        return None, f"{program} says `{said}`, which names no commit: build again in a git work tree"
    try:
        commit = tree.git("rev-parse", "--verify", "--quiet", f"{found[1]}^{{commit}}").decode().strip()
    except GitError:
        return None, f"{program} names the commit {found[1]}, which this repository does not have: build again"
    return commit, bool(found[2])
