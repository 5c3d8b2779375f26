"""Tests of how runs spent their seconds: how it is read from a controller's journal, recorded and shown. tests/e2e/ledger_test.py runs them
with its own."""
import json
import re
import sqlite3
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

from . import lines, spent, tree as trees
from .repository import LedgerTest

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("netboot", "inventory", "image", "boot_disk", "steps", "check", "boot_slot", "return_slot", "wake", "reboot", "power_off")


def record(boots, booting, steps):
    return {"boots": boots, "booting": booting, "steps": steps}


def intent(before="", with_netboot=False):
    return {"boot_before": before, "with_netboot": with_netboot}


def boot(name):
    return {"result": {"boot_id": name}}


class Journal(unittest.TestCase):
    """Each row: seconds, node, kind of its action, event, data. A plan has one action of each kind for each node."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)

    def fill(self, *runs):
        plan = {"actions": [{"id": f"{node}/{kind}", "kind": kind} for node in ("n1", "n2") for kind in KINDS]}
        with closing(sqlite3.connect(self.state / "muster.db")) as database:
            database.executescript((ROOT / "schema/current.sql").read_text())
            database.execute("insert into plan values ('plan', 'install', 1, 0, ?)", (json.dumps(plan),))
            for number, rows in enumerate(runs, 1):
                database.execute("insert into run values (?, 'plan', 'done', 0, 0, '')", (number,))
                for seconds, node, kind, event, data in rows:
                    database.execute("insert into journal (run, action, node, attempt, event, time, data) values (?, ?, ?, 1, ?, ?, ?)",
                                     (number, kind and f"{node}/{kind}", node, event, 1796142503145 + seconds * 1000, json.dumps(data)))
            database.commit()

    def is_spent(self, boots, booting, steps):
        self.assertEqual(spent.of_state(self.state), record(boots, booting, steps))

    def test_boots_of_two_nodes_overlap_and_the_work_beside_them_does_not_count(self):
        self.fill([(0, "n1", "netboot", "intent", intent()), (2, "n2", "netboot", "intent", intent()),
                   (20, "n1", "netboot", "succeeded", boot("a")),
                   (20, "n1", "inventory", "intent", intent("a")), (21, "n1", "inventory", "started", {}),
                   (25.4, "n1", "inventory", "succeeded", {"result": {"facts": {}}}),
                   (30, "n2", "netboot", "succeeded", boot("b")),
                   (30, "n2", "inventory", "intent", intent("b")), (34.6, "n2", "inventory", "succeeded", {"result": None}),
                   (35, "", "", "ended", {"state": "done"})],
                  [(100, "n1", "boot_disk", "intent", intent("a")), (140, "n1", "boot_disk", "succeeded", boot("c")),
                   (140, "n1", "steps", "intent", intent("c")), (141, "n1", "steps", "step", {"step": "base/x"}),
                   (150, "n1", "steps", "succeeded", {"result": {"boot_id": "of no system"}})])
        self.is_spent(3, 70, 15)

    def test_a_boot_that_failed_and_was_tried_again_is_one(self):
        self.fill([(0, "n1", "netboot", "intent", intent()), (60, "n1", "netboot", "unknown", {"message": "silent"}),
                   (60, "n1", "netboot", "intent", intent()), (90, "n1", "netboot", "succeeded", boot("a")),
                   (90, "n1", "boot_disk", "intent", intent("a")), (100, "n1", "boot_disk", "failed", {"code": "timeout", "result": None}),
                   (105, "n1", "boot_disk", "intent", intent("a")), (120, "n1", "boot_disk", "abandoned", {}),
                   (120, "n1", "", "quarantined", {"reason": "silent"})])
        self.is_spent(1, 115, 0)

    def test_an_attempt_that_begins_with_the_ram_system_is_a_boot_until_its_agent_has_the_order(self):
        self.fill([(0, "n1", "image", "intent", intent("a", with_netboot=True)), (30, "n1", "image", "started", {}),
                   (50, "n1", "image", "succeeded", {"result": {"disk": "x"}}),
                   (50, "n1", "boot_disk", "intent", intent("b", with_netboot=True)), (80, "n1", "boot_disk", "started", {}),
                   (100, "n1", "boot_disk", "succeeded", boot("c"))],
                  [(200, "n1", "image", "intent", intent("c", with_netboot=True)), (210, "n1", "image", "failed", {"result": None})])
        self.is_spent(3, 90, 20)

    def test_to_the_other_slot_and_back_and_machines_that_were_there_already(self):
        self.fill([(0, "n1", "boot_slot", "intent", intent("a")), (10, "n1", "boot_slot", "started", {}),
                   (40, "n1", "boot_slot", "succeeded", {"result": {"boot_id": "b", "slot": "b", "trial": True}}),
                   (40, "n1", "check", "intent", intent("b")), (50, "n1", "check", "failed", {"code": "failed", "result": {"boot_id": "x"}}),
                   (50, "n1", "", "returning", {"reason": "x"}),
                   (50, "n1", "return_slot", "intent", intent("b")), (80, "n1", "return_slot", "succeeded", boot("c")),
                   (80, "n2", "return_slot", "intent", intent("a")),
                   (83, "n2", "return_slot", "succeeded", {"result": {"boot_id": "a", "restarted": False}}),
                   (83, "n2", "netboot", "intent", intent("a")), (84, "n2", "netboot", "succeeded", boot("a")),
                   (84, "n2", "reboot", "intent", intent("a")), (100, "n2", "reboot", "succeeded", boot("d")),
                   (100, "n2", "power_off", "intent", intent("d")), (102, "n2", "power_off", "succeeded", {"result": {}}),
                   (110, "n2", "wake", "intent", intent("d")), (130, "n2", "wake", "succeeded", boot("e"))])
        self.is_spent(4, 30 + 40 + 16 + 20, 10 + 4 + 2)

    def test_an_action_that_never_ended_lasts_until_its_node_left_the_run_or_the_last_row_of_the_run(self):
        self.fill([(0, "n1", "steps", "intent", intent("a")), (0, "n2", "netboot", "intent", intent()),
                   (10, "n2", "", "not_started", {"reason": "cancelled"}), (30, "n1", "steps", "step", {}),
                   (3000, "", "", "ended", {"state": "cancelled"})],   # by the controller's next start
                  [(4000, "n1", "steps", "intent", intent("a"))])
        self.is_spent(0, 10, 20)

    def test_where_nothing_ran_there_is_no_record(self):
        self.assertIsNone(spent.of_state(self.state))
        self.fill()
        self.assertIsNone(spent.of_state(self.state))

    def test_a_run_without_actions_spent_nothing(self):
        self.fill([(0, "", "", "ended", {"state": "done"})])
        self.is_spent(0, 0, 0)

    def test_several_controllers_of_one_test_are_added(self):
        self.assertIsNone(spent.added([]))
        self.assertEqual(spent.added([record(1, 20, 300), record(2, 30, 5)]), record(3, 50, 305))

    def test_the_kinds_of_actions_are_those_of_plans(self):
        known = set(re.findall(r'\{ActionKind::\w+, "(\w+)"\}', (ROOT / "controller/plan/plan.cc").read_text(encoding="utf-8")))
        self.assertLessEqual({*spent.BOOTS, *KINDS}, known)


class Records(LedgerTest):
    def passes(self, *controllers):
        rows = " ".join(f"'{row}'" for row in controllers)
        return self.repo.passes("beta", DO=f"""printf '%s\\n' {rows} >>"$MUSTER_E2E_USED" """)

    def test_a_line_has_what_was_spent_the_page_shows_it_and_lines_without_it_stay_as_they_are(self):
        self.repo.passes("beta")
        used = {**dict.fromkeys(lines.USED, []), "playbooks": ["mpi"]}
        self.passes(json.dumps({"used": used, "spent": record(2, 20, 0)}), json.dumps({"used": used, "spent": record(1, 15, 0)}), '{"used":')
        found = [json.loads(row) for row in self.repo.rows()]
        self.assertEqual([line.get("spent") for line in found], [None, record(3, 35, 0)])
        self.assertEqual(found[1]["used"], used)
        self.assertIn(" s | 3 | 35 s | 0 s | 0 s | ", (self.repo.root / trees.PAGE).read_text())
        self.fine()
        self.passes("[]", "{}", json.dumps({"spent": {"boots": 1}}))
        self.assertNotIn("spent", json.loads(self.repo.rows()[-1]))
        self.assertIn(" s |  |  |  |  | ", (self.repo.root / trees.PAGE).read_text())
        self.fine()

    def test_the_rest_is_what_neither_boots_nor_steps_took(self):
        self.passes(json.dumps({"spent": record(3, 35, 100)}))
        self.repo.commit("the ledger")
        self.forge(seconds=200)
        self.assertIn("| 200 s | 3 | 35 s | 100 s | 65 s | ", (self.repo.root / trees.PAGE).read_text())
