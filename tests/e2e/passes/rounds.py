"""A round of end-to-end tests: how long it will take, what is done already, and what became of each.

`Round.go` runs one test after another. Before each it prints how long the rest is likely to take; it keeps the output of a test that failed,
in a folder to which lib.sh adds the lab's logs; it stops at the first signal, and ends with one table.
"""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OK, LEFT_OUT, FAILED, STOPPED, NOT_RUN = "ok", "left out", "FAILED", "stopped", "not run"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
A_FIRST_TIME = 300   # seconds, where no test ever passed


class Stopped(Exception):
    """A signal came; its argument is the number."""


def duration(seconds):
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Memory:
    """What was done of a round on this tree, in a file; without a file nothing is kept."""

    def __init__(self, path=None, tree=None):
        self.path, self.tree, self.done = path, tree, {}

    def load(self, is_the_same):
        """Takes up what was done on a tree that is the same."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8")) if self.path else {}
            if kept and is_the_same(kept["tree"]):
                self.done = {name: dict(entry) for name, entry in kept["done"].items() if {"result", "seconds", "logs"} <= set(entry)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.done = {}   # none, or written by something else

    def add(self, name, entry):
        self.done[name] = entry
        if self.path:
            beside = self.path.with_name(self.path.name + ".new")
            beside.write_text(json.dumps({"tree": self.tree, "done": self.done}, indent=1) + "\n", encoding="utf-8")
            beside.replace(self.path)

    def forget(self):
        self.done = {}
        if self.path:
            self.path.unlink(missing_ok=True)


class Output:
    """Copies what this process and its children print to a file; `tee` does it, so that the copy is complete whatever ends."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        sys.stdout.flush()
        sys.stderr.flush()
        self.kept = os.dup(1), os.dup(2)
        # In a session of its own: ^C must not end it before the test has cleaned up.
        self.copies = subprocess.Popen(["tee", str(self.path)], stdin=subprocess.PIPE, start_new_session=True)
        for number in (1, 2):
            os.dup2(self.copies.stdin.fileno(), number)
        self.copies.stdin.close()

    def __exit__(self, *_):
        sys.stdout.flush()
        sys.stderr.flush()
        for number, kept in zip((1, 2), self.kept):
            os.dup2(kept, number)
            os.close(kept)
        try:
            self.copies.wait(timeout=5)
        except subprocess.TimeoutExpired:   # something that the test started holds its output open
            self.copies.terminate()
            self.copies.wait()


class Round:
    def __init__(self, names, usual, run_one, memory=None, proves=lambda name: "", logs="/var/tmp"):
        self.names, self.usual, self.run_one = names, usual, run_one
        self.memory, self.proves, self.logs = memory or Memory(), proves, logs
        self.otherwise = statistics.median(usual.values()) if usual else A_FIRST_TIME
        self.before = {name for name in self.memory.done if name in names}

    def left(self, at):
        """Seconds that the tests from this one on are likely to take."""
        return sum(self.usual.get(name, self.otherwise) for name in self.names[at:] if name not in self.memory.done)

    def following(self, at):
        """The test that runs after this one, or None."""
        return next((name for name in self.names[at + 1:] if name not in self.memory.done), None)

    def heading(self, at):
        name = self.names[at]
        often = f"usually {self.usual[name]} s" if name in self.usual else f"never passed, taken for {self.otherwise:.0f} s"
        proves = self.proves(name)
        return f"==> {at + 1} of {len(self.names)}: {name}, {often}; about {duration(self.left(at))} left" + (f"\n    {proves}" if proves else "")

    def go(self):
        """Exit status: 0, 77: nothing failed but something was left out, 1, or that of the signal."""
        if self.before:
            print(f"{len(self.before)} of {len(self.names)} were run before on this tree (--again starts over)")
        stopped = 0
        ignored = {number for number in STOPS if signal.getsignal(number) == signal.SIG_IGN}
        handlers = {number: signal.signal(number, self._stop) for number in STOPS if number not in ignored}
        try:
            for at, name in enumerate(self.names):
                if name not in self.memory.done:
                    print(self.heading(at), flush=True)
                    stopped = self._one(name, self.following(at))
                if stopped:
                    break
        except Stopped as signalled:
            stopped = signalled.args[0]
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        print(self.table())
        count = {result: sum(e["result"] == result for e in self._entries().values()) for result in (OK, LEFT_OUT, FAILED)}
        if count[LEFT_OUT]:
            print(f"{count[LEFT_OUT]} left out")
        print(f"{count[OK]} passed, {count[FAILED]} failed", flush=True)
        if stopped:
            return 128 + stopped
        self.memory.forget()
        return 1 if count[FAILED] else 77 if count[LEFT_OUT] else 0

    @staticmethod
    def _stop(number, _):
        raise Stopped(number)

    def _one(self, name, following):
        """Runs a test; the number of the signal that stopped it, or 0."""
        began, logs = time.monotonic(), Path(tempfile.mkdtemp(prefix=f"muster-e2e-{name}.", dir=self.logs))
        status = stopped = 0
        try:
            with Output(logs / "output.log"):
                status, stopped = self.run_one(name, logs, following)
        except Stopped as signalled:
            status, stopped = 128 + signalled.args[0], signalled.args[0]
        seconds = int(time.monotonic() - began)
        if status in (0, 77):
            shutil.rmtree(logs)
        result = {0: OK, 77: LEFT_OUT}.get(status, STOPPED if stopped else FAILED)
        entry = {"result": result, "seconds": seconds, "logs": "" if status in (0, 77) else str(logs)}
        words = {OK: f"ok    {name} ({seconds} s)", LEFT_OUT: f"left  {name}"}
        print(words.get(result, f"{'FAIL ' if result == FAILED else 'stop '} {name} ({seconds} s): {logs}"), flush=True)
        if result == STOPPED:
            self.stopped = name, entry
        else:
            self.memory.add(name, entry)
        return stopped

    stopped = (None, None)

    def _entries(self):
        own, entry = self.stopped
        return {name: entry if name == own else self.memory.done.get(name, {"result": NOT_RUN, "seconds": "", "logs": ""}) for name in self.names}

    def table(self):
        rows = [("test", "result", "seconds", "usual", "where its logs are")]
        for name, entry in self._entries().items():
            result = entry["result"] + (" before" if name in self.before else "")
            rows.append((name, result, str(entry["seconds"]), str(self.usual.get(name, "")), entry["logs"]))
        wide = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}  {e}".rstrip() for a, b, c, d, e in rows)
