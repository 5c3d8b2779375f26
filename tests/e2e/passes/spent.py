"""How the seconds of an end-to-end test were spent, as the journal of the controller's database has it.

  boots    attempts that ended with a machine in another boot than before: their result has a boot id that is not the intent's. Into the RAM
           system, by power cycle, kexec or a provider's installation; from disk; from the other slot and back; woken. And the boots into the
           RAM system with which a later attempt at another action began, such as writing an image, since the machine was silent.
  booting  seconds in which at least one machine was on its way up: from the intent of such an attempt to its end. That has what comes
           before, too: an orderly shutdown, staggered power-ons, a person's task. A failed attempt's seconds are in it, and it is no boot.
  steps    seconds in which none was, and at least one other action was open: inventories, images, steps, acceptance.

The rest of a pass is not of the runs: images that were built, the lab, the script's own commands. Nor are boots that no result names: of
machines that the script restarts or `muster power` switches, of a trial that rolls back by itself, into a system that was not the right
one. And nothing of what a controller in a machine of the lab did, or was lost when a backup took the place of the database.
"""
import sqlite3
from contextlib import closing
from pathlib import Path

from .lines import SPENT

BOOTS = {"netboot", "boot_disk", "reboot", "boot_slot", "return_slot", "wake"}   # kinds of actions that end with an agent's hello
ENDS = {"succeeded", "failed", "unknown", "abandoned", "quarantined", "not_started"}   # the last two: of a node that leaves the run
KINDS = """select run.id, json_extract(action.value, '$.id'), json_extract(action.value, '$.kind')
           from run join plan on plan.digest = run.plan_digest, json_each(plan.json, '$.actions') as action"""
ROWS = """select run, node, action, event, time, json_extract(data, '$.boot_before'), json_extract(data, '$.with_netboot'),
          json_extract(data, '$.result.boot_id') from journal where run > ? order by seq"""


def added(records):
    """One record of several controllers; None if there are none."""
    return {key: sum(record[key] for record in records) for key in SPENT} if records else None


class Attempt:
    """One attempt at an action: one is open for each node of a run. Times are those of the journal, in ms."""

    def __init__(self, kind, begun, boot_before, with_netboot):
        self.kind, self.begun, self.boot_before, self.with_netboot = kind, begun, boot_before, with_netboot
        self.started = self.ended = self.boot_id = None
        self.succeeded = False

    def came_up(self):
        return self.kind in BOOTS and self.boot_id not in (None, "", self.boot_before)

    def boots(self):
        # `started`: its agent began with the order, which it gets in the RAM system.
        return self.came_up() + bool(self.with_netboot and self.started)

    def on_the_way_up(self):
        """The part of it in which the machine was; the rest is work."""
        if self.kind in BOOTS and (self.came_up() or not self.succeeded):
            return self.begun, self.ended
        return self.begun, (self.started or self.ended) if self.with_netboot else self.begun


def _attempts(database, after):
    kinds = {(run, action): kind for run, action, kind in database.execute(KINDS)}
    open_, found, last = {}, [], {}
    for run, node, action, event, time, boot_before, with_netboot, boot_id in database.execute(ROWS, (after,)):
        if event != "ended":   # which the controller's next start may have written
            last[run] = time
        attempt = open_.get((run, node))
        if event == "intent":
            attempt = open_[run, node] = Attempt(kinds.get((run, action)), time, boot_before, with_netboot)
            found.append(attempt)
        elif event == "started" and attempt:
            attempt.started = time
        elif event in ENDS and attempt:
            attempt.ended, attempt.succeeded, attempt.boot_id = time, event == "succeeded", boot_id
            del open_[run, node]
    for (run, _), attempt in open_.items():   # the controller was stopped, and the run not continued
        attempt.ended = last[run]
    return found


def _covered(spans):
    """The time in which at least one of these (begin, end) goes on."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(end, until)
    return total


def of_state(state, after=None):
    """The record of a controller's folder of state, or of its runs after this one; None if it has no database or never ran anything."""
    path = Path(state) / "muster.db"
    if not path.is_file():
        return None
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as database:
        if not database.execute("select count(*) from run").fetchone()[0]:
            return None
        attempts = _attempts(database, after or 0)
    booting = _covered([attempt.on_the_way_up() for attempt in attempts])
    busy = _covered([(attempt.begun, attempt.ended) for attempt in attempts])
    return dict(zip(SPENT, (sum(attempt.boots() for attempt in attempts), round(booting / 1000), round((busy - booting) / 1000))))
