"""Tests of what runs used: how it is read from a controller's database, recorded, and held against the heads. tests/e2e/ledger_test.py runs
them with its own."""
import json
import sqlite3
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

from . import used
from .repository import LedgerTest

ROOT = Path(__file__).resolve().parents[3]
SPEC = """cluster: try
images:
  cpu: { recipe: debian-12-metal, kernel: full, bake: [ base, ssh,
    motd ] }
  # spare: { recipe: debian-12 }
  spare: { recipe: debian-13, bake: [ hpc ] }
  block:
    recipe: ubuntu-24.04
    bake:
      - mpi
      - storage-local
nodes:
  - { name: n1, power: { driver: redfish } }
  - { name: n2, power: { driver: sakura-phy } }   # driver: manual
storage:
  s: { engine: nfs, disks: d }
"""
NOTHING = {"drivers": [], "engines": [], "images": [], "modules": [], "playbooks": []}


def record(**kinds):
    return {**NOTHING, **kinds}


def steps(*names_and_modules):
    return [{"id": name, "module": module, **({"verify": {"module": "probe"}} if module == "sshd" else {})} for name, module in names_and_modules]


class Database(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)

    def fill(self, ran):
        with closing(sqlite3.connect(self.state / "muster.db")) as database:
            database.executescript((ROOT / "schema/current.sql").read_text())
            plans = {"one": (1, steps(("base/name", "hostname"), ("ssh/harden", "sshd"), ("motd/words", "file"), ("mpi/never ran", "mount"),
                                      ("lab/cpu", "accept"), ("muster/slot", "slot"))),
                     "two": (2, steps(("acs/off", "acs")))}
            for digest, (revision, listed) in plans.items():
                plan = {"actions": [{"id": "n1/configure", "kind": "steps", "params": {"steps": listed}}, {"id": "n1/boot"}]}
                database.execute("insert into plan values (?, 'install', ?, 0, ?)", (digest, revision, json.dumps(plan)))
            database.execute("insert into spec values (1, 0, ?, '', '', '')", (SPEC,))
            database.execute("insert into spec values (2, 0, ?, '', '', '')", (SPEC.replace("redfish", "ipmi"),))
            for number, digest in enumerate(ran, 1):
                database.execute("insert into run values (?, ?, 'done', 0, 0, '')", (number, digest))
                for step in (s["id"] for s in plans[digest][1] if "never" not in s["id"]):
                    database.execute("insert into journal (run, action, node, attempt, event, time, data) values (?, 'n1/configure', 'n1', 1, "
                                     "'step', 0, ?)", (number, json.dumps({"step": step, "status": "applied"})))
            database.commit()

    def test_what_ran_of_the_plans_and_what_the_specs_of_these_say(self):
        self.fill(["one", "one"])
        for image in ("cpu", "block"):
            (self.state / "images" / image / "current").mkdir(parents=True)
        layer = {"name": "gpu-vendor", "steps": steps(("gpu-vendor/archive", "apt_repository"), ("gpu-vendor/x", "sshd"))}
        (self.state / "images/cpu/current/build.json").write_text(json.dumps({"inputs": {"layers": [layer]}}))
        self.assertEqual(used.of_state(ROOT, self.state), {
            "drivers": ["redfish", "sakura-phy"], "engines": ["nfs"], "images": ["debian-12", "debian-12-metal", "ubuntu-24.04"],
            "modules": ["accept", "apt_repository", "file", "hostname", "probe", "slot", "sshd"],
            "playbooks": ["acceptance/lab", "base", "mpi", "ssh", "storage-local"]})

    def test_an_image_that_was_not_built_is_not_used(self):
        self.fill(["two"])
        self.assertEqual(used.of_state(ROOT, self.state), record(drivers=["ipmi", "sakura-phy"], engines=["nfs"], modules=["acs"], playbooks=["acs"]))

    def test_where_nothing_ran_there_is_no_record(self):
        self.assertIsNone(used.of_state(ROOT, self.state))
        self.fill([])
        self.assertIsNone(used.of_state(ROOT, self.state))

    def test_several_controllers_of_one_test_are_one_record(self):
        self.assertIsNone(used.merged([]))
        self.assertEqual(used.merged([record(drivers=["ssh"], images=["b"]), record(drivers=["ipmi"], images=["b"])]),
                         record(drivers=["ipmi", "ssh"], images=["b"]))

    def test_every_step_module_of_this_tree_has_its_file(self):
        files = [str(path.relative_to(ROOT)) for path in (ROOT / "agent").rglob("*.cc")]
        self.assertEqual(set(used._modules(ROOT, files)), set(json.loads((ROOT / "schema/modules.json").read_text())))


class Heads(LedgerTest):
    """beta stands on playbooks/mpi.yaml, and says nothing more."""

    def setUp(self):
        super().setUp()
        self.repo.write("agent/raid.cc", "StepModule raid_module() {\n")
        self.repo.write("agent/files/line.cc", "StepModule line_module() {\n")
        self.repo.write("images/debian-12.yaml", "suite: bookworm\n")
        self.repo.write("tests/e2e/short.sh", "#!/usr/bin/env bash\n# short\n# stands on: images playbooks/base.yaml\neval \"${DO:-true}\"\n")
        self.again("with modules")

    def again(self, what):
        self.repo.ledger("table", "--write")
        self.repo.commit(what)
        self.repo.build()

    def runs(self, name, **kinds):
        """A pass of a test whose controller used this."""
        return self.repo.passes(name, DO=f"""echo '{json.dumps({"used": record(**kinds)})}' >>"$MUSTER_E2E_USED" """)

    def test_a_line_has_what_was_used_and_lines_without_it_stay_as_they_are(self):
        self.repo.passes("alpha")
        self.repo.passes("beta", DO="echo '{\"used\":' >>$MUSTER_E2E_USED")   # cut off
        self.runs("beta", playbooks=["mpi"])
        self.repo.passes("beta", DO="for d in ssh ipmi; do echo '%s' | sed s/D/$d/; done >$MUSTER_E2E_USED" % json.dumps({"used": record(drivers=["D"])}))
        self.assertEqual([json.loads(row).get("used") for row in self.repo.rows()],
                         [None, None, record(playbooks=["mpi"]), record(drivers=["ipmi", "ssh"])])
        self.assertNotIn("seal", self.repo.check()[1].replace("lines and seals", ""))

    def test_what_a_head_lacks(self):
        self.assertIn("note  tests/e2e/beta.sh: its run used playbook base, and", self.runs("beta", playbooks=["base", "mpi"]))
        self.wrong("beta.sh: its run used playbook base, and it does not stand on playbooks/base.yaml")
        self.repo.edit("tests/e2e/beta.sh", "stands on: playbooks/mpi.yaml", "stands on: playbooks/{base,mpi}.yaml")
        self.fine()
        self.runs("beta", playbooks=["mpi"], drivers=["redfish"], engines=["nfs"])
        self.repo.git("checkout", "-q", "tests/e2e/beta.sh")
        self.assertIn('"dirty"', self.repo.rows()[-1])
        self.runs("beta", playbooks=["mpi"], drivers=["redfish"], engines=["nfs"])
        self.wrong("used driver redfish, and it does not stand on controller/power/redfish.cc", "used engine nfs, and it does not stand on",
                   "agent/storage/nfs.cc")

    def test_images_and_modules_are_lacking_unless_short_used_them(self):
        self.runs("beta", playbooks=["mpi"], modules=["line", "raid"], images=["debian-12"])
        self.fine()   # it is not known what short uses
        self.runs("short", playbooks=["base"], modules=["raid"], images=["debian-12"])
        self.wrong("used module line, and it does not stand on agent/files/line.cc")
        self.assertNotIn("raid", self.repo.check()[1])
        self.repo.edit("tests/e2e/beta.sh", "playbooks/mpi.yaml", "playbooks/mpi.yaml agent/files")
        self.fine()

    def test_what_a_head_has_too_much(self):
        self.repo.edit("tests/e2e/beta.sh", "playbooks/mpi.yaml", "playbooks/{base,mpi}.yaml agent agent/raid* images/* controller/power/redfish*")
        self.again("more in the head")
        said = self.runs("beta", playbooks=["mpi"], modules=["line"])
        self.assertIn("stands on agent/raid* (module raid), which its run did not use", said)
        self.wrong("stands on playbooks/base.yaml (playbook base)", "agent/raid*", "images/*", "controller/power/redfish* (driver redfish)")
        self.assertNotIn("stands on agent (", said)   # a folder with something in it that was used
        self.repo.edit("tests/e2e/beta.sh", "{base,mpi}.yaml agent agent/raid* images/*",
                       "mpi.yaml agent\n# beside the record: playbooks/base.yaml images/debian-12.yaml\n# stands on: agent/answer.cc")
        self.repo.edit("tests/e2e/beta.sh", " controller/power/redfish*", "")
        self.fine()
        self.repo.edit("playbooks/base.yaml", "base", "basis")
        self.repo.commit("what stands beside the record ages it too")
        self.assertEqual(self.repo.state("beta")["state"], "old")

    def test_what_the_spec_has_is_not_too_much(self):
        writes = f"echo '{json.dumps({'used': record(playbooks=['base'])})}' >>\"$MUSTER_E2E_USED\"\n"
        self.repo.edit("tests/e2e/alpha.sh", "cat >/dev/null", writes + "cat >/dev/null")
        self.again("alpha's controller")
        self.repo.passes("alpha")
        self.assertIn('"used"', self.repo.rows()[-1])
        self.fine()

    def test_a_pass_that_is_old_judges_no_head(self):
        self.runs("beta", playbooks=["base"])
        self.wrong("beta.sh: its run used playbook base", "stands on playbooks/mpi.yaml (playbook mpi), which its run did not use")
        self.repo.edit("playbooks/mpi.yaml", "playbook: mpi", "playbook: mpich")
        self.repo.commit("a change")
        self.fine()
        self.repo.build()
        self.repo.passes("beta")   # without a record
        self.fine()
