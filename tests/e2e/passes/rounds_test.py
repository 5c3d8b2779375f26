"""Tests of rounds: the estimate, how one goes on, what a test that failed leaves behind. tests/e2e/ledger_test.py runs them with its own."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

from . import labs, rounds, tree as trees
from .repository import LedgerTest

HERE = Path(__file__).resolve().parents[1]
WAITS = "trap 'echo cleaned; exit 130' INT TERM; echo ready; until read -r -t 1 word; do :; done"


class Estimates(unittest.TestCase):
    def test_durations(self):
        for seconds, words in ((0, "0 s"), (119.6, "120 s"), (120, "2 min"), (3569, "59 min"), (3571, "1 h 0 min"), (33000, "9 h 10 min")):
            self.assertEqual(rounds.duration(seconds), words)

    def test_the_newest_seconds_count_and_the_median_where_there_are_none(self):
        usual = labs.usual("axc", [{"name": name, "seconds": seconds} for name, seconds in (("a", 9), ("b", 300), ("c", 400), ("a", 253))],
                           lambda _: None)
        one = rounds.Round(["a", "x", "c"], usual, None, proves=lambda name: f"what {name} proves")
        self.assertEqual(one.heading(0), "==> 1 of 3: a, usually 253 s; about 16 min left\n    what a proves")
        self.assertEqual(one.heading(1), "==> 2 of 3: x, never passed, taken for 300 s; about 12 min left\n    what x proves")
        self.assertEqual(rounds.Round(["x"], {}, None).heading(0), "==> 1 of 1: x, never passed, taken for 300 s; about 5 min left")

    def test_what_was_done_is_not_reckoned_with(self):
        memory = rounds.Memory()
        memory.add("b", {"result": "ok", "seconds": 1, "logs": ""})
        self.assertEqual(rounds.Round(["a", "b", "c"], {"a": 10, "b": 1000, "c": 20}, None, memory).left(0), 30)

    def test_a_file_that_is_none_of_ours_is_no_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.json"
            for text in ("", "[1]", '{"tree": 1}', '{"tree": {}, "done": {"a": 1}}', '{"tree": {}, "done": {"a": {}}}'):
                path.write_text(text)
                memory = rounds.Memory(path)
                memory.load(lambda _: True)
                self.assertEqual(memory.done, {}, text)


class Rounds(LedgerTest):
    def run_all(self, *arguments, **variables):
        return self.repo.command("bash", "tests/e2e/run.sh", "all", *arguments, **variables)

    def state(self):
        path = self.repo.root / "build/e2e-all.json"
        return json.loads(path.read_text())["done"] if path.is_file() else None

    def remember(self, head, **done):
        state = {"tree": {"head": head, "programs": trees.programs_digest(self.repo.root / "build")}, "done": done}
        self.repo.write("build/e2e-all.json", json.dumps(state))

    def test_one_table_at_the_end_and_the_logs_of_what_failed(self):
        done = self.run_all(DO="echo words; echo last words >&2; exit 3")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("==> 1 of 2: alpha, never passed, taken for 300 s; about 10 min left\n    alpha proves a\n", done.stdout)
        logs, = (self.repo.root / "build/logs").iterdir()
        self.assertIn("words\nlast words\n", (logs / "output.log").read_text())
        self.assertRegex(done.stdout, rf"words\nlast words\nFAIL  beta \(\d+ s\): {logs}\n")
        self.assertTrue(logs.name.startswith("muster-e2e-beta."))
        self.assertRegex(done.stdout, rf"\ntest   result  seconds  usual  where its logs are\nalpha  ok +\d+\nbeta   FAILED +\d+ +{logs}\n"
                                      r"1 passed, 1 failed\n$")
        self.assertIsNone(self.state(), "all were run: the next call starts over")
        done = self.run_all(DO="exit 77")
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stdout, r"\nalpha  ok +\d+ +\d+\nbeta   left out +\d+\n1 left out\n1 passed, 0 failed\n$")

    def test_stopped_it_ends_with_the_table_and_goes_on_there(self):
        with subprocess.Popen(["bash", "tests/e2e/run.sh", "all"], cwd=self.repo.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=self.obey,
                              env={**os.environ, "DO": WAITS, "MUSTER_E2E_LOGS": str(self.repo.root / "build")}) as child:
            said = ""
            while "ready\n" not in said:
                line = child.stdout.readline()
                self.assertTrue(line, said)
                said += line
            os.killpg(child.pid, signal.SIGINT)   # as a terminal does: everyone gets it
            said += child.stdout.read()
            self.assertEqual(child.wait(), 130, said)
        self.assertRegex(said, r"cleaned\n(?s:.*)stop  beta (?s:.*)\nalpha  ok (?s:.*)\nbeta   stopped (?s:.*)\n1 passed, 0 failed\n$")
        self.assertEqual(list(self.state()), ["alpha"])
        done = self.run_all()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 of 2 were run before on this tree", done.stdout)
        self.assertNotIn("==> 1 of 2", done.stdout)
        self.assertRegex(done.stdout, r"(?s)==> 2 of 2: beta, .*\nalpha  ok before .*\nbeta   ok .*\n2 passed, 0 failed\n$")
        self.assertIsNone(self.state())

    @staticmethod
    def obey():
        for number in rounds.STOPS:
            signal.signal(number, signal.SIG_DFL)

    def test_it_goes_on_only_with_the_same_programs_and_commit_but_for_the_ledger(self):
        alpha = {"alpha": {"result": "ok", "seconds": 7, "logs": ""}}
        begun = self.repo.git("rev-parse", "HEAD")
        self.repo.passes("beta")
        self.repo.commit("the ledger")
        self.remember(begun, **alpha)
        self.assertIn("were run before", self.run_all().stdout)
        self.remember(begun, **alpha)
        self.assertNotIn("were run before", self.run_all("--again").stdout)
        self.repo.edit("agent/answer.cc", "42", "43")
        self.repo.commit("code")
        self.remember(begun, **alpha)
        self.assertNotIn("were run before", self.run_all().stdout)
        self.remember(self.repo.git("rev-parse", "HEAD"), **alpha)
        self.repo.build("0.2.0")
        self.assertNotIn("were run before", self.run_all().stdout)

    def test_other_words_behind_all_are_none(self):
        for words in (("alpha",), ("--again", "alpha"), ("--anew",)):
            self.assertEqual(self.run_all(*words).returncode, 2)
        self.assertEqual(self.repo.rows(), [])


class KeptLogs(unittest.TestCase):
    """lib.sh; no lab, no program of muster."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def ends(self, how, **variables):
        work = self.folder / "work"
        state = work / "lab/state"
        for path in ("lab/musterd.log", "lab/cluster.yaml", "lab/nodes/n1/console.log", "lab/nodes/n1/os.img", "lab/state/consoles/n1.log",
                     "lab/state/images/cpu/frames.zst", "report/report.json", "report-2/report.json", "up.log", "cluster.yaml"):
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(path + "\n")
        (work / "lab/serve.log").write_text("")
        database = sqlite3.connect(state / "muster.db")
        database.execute("create table t (a)")
        database.close()
        done = subprocess.run(["bash", "-c", f"source {HERE}/lib.sh; {how}"], capture_output=True, text=True, check=False,
                              env={**os.environ, "MUSTER_BUILD": "/nonexistent", "kept_work": str(work), **variables})
        self.assertFalse(work.exists())
        return done

    def test_a_test_that_failed_leaves_one_folder_and_names_it(self):
        done = self.ends("die no")
        logs = Path(f"{self.folder}/work-logs")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-1], f"--- kept: {logs}")
        self.assertEqual(sorted(path.name for path in logs.iterdir()),
                         ["cluster.yaml", "muster.db", "musterd.log", "n1-console-of-bmc.log", "n1-console.log", "report-2.json", "report.json",
                          "up.log"])
        self.assertEqual((logs / "n1-console.log").read_text(), "lab/nodes/n1/console.log\n")
        self.assertEqual((logs / "cluster.yaml").read_text(), "cluster.yaml\n")
        with sqlite3.connect(logs / "muster.db") as database:
            self.assertEqual(database.execute("select count(*) from t").fetchone(), (0,))
        database.close()
        other = self.folder / "other"
        self.assertIn(f"--- kept: {other}", self.ends("exit 130", MUSTER_E2E_LOGS=str(other)).stderr)
        self.assertTrue((other / "n1-console.log").is_file())

    def test_what_passed_or_was_left_out_leaves_nothing(self):
        for how in ("true", "exit 77"):
            self.assertNotIn("kept", self.ends(how).stderr)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_was_used_is_written_for_the_ledger(self):
        path = self.folder / "used"
        self.assertEqual(self.ends("true", MUSTER_E2E_USED=str(path)).returncode, 0)
        self.assertTrue(path.is_file())
