"""A repository made for the tests of the ledger, and what they have in common: tests/e2e/ledger_test.py."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import lines, stands_on, tree as trees

HERE = Path(__file__).resolve().parents[1]
WHEN = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
CC = '#include "agent/old.h"\n// a comment\nint answer() { return 42; }  // "no literal"\nconst char* url = "http://here";\n'
SPEC = '''echo tcg >"$MUSTER_E2E_ACCELERATOR"
cat >/dev/null <<'YAML'
nodes:
  - { name: n, power: { driver: redfish, address: 10.0.0.1 } }
storage:
  s: { engine: nfs, disks: d }
roles:
  r: { playbooks: [ base, mpi ] }
YAML
'''
STANDS = "# stands on: agent agent/storage/nfs* base controller/{engines/nfs,power/redfish}* playbooks/{base,mpi}.yaml\n"
FILES = {
    "agent/old.h": "int answer();\n", "agent/answer.cc": CC, "base/text.cc": "int text;\n", "agent/storage/nfs.cc": "int nfs;\n",
    "controller/power/redfish.cc": "int redfish;\n", "controller/engines/nfs_engine.cc": "int nfs_engine;\n",
    "playbooks/base.yaml": "playbook: base\n", "playbooks/mpi.yaml": "# a comment\nplaybook: mpi\n", ".gitignore": "/build*/\n",
    "docs/benchmarks.md": f"# Times\n\n{trees.BEGIN}\n{trees.END}\n\nThe rest.\n", "docs/page.md": "# Page\n", "README.md": "# Read\n",
    "tests/e2e/passed.jsonl": "", "tests/e2e/lib.sh": "true\n",
    "tests/e2e/alpha.sh": f"#!/usr/bin/env bash\n# alpha proves a\n{STANDS}{SPEC}",
    "tests/e2e/beta.sh": "#!/usr/bin/env bash\n# beta proves b | c\n# stands on: playbooks/mpi.yaml\n# weakened by: SHORTER\n"
                         "eval \"${DO:-true}\"\n",
}


# Variables of a run of the real tests must not reach these repositories.
for name in [name for name in os.environ if name.startswith("MUSTER_") or name == "SHORTER"]:
    del os.environ[name]


class Repository:
    """A repository with two end-to-end tests, and programs in build/ that name its commit."""

    first = None   # made once, copied for each test

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="muster-ledger-"))
        if Repository.first:
            shutil.copytree(Repository.first, self.root, symlinks=True, dirs_exist_ok=True)
        else:
            self.make()
            Repository.first = Path(tempfile.mkdtemp(prefix="muster-ledger-"))
            atexit.register(shutil.rmtree, Repository.first)
            shutil.copytree(self.root, Repository.first, symlinks=True, dirs_exist_ok=True)

    def make(self):
        for path, text in FILES.items():
            self.write(path, text)
        for pattern in stands_on.UNTESTED:
            self.write(pattern.replace("*", "") + ("/x.cc" if pattern == "kernels/gpu" else ".cc" if "*" in pattern else ""), "x\n")
        shutil.copy(HERE / "ledger.py", self.root / "tests/e2e")
        shutil.copy(HERE / "run.sh", self.root / "tests/e2e")
        shutil.copytree(HERE / "passes", self.root / "tests/e2e/passes", ignore=shutil.ignore_patterns("__pycache__"))
        self.git("init", "-q", "-b", "main")
        self.ledger("table", "--write")
        self.commit("first")
        self.build()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def edit(self, path, old, new):
        text = (self.root / path).read_text()
        assert old in text, (path, old)
        (self.root / path).write_text(text.replace(old, new))

    def git(self, *arguments):
        done = subprocess.run(["git", *arguments], cwd=self.root, env={**os.environ, **WHO, **WHEN}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, what):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", what)
        return self.git("rev-parse", "HEAD")

    def build(self, version=None):
        version = version or f"0.1.0+20260102.030405.g{self.git('rev-parse', '--short', 'HEAD')}"
        for name in trees.PROGRAMS:
            self.write(f"build/{name}", f"#!/bin/sh\necho 'muster {version}'\necho 'musterd 1.0+20260102.030405.gfffffff'\n")
            (self.root / f"build/{name}").chmod(0o755)

    def command(self, *arguments, **more):
        env = {**os.environ, **WHO, "MUSTER_E2E_LOGS": str(self.root / "build/logs"), **more}
        return subprocess.run(arguments, cwd=self.root, env=env, capture_output=True, text=True)

    def ledger(self, *arguments, **more):
        return self.command(sys.executable, "tests/e2e/ledger.py", *arguments, **more)

    def passes(self, name, **more):
        """`name` runs and passes: what the ledger says to that."""
        done = self.ledger("run", name, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check(self):
        done = self.ledger("check")
        return done.returncode, done.stdout

    def rows(self):
        return (self.root / trees.LEDGER).read_text().splitlines()

    def state(self, name):
        tests = json.loads(self.ledger("status", "--json").stdout)["tests"]
        return next(test for test in tests if test["name"] == name)


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.repo = Repository()
        self.addCleanup(shutil.rmtree, self.repo.root)

    def wrong(self, *words):
        code, said = self.repo.check()
        self.assertEqual(code, 1, said)
        for word in words:
            self.assertIn(word, said)

    def fine(self):
        code, said = self.repo.check()
        self.assertEqual(code, 0, said)

    def forge(self, number=0, reseal=True, **changed):
        """Changes fields of a line; with a chain that fits again, unless told otherwise."""
        known, before, rows = [json.loads(row) for row in self.repo.rows()], "", []
        known[number].update(changed)
        for line in known:
            if reseal:
                line["seal"] = lines.seal(before, line)
            before = line["seal"]
            rows.append(lines.canonical(line) + "\n")
        self.repo.write(trees.LEDGER, "".join(rows))
        self.repo.ledger("table", "--write")
