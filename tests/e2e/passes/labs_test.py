"""Tests of labs that end-to-end tests share: what a round does with one, what the ledger says of it, and lib.sh's part, over a program in
muster's place. tests/e2e/ledger_test.py runs them with its own."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

from . import labs, lines, rounds, tree as trees
from .repository import LedgerTest

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
HEAD = "#!/usr/bin/env bash\n# {0} proves\n# stands on: README.md\nname={0}\n"
# What a test does with its lab; DO_NAME is what else it does.
PAIR = """# members: delta beta
# stands on: playbooks/mpi.yaml
lab=${MUSTER_E2E_SHARED_LAB:-build/alone}/lab
[[ -d $lab ]] && how=reset || how=up
mkdir -p "$lab"
echo "$name $how${MUSTER_E2E_LAB_STAYS:+ stays}" >>build/said
paid=true; [[ $how == up ]] || paid=false
echo "{\\"lab\\":{\\"name\\":\\"pair\\",\\"bring_up\\":100,\\"paid\\":$paid}}" >>"$MUSTER_E2E_USED"
do=DO_$name
eval "${!do:-true}" || { rm -r "$lab"; echo "$name down" >>build/said; exit 1; }
[[ -n ${MUSTER_E2E_LAB_STAYS:-} ]] || { rm -r "$lab"; echo "$name down" >>build/said; }
"""
MUSTER = """#!/bin/sh
if [ "$1 $2" = "lab down" ]; then echo "round down" >>build/said; rm -r "$MUSTER_LAB_DIR"; exit; fi
echo 'muster %s'
"""


class Orders(unittest.TestCase):
    LABS = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y"}

    def test_members_stand_together_where_the_first_was_in_the_order_of_the_labs_file(self):
        order = {"x": ["c", "b", "a"], "y": ["d", "e"]}
        self.assertEqual(labs.ordered("1a2d3bec", self.LABS.get, order.get), list("1cba2de3"))
        self.assertEqual(labs.ordered("ba", self.LABS.get, order.get), list("ba"))
        self.assertEqual(labs.ordered("", self.LABS.get, order.get), [])
        self.assertEqual(labs.ordered("1cba", self.LABS.get, {"x": ["b"]}.get), list("1bca"))   # one that the file lacks is not lost

    def test_a_bring_up_is_reckoned_with_once_for_tests_that_share_it(self):
        def line(name, seconds, lab=None, paid=True):
            return {"name": name, "seconds": seconds, **({"lab": {"name": lab, "bring_up": 200, "paid": paid}} if lab else {})}

        known = [line("a", 250, "x"), line("b", 60, "x", False), line("1", 9), line("d", 70)]
        self.assertEqual(labs.usual("ab1d", known, self.LABS.get), {"a": 250, "b": 60, "1": 9, "d": 70})
        self.assertEqual(labs.usual("ba", known, self.LABS.get), {"a": 50, "b": 260, "1": 9, "d": 70})
        self.assertEqual(labs.usual("a1b", known, self.LABS.get)["b"], 260)
        self.assertEqual(labs.usual("cb", [*known, line("c", 400)], self.LABS.get)["c"], 400)   # a line of before there were such labs

    def test_what_a_line_says_of_a_lab(self):
        good = {"name": "x", "bring_up": 0, "paid": False}
        self.assertTrue(lines.FIELDS["lab"](good))
        for bad in (None, {}, {**good, "paid": 0}, {**good, "bring_up": -1}, {**good, "bring_up": 1.5}, {**good, "name": ""}, {**good, "more": 1}):
            self.assertFalse(lines.FIELDS["lab"](bad), bad)


class Shares(LedgerTest):
    """beta, delta and gamma; the lab `pair` has the first two, delta first."""

    def setUp(self):
        super().setUp()
        for name in ("beta", "delta"):
            self.repo.write(f"tests/e2e/{name}.sh", HEAD.format(name) + "source tests/e2e/labs/pair.sh\n")
        self.repo.write("tests/e2e/gamma.sh", HEAD.format("gamma") + "echo gamma >>build/said\n")
        self.repo.write("tests/e2e/labs/pair.sh", PAIR)
        self.again("a shared lab")

    def again(self, what):
        self.repo.ledger("table", "--write")
        self.repo.commit(what)
        self.build()

    def build(self):
        self.repo.build()
        version = f"0.1.0+20260102.030405.g{self.repo.git('rev-parse', '--short', 'HEAD')}"
        self.repo.write("build/muster", MUSTER % version)

    def rounds(self, *names, **variables):
        (self.repo.root / "build/said").write_text("")
        done = self.repo.command("bash", "tests/e2e/run.sh", *names, TMPDIR=str(self.repo.root / "build"), **variables)
        return done, (self.repo.root / "build/said").read_text().splitlines()

    def labs(self):
        return [(line["name"], line.get("lab")) for line in map(json.loads, self.repo.rows())]

    def lab(self, paid):
        return {"name": "pair", "bring_up": 100, "paid": paid}

    def test_the_first_brings_it_up_the_next_resets_it_and_the_last_takes_it_down(self):
        done, said = self.rounds("gamma", "beta", "delta")
        self.assertEqual((done.returncode, said), (0, ["gamma", "delta up stays", "beta reset", "beta down"]), done.stdout + done.stderr)
        self.assertEqual(self.labs(), [("gamma", None), ("delta", self.lab(True)), ("beta", self.lab(False))])
        page = (self.repo.root / trees.PAGE).read_text()
        self.assertIn(", lab pair up in 100 s |", page)
        self.assertIn(", lab pair kept: 100 s |", page)
        self.fine()

    def test_alone_each_has_its_own(self):
        for name in ("beta", "delta"):
            self.assertEqual(self.rounds(name, MUSTER_E2E_SHARED_LAB="build/of-another-call", MUSTER_E2E_LAB_STAYS="yes")[1],
                             [f"{name} up", f"{name} down"])
        self.assertEqual(self.labs(), [("beta", self.lab(True)), ("delta", self.lab(True))])
        self.repo.passes("beta")
        self.fine()

    def test_stale_and_all_share_it_too(self):
        self.assertEqual(self.rounds("stale")[1], ["delta up stays", "beta reset", "beta down", "gamma"])
        self.assertEqual(self.rounds("all")[1], ["delta up stays", "beta reset", "beta down", "gamma"])

    def test_all_goes_on_without_the_members_that_ran(self):
        tree = {"head": self.repo.git("rev-parse", "HEAD"), "programs": trees.programs_digest(self.repo.root / "build")}
        entry = {"result": "ok", "seconds": 7, "logs": ""}
        self.repo.write("build/e2e-all.json", json.dumps({"tree": tree, "done": {"delta": entry}}))
        self.assertEqual(self.rounds("all")[1], ["beta up", "beta down", "gamma"])

    def test_after_a_member_that_failed_the_next_brings_up_its_own(self):
        for fails, words in (("false", ["delta down"]), ("kill -9 $$", ["round down"])):   # by itself, or by the round where it cannot
            done, said = self.rounds("beta", "delta", DO_delta=fails)
            self.assertEqual((done.returncode, said), (1, ["delta up stays", *words, "beta up", "beta down"]), done.stdout + done.stderr)
        self.assertEqual(self.labs(), [("beta", self.lab(True))] * 2)
        self.assertEqual(list((self.repo.root / "build").glob("muster-e2e.*")), [])

    def test_after_a_build_or_a_commit_the_next_brings_up_its_own(self):
        for do in ("echo >>build/musterd", "git commit -q --allow-empty -m next"):
            done, said = self.rounds("beta", "delta", DO_delta=do)
            self.assertEqual((done.returncode, said), (0, ["delta up stays", "round down", "beta up", "beta down"]), done.stdout + done.stderr)
            self.assertEqual(list((self.repo.root / "build").glob("muster-e2e.*")), [])

    def test_a_lab_that_is_to_stay_up_after_a_failure_is_nobody_elses(self):
        kept = "export MUSTER_E2E_SHARED_LAB; echo $MUSTER_E2E_SHARED_LAB >build/where; exit 1"
        _, said = self.rounds("beta", "delta", DO_delta=kept, MUSTER_E2E_KEEP="yes")
        self.assertEqual(said, ["delta up stays", "beta up", "beta down"])
        where = Path((self.repo.root / "build/where").read_text().strip())
        self.assertTrue((where / "lab").is_dir())
        shutil.rmtree(where)

    def test_stopped_it_is_down(self):
        waits = "trap 'rm -r $lab; echo cleaned >>build/said; exit 130' INT TERM; echo ready; until read -r -t 1 word; do :; done"
        for number, do, words in ((signal.SIGINT, waits, ["cleaned"]), (signal.SIGTERM, waits, ["cleaned"]),
                                  (signal.SIGTERM, waits.replace("exit 130", "exit 0").replace("rm -r $lab;", ""), ["cleaned", "round down"])):
            (self.repo.root / "build/said").write_text("")
            with subprocess.Popen(["bash", "tests/e2e/run.sh", "beta", "delta"], cwd=self.repo.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=self.obey,
                                  env={**os.environ, "DO_delta": do, "MUSTER_E2E_LOGS": str(self.repo.root / "build"),
                                       "TMPDIR": str(self.repo.root / "build")}) as child:
                said = ""
                while "ready\n" not in said:
                    line = child.stdout.readline()
                    self.assertTrue(line, said)
                    said += line
                (os.killpg if number == signal.SIGINT else os.kill)(child.pid, number)   # a terminal's goes to everyone
                child.stdout.read()
                self.assertEqual(child.wait(), 128 + number)
            self.assertEqual((self.repo.root / "build/said").read_text().splitlines(), ["delta up stays", *words])
            self.assertEqual(list((self.repo.root / "build").glob("muster-e2e.*")), [])

    @staticmethod
    def obey():
        for number in rounds.STOPS:
            signal.signal(number, signal.SIG_DFL)

    def test_the_labs_file_is_part_of_its_members(self):
        self.rounds("beta", "delta", "gamma")
        self.repo.commit("the ledger")
        self.repo.edit("tests/e2e/labs/pair.sh", "build/alone", "build/by-itself")
        self.repo.commit("the lab's file")
        for name, state in (("beta", "old"), ("delta", "old"), ("gamma", "passed")):
            found = self.repo.state(name)
            self.assertEqual((found["state"], found["changed"]), (state, ["tests/e2e/labs/pair.sh"] if state == "old" else []))
        self.build()
        self.assertIn("changed while it ran", self.repo.passes("beta", DO_beta="echo >>tests/e2e/labs/pair.sh"))
        self.repo.git("checkout", "-q", "tests")
        self.rounds("beta", "delta")
        self.repo.commit("the ledger")
        self.repo.edit("playbooks/mpi.yaml", "mpi", "mpich")
        self.repo.commit("what the lab's file stands on")
        self.assertEqual(self.repo.state("beta")["changed"], ["playbooks/mpi.yaml"])
        self.repo.git("mv", "tests/e2e/labs/pair.sh", "tests/e2e/labs/two.sh")
        for name in ("beta", "delta"):
            self.repo.edit(f"tests/e2e/{name}.sh", "labs/pair.sh", "labs/two.sh")
        self.again("another name")
        self.fine()   # lines of before stand as they were

    def test_what_a_lab_uses_has_to_be_named_by_its_file_or_by_the_member_and_may_be_used_by_another(self):
        self.repo.edit("tests/e2e/labs/pair.sh", "lab=${", "# name: x, playbooks: [ base, mpi ]\nlab=${")
        self.fine()   # a comment
        self.repo.edit("tests/e2e/labs/pair.sh", "# name: x, playbooks: [ base, mpi ]\n", ": '[ base, mpi ]'\n")
        self.wrong("beta.sh: its spec uses playbook base, and it does not stand on playbooks/base.yaml")
        self.repo.edit("tests/e2e/labs/pair.sh", "playbooks/mpi.yaml", "playbooks/{base,mpi}.yaml")
        self.again("named")
        used = json.dumps({"used": {**dict.fromkeys(lines.USED, []), "playbooks": ["base"]}})
        self.repo.passes("beta", DO_beta=f"""echo '{used}' >>"$MUSTER_E2E_USED" """)
        self.fine()

    def test_a_lab_and_its_members_name_one_another(self):
        self.repo.edit("tests/e2e/labs/pair.sh", "members: delta beta", "members: delta gamma")
        self.wrong("labs/pair.sh: beta.sh sources it, and is not among", "labs/pair.sh: its member gamma does not source it")
        self.repo.edit("tests/e2e/gamma.sh", "echo gamma", "source tests/e2e/labs/no.sh\necho gamma")
        self.wrong("gamma.sh: there is no tests/e2e/labs/no.sh")


class OfThisTree(unittest.TestCase):
    def test_every_labs_file_has_its_two_functions_and_each_member_calls_it(self):
        for path in (HERE / "labs").glob("*.sh"):
            for name in labs.members(path.read_text()):
                with self.subTest(name):
                    script = (HERE / f"{name}.sh").read_text()
                    self.assertIn(f"\nshared_lab {path.stem}\n", script)
                    self.assertNotRegex(script, r"(?m)^ *(lab_up|\$muster lab (up|down))")
            said = subprocess.run(["bash", "-c", f"source {HERE}/lib.sh; source {path}; lab_machines; declare -F lab_reset >/dev/null"],
                                  env={**os.environ, "MUSTER_BUILD": "/nonexistent"}, capture_output=True, text=True, check=False)
            self.assertEqual((said.returncode, "cluster: " in said.stdout), (0, True), said.stderr)


# `up` is a run; machines are accepted unless $BAD is set.
PROGRAM = r"""#!/bin/bash
echo "$*" | sed "s#$PWD/##; s#[^ ]*/\([a-z-]*\)\.yaml#\1#; s# --report .*##" >>"$CALLS"
state=$MUSTER_LAB_DIR/state
case "$*" in
  "lab up "*) mkdir -p "$state"; [ -e "$state/muster.db" ] || sqlite3 "$state/muster.db" "create table run (id integer)" ;;
  "lab down") rm -rf "$MUSTER_LAB_DIR" ;;
  "lab status --json") echo "${FAULTS:-{\"nodes\":[]\}}" ;;
  "status --json") echo "{\"nodes\":[{\"declared\":true,\"state\":\"${STATE:-accepted}\"},{\"declared\":false,\"state\":\"installing\"}]}" ;;
  "up "*) sqlite3 "$state/muster.db" "insert into run select coalesce(max(id), 0) + 1 from run"; exit ${UP:-0} ;;
esac
"""


class Library(unittest.TestCase):
    """shared_lab of lib.sh."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "muster").write_text(PROGRAM)
        (self.folder / "muster").chmod(0o755)
        self.lab = self.folder / "shared"
        self.lab.mkdir()

    def runs(self, what="true", **variables):
        for name in ("calls", "used"):
            (self.folder / name).write_text("")
        script = (f"source {HERE}/lib.sh; lab_machines() {{ echo; }}; lab_reset() {{ echo reset >>$CALLS; }}; "
                  f"echo >$work/cluster.yaml; shared_lab pair; {what}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env={
            **os.environ, "MUSTER_BUILD": str(self.folder), "CALLS": str(self.folder / "calls"), "MUSTER_E2E_USED": str(self.folder / "used"),
            "MUSTER_E2E_LOGS": str(self.folder / "logs"), **variables})
        rows = [json.loads(row) for row in (self.folder / "used").read_text().splitlines()]
        calls = [call for call in (self.folder / "calls").read_text().splitlines() if "status" not in call]
        return done, calls, [row["lab"] for row in rows if "lab" in row]

    def shared(self, stays="yes", **variables):
        return {"MUSTER_E2E_SHARED_LAB": str(self.lab), "MUSTER_E2E_LAB_STAYS": stays, **variables}

    def test_brought_up_left_reset_and_taken_down(self):
        done, calls, said = self.runs("echo $MUSTER_LAB_SSH_OPTIONS", **self.shared())
        self.assertEqual((done.returncode, calls), (0, ["lab up machines", "up cluster --yes"]), done.stderr)
        self.assertTrue((self.lab / "lab").is_dir())
        # The lab's daemon keeps these options: it logs in to machines when a later test injects a fault.
        self.assertTrue(Path(re.search(r"ControlPath=(\S+)", done.stdout)[1]).parent.is_dir())
        self.assertEqual([(lab["name"], lab["paid"]) for lab in said], [("pair", True)])
        brought_up = said[0]["bring_up"]
        done, calls, said = self.runs("echo before: $lab_before", **self.shared(""))
        self.assertEqual((done.returncode, calls), (0, ["reset", "lab up machines", "up cluster --yes", "lab down"]), done.stderr)
        self.assertRegex(done.stdout, r"before: 1\n")
        self.assertEqual(said, [{"name": "pair", "bring_up": brought_up, "paid": False}])
        self.assertFalse(self.lab.exists())

    def test_alone(self):
        done, calls, said = self.runs()
        self.assertEqual((done.returncode, calls), (0, ["lab up machines", "up cluster --yes", "lab down"]), done.stderr)
        self.assertEqual([lab["paid"] for lab in said], [True])

    def test_every_fault_is_healed(self):
        self.runs(**self.shared())
        faults = {"nodes": [{"name": "n1", "faults": {"net-cut": "60 s", "shape rail0": "8mbit", "slow-drive": "fast1 at 8 B/s"}},
                            {"name": "n2", "faults": {}}]}
        _, calls, _ = self.runs(**self.shared(FAULTS=json.dumps(faults)))
        self.assertEqual(sorted(calls[:3]), ["lab break n1 net-cut --heal", "lab break n1 shape --network rail0 --heal",
                                             "lab break n1 slow-drive fast1 --heal"])
        self.assertEqual(calls[3], "reset")

    def test_one_that_fails_takes_it_down(self):
        for what, variables in (("die no", {}), ("exit 77", {}), ("true", {"UP": "3"}), ("true", {"STATE": "degraded"})):
            for again in (False, True):
                self.lab.mkdir(exist_ok=True)
                if again:
                    self.runs(**self.shared())
                done, calls, _ = self.runs(what, **self.shared(**variables))
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual((calls[-1], self.lab.exists()), ("lab down", False), what)

    def test_a_test_whose_round_was_killed_takes_it_down(self):
        # As `kill -0` says where the parent is gone.
        done, calls, _ = self.runs("kill() { [[ $1 != -0 ]]; }", **self.shared())
        self.assertEqual((done.returncode, calls[-1], self.lab.exists()), (0, "lab down", False))

    def test_what_came_since_is_read_of_the_journal(self):
        state = self.folder / "state"
        state.mkdir()
        with closing(sqlite3.connect(state / "muster.db")) as database:
            database.executescript((ROOT / "schema/current.sql").read_text())
            plan = {"actions": [{"id": "n/boot", "kind": "reboot"}, {"id": "n/conf", "kind": "steps", "params": {"steps": [
                {"id": "base/x", "module": "file"}, {"id": "mpi/x", "module": "mount"}]}}]}
            database.execute("insert into spec values (1, 0, 'power: { driver: redfish }', '', '', '')")
            database.execute("insert into plan values ('plan', 'install', 1, 0, ?)", (json.dumps(plan),))
            for run, step in ((1, "base/x"), (2, "mpi/x")):
                database.execute("insert into run values (?, 'plan', 'done', 0, 0, '')", (run,))
                for time, action, event, data in ((0, "n/boot", "intent", {"boot_before": "a"}),
                                                  (10, "n/boot", "succeeded", {"result": {"boot_id": f"b{run}"}}),
                                                  (10, "n/conf", "intent", {}), (12, "n/conf", "step", {"step": step}), (15, "n/conf", "succeeded", {})):
                    database.execute("insert into journal (run, action, node, attempt, event, time, data) values (?, ?, 'n', 1, ?, ?, ?)",
                                     (run, action, event, (run * 100 + time) * 1000, json.dumps(data)))
            database.commit()
        image = state / "images/cpu" / ("a" * 64)
        image.mkdir(parents=True)
        (image / "build.json").write_text('{"built_at": 5000}')

        def found(*more):
            done = subprocess.run([str(HERE / "ledger.py"), "used", str(state), *more], capture_output=True, text=True, check=True)
            record = json.loads(done.stdout)
            return record["used"]["playbooks"], record["used"]["drivers"], record["spent"], len(record["images"])

        self.assertEqual(found(), (["base", "mpi"], ["redfish"], {"boots": 2, "booting": 20, "steps": 10}, 1))
        self.assertEqual(found("--after", "1"), (["mpi"], ["redfish"], {"boots": 1, "booting": 10, "steps": 5}, 1))
        self.assertEqual(found("--after", "2"), ([], [], {"boots": 0, "booting": 0, "steps": 0}, 1))
