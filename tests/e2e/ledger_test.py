#!/usr/bin/env python3
"""Tests of the ledger of end-to-end passes, over repositories made for them: what is recorded, forged, old, claimed. And of lib.sh's helpers
that say that something is nowhere. No lab; a few seconds. tests/e2e/ledger_test.py [-v] [NAME...]"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from passes import aging, lines, stands_on, tree as trees  # noqa: E402

HERE = Path(__file__).resolve().parent
WHEN = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
CC = '#include "agent/old.h"\n// a comment\nint answer() { return 42; }  // "no literal"\nconst char* url = "http://here";\n'
SPEC = '''cat >"$work/cluster.yaml" <<'YAML'
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
    "tests/e2e/beta.sh": "#!/usr/bin/env bash\n# beta proves b | c\n# stands on: playbooks/mpi.yaml\n# weakened by: SHORTER\ntrue\n",
}


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
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_") and k != "SHORTER"}
        return subprocess.run(arguments, cwd=self.root, env={**environment, **WHO, **more}, capture_output=True, text=True)

    def ledger(self, *arguments, **more):
        return self.command(sys.executable, "tests/e2e/ledger.py", *arguments, **more)

    def passes(self, name, **more):
        """`name` runs and passes: what the ledger says to that."""
        begun = self.ledger("begin", name, **more).stdout
        return self.ledger("append", name, "--begun", begun, "--seconds", "7", "--accelerator", "tcg", **more).stdout

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


class Recording(LedgerTest):
    def test_a_pass_is_recorded_with_commit_script_and_programs_and_the_page_shows_it(self):
        self.fine()
        self.assertIn("recorded: alpha", self.repo.passes("alpha"))
        line = json.loads(self.repo.rows()[0])
        self.assertEqual((line["name"], line["commit"], line["tree"]), ("alpha", self.repo.git("rev-parse", "HEAD"), "clean"))
        self.assertEqual(line["script"], trees.sha256((self.repo.root / "tests/e2e/alpha.sh").read_bytes()))
        self.assertEqual((line["seconds"], line["accelerator"], len(line["load"])), (7, "tcg", 2))
        self.assertIn(f"| `alpha` | alpha proves a | {line['date'][:10]} | {line['commit'][:9]} | 7 s | tcg",
                      (self.repo.root / trees.PAGE).read_text())
        self.assertIn("| `beta` | beta proves b \\| c | never", (self.repo.root / trees.PAGE).read_text())
        self.fine()
        # Ledger and table do not make the tree dirty, nor their commit the programs old.
        self.assertIn("tree clean", self.repo.passes("beta"))
        self.repo.commit("the ledger")
        self.assertIn("tree clean", self.repo.passes("beta"))
        self.fine()

    def test_run_sh_records_what_passed_and_nothing_else(self):
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta")
        self.assertEqual((run.returncode, len(self.repo.rows())), (0, 1), run.stdout + run.stderr)
        self.repo.edit("tests/e2e/beta.sh", "true\n", "false\n")
        self.repo.commit("it fails")
        self.repo.build()
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta")
        self.assertEqual((run.returncode, len(self.repo.rows())), (1, 1), run.stdout + run.stderr)
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta", "gamma")
        self.assertEqual((run.returncode, run.stdout), (2, ""), "an unknown name: nothing runs")
        run = self.repo.command("bash", "tests/e2e/run.sh", "stale", "--list")
        self.assertEqual(run.stdout.split(), ["alpha", "beta"])

    def test_programs_that_are_not_of_this_commit_are_not_recorded(self):
        for version in ("0.1.0", "0.1.0+20260102.030405.g0123456"):
            self.repo.build(version)
            self.assertIn("not recorded: ", self.repo.passes("alpha"))
        self.repo.build()
        self.repo.edit("agent/answer.cc", "42", "43")
        self.repo.commit("another")
        self.assertIn("build again", self.repo.passes("alpha"))
        shutil.rmtree(self.repo.root / "build")
        self.assertIn("not recorded: ", self.repo.passes("alpha"))
        self.assertEqual(self.repo.rows(), [])

    def test_what_ran_with_a_changed_tree_or_less_of_it_does_not_count(self):
        self.repo.edit("agent/answer.cc", "42", "43")
        self.assertIn("tree dirty", self.repo.passes("alpha"))
        self.repo.git("checkout", "-q", "agent")
        self.repo.build(f"0.1.0+20260102.030405.g{self.repo.git('rev-parse', '--short', 'HEAD')}.dirty")
        self.assertIn("tree dirty", self.repo.passes("alpha"))
        self.assertEqual(self.repo.state("alpha")["state"], "never")
        self.fine()
        self.repo.build()
        begun = self.repo.ledger("begin", "alpha").stdout
        self.repo.write("build/musterd", "another\n")
        said = self.repo.ledger("append", "alpha", "--begun", begun, "--seconds", "7").stdout
        self.assertIn("not recorded: ", said)
        self.repo.build()
        self.assertIn("SHORTER", self.repo.passes("beta", SHORTER="1"))
        self.assertEqual(len(self.repo.rows()), 2)

    def test_many_append_at_once(self):
        self.repo.passes("alpha")
        path = self.repo.root / trees.LEDGER
        line = lines.bare(json.loads(self.repo.rows()[0]))
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                for _ in range(50):
                    lines.append(path, line)
                os._exit(0)
            children.append(child)
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0] * 4)
        known, bad = lines.read(path)
        self.assertEqual((len(known), bad), (201, []))

    def test_lines_of_another_branch_or_file_are_taken_in_once(self):
        self.repo.git("checkout", "-q", "-b", "other")
        self.repo.passes("beta")
        self.repo.commit("other")
        self.repo.git("checkout", "-q", "main")
        aside = self.repo.root / "build/aside.jsonl"
        self.repo.passes("alpha", MUSTER_LEDGER=str(aside))
        self.assertEqual((len(self.repo.rows()), len(aside.read_text().splitlines())), (0, 1))
        self.assertIn("2 lines", self.repo.ledger("merge", "other", str(aside)).stdout)
        self.assertIn("0 lines", self.repo.ledger("merge", "other", str(aside)).stdout)
        self.fine()
        self.assertEqual([json.loads(row)["name"] for row in self.repo.rows()], ["beta", "alpha"])
        aside.write_text(aside.read_text().replace('"seconds":7', '"seconds":6'))
        self.assertEqual(self.repo.ledger("merge", str(aside)).returncode, 1)


class Forging(LedgerTest):
    def setUp(self):
        super().setUp()
        self.repo.passes("alpha")
        self.repo.passes("beta")
        self.fine()

    def test_a_changed_field(self):
        self.forge(0, reseal=False, seconds=1)
        self.wrong("line 1 (alpha", "seal")

    def test_a_line_written_by_hand(self):
        with open(self.repo.root / trees.LEDGER, "a", encoding="utf-8") as ledger:
            ledger.write(self.repo.rows()[0] + "\n")
        self.wrong("line 3 (alpha", "seal")
        self.repo.write(trees.LEDGER, "alpha passed\n")
        self.wrong("line 1 is no JSON object")

    def test_lines_taken_out_or_moved(self):
        first, second = self.repo.rows()
        self.repo.write(trees.LEDGER, f"{second}\n{first}\n")
        self.wrong("seal")
        self.repo.write(trees.LEDGER, f"{first}\n{second}\n")
        self.repo.commit("the ledger")
        self.fine()
        self.repo.write(trees.LEDGER, f"{second}\n")
        self.wrong("seal")
        self.repo.write(trees.LEDGER, f"{first}\n")
        self.repo.ledger("table", "--write")
        self.wrong("the line beta", "was taken out")
        self.repo.commit("without it")
        self.wrong("the line beta", "was taken out")

    def test_a_chain_that_fits_is_held_against_git(self):
        head = json.loads(self.repo.rows()[0])
        self.forge(0, commit="0123456789" * 4)
        self.wrong("HEAD does not stand on its commit 012345678")
        self.repo.git("checkout", "-q", "-b", "aside")
        self.repo.git("stash", "-q")
        stray = self.repo.git("commit-tree", "-m", "stray", "HEAD^{tree}")
        self.repo.git("stash", "pop", "-q")
        self.forge(0, commit=stray)
        self.wrong("HEAD does not stand on its commit")
        self.forge(0, commit=head["commit"], script="0" * 64)
        self.wrong("its script is not the one of its commit")
        self.forge(0, script=head["script"], date="2026-01-01T00:00:00Z")
        self.wrong("it is older than its commit")
        self.forge(0, date="2999-01-01T00:00:00Z")
        self.wrong("it is in the future")
        self.forge(0, date=head["date"], name="gamma")
        self.wrong("there was no tests/e2e/gamma.sh at its commit")
        self.forge(0, name="alpha")
        self.fine()

    def test_fields_of_the_wrong_form(self):
        for field, value in (("seconds", "7"), ("tree", "clear"), ("load", [1]), ("date", "2026-01-02"), ("cores", 0),
                             ("accelerator", "gpu"), ("programs", "z" * 64), ("more", 1)):
            with self.subTest(field):
                before = self.repo.rows()
                self.forge(0, **{field: value})
                self.wrong("line 1: ", field)
                self.repo.write(trees.LEDGER, "\n".join(before) + "\n")

    def test_a_shallow_clone_or_none_is_left_out_and_not_passed(self):
        self.repo.commit("the ledger")
        clone = self.repo.root / "build/clone"
        self.repo.edit("README.md", "Read", "Read me")
        self.repo.commit("one more")
        self.repo.git("clone", "-q", "--depth", "1", f"file://{self.repo.root}", str(clone))
        for _ in ("shallow", "no git"):
            done = subprocess.run([sys.executable, "tests/e2e/ledger.py", "check"], cwd=clone, capture_output=True, text=True)
            self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
            self.assertIn("left out: the ledger's lines and git: ", done.stdout)
            shutil.rmtree(clone / ".git", ignore_errors=True)


class Aging(LedgerTest):
    def setUp(self):
        super().setUp()
        self.repo.passes("alpha")
        self.repo.commit("the ledger")

    def is_now(self, state, *changed):
        self.repo.commit("a change")
        found = self.repo.state("alpha")
        self.assertEqual((found["state"], found.get("changed")), (state, list(changed)))

    def test_comments_includes_blank_lines_and_moves_change_nothing(self):
        self.repo.edit("agent/answer.cc", "// a comment\n", "/* another\n one */\n\n")
        self.repo.edit("agent/answer.cc", '// "no literal"', "")
        self.repo.edit("playbooks/mpi.yaml", "# a comment\n", "")
        self.repo.edit("tests/e2e/alpha.sh", "# alpha proves a\n", "# alpha proves more\n")
        self.is_now("passed")
        self.repo.git("mv", "agent/old.h", "agent/storage/new.h")
        self.repo.edit("agent/answer.cc", "agent/old.h", "agent/storage/new.h")
        (self.repo.root / "elsewhere").mkdir()
        self.repo.git("mv", "agent/storage/nfs.cc", "elsewhere/nfs.cc")
        self.is_now("passed")

    def test_base_and_lib_and_what_no_test_runs_age_nothing(self):
        self.repo.edit("base/text.cc", "text", "other")
        self.repo.edit("tests/e2e/lib.sh", "true", "false")
        self.repo.edit("kernels/gpu/x.cc", "x", "y")
        self.is_now("passed")

    def test_a_change_of_what_it_stands_on_ages_it(self):
        self.repo.edit("agent/answer.cc", "http://here", "http://there")
        self.is_now("old", "agent/answer.cc")

    def test_a_file_that_moved_and_changed_ages_it(self):
        self.repo.write("agent/storage/nfs.cc", "int nfs() {\n  return 1;\n}\nint more;\nint lines;\n")
        self.repo.commit("longer")
        self.repo.build()
        self.repo.passes("alpha")
        self.repo.git("mv", "agent/storage/nfs.cc", "elsewhere.cc")
        self.repo.edit("elsewhere.cc", "return 1", "return 2")
        self.is_now("old", "elsewhere.cc")

    def test_a_new_file_a_lost_one_and_the_script_age_it(self):
        self.repo.write("agent/more.cc", "int more;\n")
        self.repo.git("rm", "-q", "agent/storage/nfs.cc")
        self.repo.edit("tests/e2e/alpha.sh", "engine: nfs", "engine:  nfs")
        self.is_now("old", "agent/more.cc", "agent/storage/nfs.cc (gone)", "tests/e2e/alpha.sh")

    def test_what_is_data_is_no_comment(self):
        for path, was, now in (
                ("a.cc", 'auto a = "// x";', 'auto a = "// y";'), ("a.cc", "auto a = R\"(\n// x\n)\";", "auto a = R\"(\n// y\n)\";"),
                ("a.cc", "int a = 1'000; // it's", "int a = 2'000; // it's"), ("a.sh", "cat <<E\n# x\nE\n", "cat <<E\n# y\nE\n"),
                ("a.yaml", "a: |\n  # x\nb: 1\n", "a: |\n  # y\nb: 1\n"), ("a.sh", "#!/bin/sh\n", "#!/bin/bash\n"),
                ("a.py", "a = '# x'\n", "a = '# y'\n"), ("a.sql", "-- x\n", "-- y\n"), ("a.md", "    run x\n", "    run y\n")):
            with self.subTest(path=path, was=was):
                self.assertNotEqual(aging.what_matters(path, was.encode()), aging.what_matters(path, now.encode()))
        for path, was, now in (("a.cc", "int a; // it's", "int a;"), ("a.sh", "x\n# y\n", "x\n"), ("a.yaml", "a: 1\n  # y\n", "a: 1\n"),
                               ("a.cc", "int a = 1'000;", "int a = 1'000;  // it's"), ("a.py", "a = 1  # x\n", "a = 1\n"),
                               ("a.md", "words\n    run\n", "others\n    run\n")):
            with self.subTest(path=path, was=was):
                self.assertEqual(aging.what_matters(path, was.encode()), aging.what_matters(path, now.encode()))

    def test_what_never_passed_is_run_first_then_the_oldest(self):
        self.assertEqual(self.repo.ledger("stale").stdout.split(), ["beta"])
        self.repo.passes("beta")
        self.assertEqual(self.repo.ledger("stale").stdout.split(), [])
        self.forge(1, date="2027-01-01T00:00:00Z")
        self.repo.edit("playbooks/mpi.yaml", "mpi", "mpich")
        self.repo.commit("both are old")
        self.assertEqual(self.repo.ledger("stale").stdout.split(), ["alpha", "beta"])
        self.repo.build()
        self.repo.passes("alpha")
        self.assertEqual(self.repo.ledger("stale").stdout.split(), ["beta"])


class StandsOn(LedgerTest):
    def test_product_that_no_test_names(self):
        self.repo.write("lab/rack.cc", "int rack;\n")
        self.wrong("lab/rack.cc: no end-to-end test stands on it")

    def test_a_path_that_is_not_there_and_a_head_without_any(self):
        self.repo.edit("tests/e2e/beta.sh", "mpi.yaml", "mpl.yaml")
        self.wrong("beta.sh: stands on playbooks/mpl.yaml, which is not there")
        self.repo.edit("tests/e2e/beta.sh", "# stands on: ", "# ")
        self.wrong("beta.sh: its head has no `# stands on: PATH...`")

    def test_drivers_engines_and_playbooks_of_the_spec_have_to_be_named(self):
        for named, missing in ((" agent/storage/nfs*", ""), ("engines/nfs,", "engine nfs, and it does not stand on controller/engines"),
                               (",power/redfish", "driver redfish, and it does not"), (",mpi", "playbook mpi, and it does not")):
            with self.subTest(missing):
                before = (self.repo.root / "tests/e2e/alpha.sh").read_text()
                self.repo.edit("tests/e2e/alpha.sh", named, "")
                if missing:
                    self.wrong(missing)
                else:
                    self.fine()   # the folder agent has it
                self.repo.write("tests/e2e/alpha.sh", before)
        self.repo.edit("tests/e2e/alpha.sh", "agent agent/storage/nfs*", "agent/*")
        self.wrong("engine nfs, and it does not stand on agent/storage/nfs.cc")
        self.repo.edit("tests/e2e/alpha.sh", "engine: nfs", "engine: zfs")
        self.wrong("engine zfs, and there is no file controller/engines/zfs*")

    def test_the_specs_of_this_tree_are_read_as_their_scripts_make_them(self):
        root = HERE.parents[1]
        shipped = {path.stem for path in (root / "playbooks").glob("*.yaml")}
        for name, drivers, engines, some, none in (
                ("phy", {"sakura-phy"}, {"local"}, {"storage-local"}, {"mpi"}),
                ("kexec", {"redfish", "ssh"}, {"local"}, {"storage-local"}, {"storage-shared"}),
                ("ipmi", {"ipmi"}, {"local"}, {"base"}, set()),
                ("ceph", {"redfish"}, {"ceph", "local"}, {"networks", "storage-ceph"}, {"storage-shared"}),
                ("moosefs-takeover", {"redfish"}, {"moosefs"}, {"storage-shared"}, {"mpi", "storage-local"}),
                ("acs", {"redfish"}, {"local"}, {"acs"}, {"storage-shared", "mpi"}),
                ("hgx", {"redfish"}, {"local", "moosefs", "nfs"}, {"gpu-vendor", "apptainer", "tuning"}, {"monitoring"}),
                ("first-cluster", {"redfish"}, {"local"}, {"storage-local"}, {"hpc", "apptainer"}),
                ("bmc", set(), set(), set(), {"base"})):
            with self.subTest(name):
                found = stands_on.uses(root, (HERE / f"{name}.sh").read_text(), shipped)
                self.assertEqual((found.drivers, found.engines), (drivers, engines))
                self.assertTrue(some <= found.playbooks and not none & found.playbooks, found.playbooks)


class Pages(LedgerTest):
    def test_a_claim_without_a_pass(self):
        self.repo.write("docs/deep/page.md", "It works, shown by\n`alpha` and `beta`.\n")
        self.repo.passes("alpha")
        self.wrong("docs/deep/page.md:1: shown by `beta`: the ledger has no pass of it")
        self.repo.passes("beta")
        self.assertEqual(len([r for r in self.repo.rows() if '"dirty"' in r]), 2)
        self.wrong("shown by `alpha`")   # the page was not committed when they ran
        self.repo.commit("the page")
        self.repo.build()
        self.repo.passes("alpha")
        self.repo.passes("beta")
        self.fine()
        for page in ("README.md", "CHANGELOG.md"):
            self.repo.write(page, "As shown by `gamma`.\n")
            self.wrong(f"{page}:1: shown by `gamma`: there is no such end-to-end test")
            self.repo.write(page, "# Nothing\n")

    def test_a_test_that_is_not_there_and_old_claims(self):
        self.repo.write("docs/page.md", "Run `tests/e2e/run.sh alpha beta` or `tests/e2e/run.sh stale --list`, `tests/e2e/run.sh NAME...`.\n")
        self.fine()
        for text in ("`tests/e2e/run.sh gamma`", "It passed on 2026-11-23.", "whole\nin the lab", "`x` has **not passed** yet", "| in the lab |",
                     "Exercised against a double and in the lab.", "in the lab (`alpha`)"):
            with self.subTest(text):
                self.repo.write("docs/page.md", text + "\n")
                self.wrong("docs/page.md:1: ")

    def test_a_table_that_is_not_the_ledgers(self):
        self.repo.edit("docs/benchmarks.md", "| never |", "| 2026-01-02 |")
        self.wrong("its table is not what the ledger says")
        self.repo.ledger("table", "--write")
        self.fine()
        self.repo.edit("docs/benchmarks.md", trees.END, "")
        self.wrong("the lines around the table")


class NowhereIn(unittest.TestCase):
    """lib.sh's helpers; the lab is not touched."""

    def test_nothing_is_found_only_where_something_was_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "log").write_text("one.secret=abc\n-x\n")
            (Path(folder) / "empty").mkdir()
            for command, good in (
                    ("nowhere_in xyz log", True), ("nowhere_in secret log", False), ("nowhere_in xyz .", True), ("nowhere_in abc .", False),
                    ("nowhere_in xyz log missing", False), ("nowhere_in xyz missing", False), ("nowhere_in xyz empty", False),
                    ("nowhere_in '' log", False), ("nowhere_in xyz", False), ("nowhere_in 'one?secret' log", True), ("nowhere_in -x log", False),
                    ("nowhere_in -E 'one.secret=[a-c]+' log", False), ("nowhere_in -vE 'secret|x' log", True), ("nowhere_in -v secret log", False),
                    ("nowhere_in -E '(' log", False), ("says_without xyz cat log", True), ("says_without abc cat log", False),
                    ("says_without xyz cat missing", False), ("says_without xyz true", False)):
                with self.subTest(command):
                    done = subprocess.run(["bash", "-c", f"source {HERE}/lib.sh; cd {folder}; {command}"], stderr=subprocess.DEVNULL,
                                          env={**os.environ, "MUSTER_BUILD": "/nonexistent"}, check=False)
                    self.assertEqual(done.returncode == 0, good)

    def test_no_script_says_it_otherwise(self):
        for path in HERE.glob("*.sh"):
            self.assertNotRegex(path.read_text(), r'check "[^"]*" sh -c "! (grep|\$muster (spec|plan|status|node) [a-z]+ \|)', path.name)


if __name__ == "__main__":
    unittest.main()
