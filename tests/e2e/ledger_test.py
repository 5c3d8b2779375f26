#!/usr/bin/env python3
"""Tests of the ledger of end-to-end passes, over repositories made for them: what is recorded, forged, old, claimed. And of lib.sh's helpers
that say that something is nowhere. No lab; a few minutes. tests/e2e/ledger_test.py [-v] [NAME...]"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from passes import lines, stands_on, tree as trees  # noqa: E402
from passes.images_test import Code, Counts, Folder, Roots  # noqa: E402, F401
from passes.labs_test import Library, OfThisTree, Orders, Shares  # noqa: E402, F401
from passes.repository import LedgerTest  # noqa: E402
from passes.rounds_test import Estimates, KeptLogs, Rounds  # noqa: E402, F401
from passes.spent_test import Journal, Records  # noqa: E402, F401
from passes.texts_test import Claims, Data  # noqa: E402, F401
from passes.used_test import Database, Heads  # noqa: E402, F401

HERE = Path(__file__).resolve().parent


def obey_signals():
    """Under nohup, or in the background of a script, signals are ignored, and no shell below can trap them."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Recording(LedgerTest):
    def test_a_pass_is_recorded_with_commit_script_and_programs_and_the_page_shows_it(self):
        self.fine()
        self.assertIn("recorded: alpha", self.repo.passes("alpha"))
        line = json.loads(self.repo.rows()[0])
        self.assertEqual((line["name"], line["commit"], line["tree"]), ("alpha", self.repo.git("rev-parse", "HEAD"), "clean"))
        self.assertEqual(line["script"], trees.sha256((self.repo.root / "tests/e2e/alpha.sh").read_bytes()))
        self.assertEqual((line["accelerator"], len(line["load"])), ("tcg", 2))
        self.assertIn(f"| `alpha` | {line['date'][:10]} | {line['commit'][:9]} | {line['seconds']} s |  |  |  |  | tcg",
                      (self.repo.root / trees.PAGE).read_text())
        self.assertIn("Never passed: `beta`.", (self.repo.root / trees.PAGE).read_text())
        self.fine()
        # Ledger and table do not make the tree dirty, nor their commit the programs old.
        self.assertIn("tree clean", self.repo.passes("beta"))
        self.repo.commit("the ledger")
        self.assertIn("tree clean", self.repo.passes("beta"))
        self.fine()

    def test_run_sh_records_what_passed_and_nothing_else(self):
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta")
        self.assertEqual((run.returncode, len(self.repo.rows())), (0, 1), run.stdout + run.stderr)
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta", DO="false")
        self.assertEqual((run.returncode, len(self.repo.rows())), (1, 1), run.stdout + run.stderr)
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta", DO="exit 77")
        self.assertEqual((run.returncode, len(self.repo.rows())), (77, 1), "left out: " + run.stdout + run.stderr)
        run = self.repo.command("bash", "tests/e2e/run.sh", "beta", "gamma")
        self.assertEqual((run.returncode, run.stdout), (2, ""), "an unknown name: nothing runs")
        run = self.repo.command("bash", "tests/e2e/run.sh", "stale", "--list")
        self.assertEqual(run.stdout.split(), ["alpha"])

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
        for program in trees.PROGRAMS:
            self.assertIn("changed while it ran", self.repo.passes("beta", DO=f"echo >>build/{program}"))
            self.repo.build()
        self.assertIn("SHORTER", self.repo.passes("beta", SHORTER="1"))
        self.assertEqual(len(self.repo.rows()), 2)

    def test_status_says_what_a_test_needs_that_never_passed(self):
        script = self.repo.root / "tests/e2e/beta.sh"
        head, rest = script.read_text().split("\n", 2)[:2], script.read_text().split("\n", 2)[2]
        self.repo.write("tests/e2e/beta.sh", "\n".join([*head, "# needs: MIRROR, a mirror", rest]))
        script.chmod(0o755)
        self.repo.commit("what it needs")
        self.assertEqual((self.repo.state("beta")["needs"], "needs" in self.repo.state("alpha")), ("MIRROR, a mirror", False))
        self.repo.build()
        self.assertIn("recorded: beta", self.repo.passes("beta"))
        run = self.repo.command("bash", "tests/e2e/run.sh", "status")
        self.assertNotIn("needs MIRROR", run.stdout)
        self.fine()

    def test_no_verb_adds_a_line_without_a_run(self):
        for command in (("begin", "alpha"), ("append", "alpha", "--begun", "{}", "--seconds", "7")):
            self.assertEqual(self.repo.ledger(*command).returncode, 2)
        self.assertEqual(self.repo.rows(), [])

    def test_with_other_programs_in_their_place_it_is_not_recorded(self):
        for name in ("MUSTER_MUSTERD", "MUSTER_POWER_PROGRAMS", "MUSTER_FAKE_GPUS", "BASH_ENV", "LD_LIBRARY_PATH"):
            with self.subTest(name):
                said = self.repo.passes("beta", **{name: "/dev/null"})
                self.assertIn("not recorded: ", said)
                self.assertIn(name, said)
        function = {"BASH_FUNC_false%%": "() { true; }"}
        self.assertIn("not recorded: ", self.repo.passes("beta", DO="false", **function))
        self.assertEqual(self.repo.rows(), [])

    def test_input_and_exit_status_are_those_of_the_test(self):
        command = [sys.executable, "tests/e2e/ledger.py", "run", "beta"]
        for do, status in (("read -r word; [ $word = abc ] && exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
            done = subprocess.run(command, cwd=self.repo.root, env={**os.environ, "DO": do}, input="abc\n", capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(self.repo.rows(), [])

    def test_a_signal_goes_to_the_test_which_ends_in_its_own_way(self):
        # bash runs a trap before and after `read`, but a signal just before the system call leaves it waiting: hence -t.
        do = "trap 'echo cleaned; exit 130' INT TERM HUP; echo ready; until read -r -t 1 word; do :; done"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with subprocess.Popen([sys.executable, "tests/e2e/ledger.py", "run", "beta"], cwd=self.repo.root, env={**os.environ, "DO": do},
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  preexec_fn=obey_signals, start_new_session=True) as child:
                self.assertEqual(child.stdout.readline(), "ready\n")
                child.send_signal(number)
                stuck = threading.Timer(60, os.killpg, (child.pid, signal.SIGKILL))  # the script holds the output open, too
                stuck.start()
                said = child.stdout.read()  # its input stays open: the script waits there for its signal
                status = child.wait()
                stuck.cancel()
                self.assertEqual((said, status), ("cleaned\n", 130))
        self.assertEqual(self.repo.rows(), [])

    def test_the_version_that_cmake_writes_names_the_commit(self):
        if not shutil.which("cmake"):
            self.skipTest("there is no cmake")
        for dirty in (False, True):
            if dirty:
                self.repo.edit("agent/answer.cc", "42", "43")
            made = self.repo.command("cmake", "-D", f"SOURCE={self.repo.root}", "-D", "BASE=0.1.0", "-D", "OUT=build/version.cc",
                                     "-P", str(HERE.parents[1] / "cmake/version.cmake"))
            self.assertEqual(made.returncode, 0, made.stderr)
            version = re.search('kProgramVersion = "(.*)"', (self.repo.root / "build/version.cc").read_text())[1]
            self.repo.build(version)
            found = trees.programs_commit(trees.Tree(self.repo.root), self.repo.root / "build")
            self.assertEqual(found, (self.repo.git("rev-parse", "HEAD"), dirty), version)

    def test_a_line_with_another_digest_of_programs_is_taken_in_and_passes(self):
        self.repo.passes("alpha")
        self.forge(0, programs="0" * 64)
        aside = self.repo.root / "build/aside.jsonl"
        shutil.copy(self.repo.root / trees.LEDGER, aside)
        self.repo.git("checkout", "-q", "tests", "docs")
        self.assertIn("1 lines", self.repo.ledger("merge", str(aside)).stdout)
        self.fine()
        self.assertEqual(self.repo.state("alpha")["state"], "passed")

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
        aside.write_text(re.sub('"cores":[0-9]+', '"cores":4321', aside.read_text()))
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

    def test_a_line_taken_out_long_ago_and_on_a_merged_branch(self):
        first, second = self.repo.rows()
        self.repo.git("checkout", "-q", "-b", "side")
        self.repo.commit("the ledger")
        self.repo.write(trees.LEDGER, f"{first}\n")
        self.repo.ledger("table", "--write")
        self.repo.commit("without it")
        for number in range(3):
            self.repo.write("README.md", f"# Read {number}\n")
            self.repo.commit("more")
        self.wrong("the line beta", "was taken out")
        self.repo.git("checkout", "-q", "main")
        self.repo.write("README.md", "# Main\n")
        self.repo.commit("on main")
        self.repo.git("merge", "-q", "-s", "ours", "-m", "ours", "side")
        self.wrong("the line alpha", "the line beta", "was taken out")
        self.repo.write(trees.LEDGER, f"{first}\n{second}\n")
        self.repo.ledger("table", "--write")
        self.fine()

    def test_after_a_rebase_lines_of_lost_commits_may_be_taken_out_by_a_verb(self):
        self.repo.commit("the ledger")
        self.assertIn("0 lines", self.repo.ledger("drop-strays").stdout)
        self.repo.edit("agent/answer.cc", "42", "43")
        lost = self.repo.commit("to be squashed")
        self.repo.build()
        self.repo.passes("beta")
        self.repo.commit("the ledger, once more")
        self.repo.git("reset", "-q", "--soft", f"{lost}^")
        self.repo.commit("both in one")
        self.repo.write("README.md", "# Read more\n")
        self.repo.commit("and another")
        self.wrong("line 3 (beta", "HEAD does not stand on its commit", "ledger.py drop-strays")
        self.assertIn("1 lines", self.repo.ledger("drop-strays").stdout)
        self.fine()
        self.repo.commit("without the stray")
        self.fine()
        self.assertEqual([json.loads(row)["name"] for row in self.repo.rows()], ["alpha", "beta"])

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
                             ("accelerator", "gpu"), ("programs", "z" * 64), ("more", 1), ("used", {"drivers": []}),
                             ("used", {**dict.fromkeys(lines.USED, []), "drivers": ["b", "a"]}), ("spent", {"boots": 1}),
                             ("spent", {**dict.fromkeys(lines.SPENT, 0), "steps": 1.5}), ("images", {"built": 1}),
                             ("images", {"built": 1, "cached": -1})):
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

    def test_a_path_taken_out_of_the_head_makes_no_old_pass_current(self):
        self.repo.edit("agent/answer.cc", "42", "43")
        self.is_now("old", "agent/answer.cc")
        self.repo.edit("tests/e2e/alpha.sh", "stands on: agent agent/storage/nfs*", "stands on: agent/{old.h,storage/nfs*}")
        self.is_now("old", "agent/answer.cc")
        self.repo.git("rm", "-q", "agent/answer.cc")         # a path that is gone is no part of what it stands on
        self.repo.edit("tests/e2e/alpha.sh", "agent/{old.h,", "{")
        self.repo.edit("tests/e2e/alpha.sh", "{storage/nfs*}", "agent/storage/nfs*")
        self.repo.git("mv", "agent/old.h", "base/old.h")
        self.repo.git("mv", "agent/storage", "base/storage")
        self.repo.edit("tests/e2e/alpha.sh", "agent/storage/nfs*", "base/storage/nfs*")
        self.is_now("passed")

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
        self.wrong("docs/deep/page.md:1: says that `beta` passed: the ledger has no pass of it")
        self.repo.passes("beta")
        self.assertEqual(len([r for r in self.repo.rows() if '"dirty"' in r]), 2)
        self.wrong("says that `alpha` passed")   # the page was not committed when they ran
        self.repo.commit("the page")
        self.repo.build()
        self.repo.passes("alpha")
        self.repo.passes("beta")
        self.fine()
        for page in ("README.md", "CHANGELOG.md"):
            self.repo.write(page, "As shown by `gamma`.\n")
            self.wrong(f"{page}:1: shown by `gamma`: there is no such end-to-end test")
            self.repo.write(page, "# Nothing\n")

    def test_every_page_and_specification_is_read(self):
        for page in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "tests/corpus/README.md", "docs/specs/a.yaml",
                     "playbooks/acceptance/a.yaml"):
            with self.subTest(page):
                (self.repo.root / page).unlink(missing_ok=True)
                self.repo.write(page, "# It is shown\n# by `beta`.\n" if page.endswith("yaml") else "It is shown\nby `beta`.\n")
                self.wrong(f"{page}:1: says that `beta` passed")
                (self.repo.root / page).unlink()

    def test_a_test_that_is_not_there_and_old_claims(self):
        self.repo.write("docs/page.md", "Run `tests/e2e/run.sh alpha beta` or `tests/e2e/run.sh stale --list`, `tests/e2e/run.sh NAME...`.\n")
        self.fine()
        for text in ("`tests/e2e/run.sh gamma`", "It passed on 2026-11-23.", "whole\nin the lab", "`x` has **not passed** yet", "| in the lab |",
                     "Exercised against a double and in the lab.", "in the lab (`alpha`)",
                     "tried on a real DGX H100", "`alpha` passed on b953f06", "All 43 end-to-end tests are green", "`alpha`, `beta` passed"):
            with self.subTest(text):
                self.repo.write("docs/page.md", text + "\n")
                self.wrong("docs/page.md:1: ")

    def test_a_table_that_is_not_the_ledgers(self):
        self.repo.edit("docs/benchmarks.md", "Never passed: ", "Passed: ")
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
