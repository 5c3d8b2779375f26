"""Takes layouts from their lines in layouts.jsonl to what the agent said of their disks and what was brought back from them.

In batches: all disks of a batch are made, shown to the agent at once, taken apart again and removed.
"""
import os

import carve
import disks
import made_here
import planted
import sparse
from guest import Guest
from product import Agent


def content_of(layout):
    """(kind, options) of what is made in the guest, or None."""
    text = {"stripe": layout["options"], "blank": layout.get("before", "")}.get(layout["kind"])
    if text is None:
        return (layout["kind"], layout["options"]) if layout["kind"] != "raw" else None
    kind, _, options = text.partition(" ")
    return (kind, {"64k": "-c 65536"}.get(options, options)) if kind else None


def needs_guest(layout):
    content = content_of(layout)
    return bool(content) and (not made_here.knows(content[0]) or layout["kind"] == content[0] and layout["disks"] > 1)


class Corpus:
    def __init__(self, options):
        self.scratch = options.scratch
        self.recovery = options.recovery
        self.carve_first, self.no_guest = options.carve_first, options.no_guest
        for name in ("files", "keep", "disks"):
            os.makedirs(os.path.join(self.scratch, name), exist_ok=True)
        self.files = planted.plant(self.scratch)
        with open(os.path.join(self.scratch, "sums")) as f:
            self.sums = set(f.read().split())
        self.guest = Guest(self.scratch, options.patience)
        self.agent = Agent(options.agent, self.scratch)
        self.batch = options.batch
        self.asked = 0  # bytes of disks

    def path(self, layout, what, number):
        return os.path.join(self.scratch, "disks", "%s.%s%d" % (layout["id"][:3], what, number))

    def volumes(self, layout, what):
        return [self.path(layout, what, i) for i in range(1 if disks.dealt_out(layout) else layout["disks"])]

    def job(self, verb, layout, volumes):
        kind, options = content_of(layout)
        return {"id": layout["id"], "verb": verb, "kind": kind, "options": options, "disks": volumes}

    def make(self, layouts):
        """The disks of each, by id; None where a tool failed."""
        jobs = []
        for layout in layouts:
            volumes = self.volumes(layout, "made")
            if content_of(layout):
                for volume in volumes:
                    sparse.make(volume, layout["size"])
            if needs_guest(layout):
                jobs.append(self.job("make", layout, volumes))
        made, out = self.guest.run(jobs), {}
        for layout in layouts:
            try:
                if content_of(layout) and not needs_guest(layout):
                    made_here.make(*content_of(layout), self.volumes(layout, "made")[0], self.scratch)
                out[layout["id"]] = self.place(layout, not needs_guest(layout) or layout["id"] in made)
            except RuntimeError as error:
                print("  %s: %s" % (layout["id"], error))
                out[layout["id"]] = None
        return out

    def place(self, layout, made):
        volumes = self.volumes(layout, "made")
        paths = [self.path(layout, "disk", i) for i in range(layout["disks"])]
        if not made:
            for volume in volumes:
                os.remove(volume)
            return None
        if layout["kind"] == "raw":
            disks.make_raw(self.scratch, layout, volumes[0])
        if not content_of(layout) and layout["kind"] == "blank":
            sparse.make(volumes[0], layout["size"])
        disks.place(layout, volumes, paths)
        for what in layout["hurt"]:
            for path in paths:
                disks.hurt(path, what)
        if layout["kind"] == "blank":
            self.make_blank(layout, paths[0])
        return paths

    def make_blank(self, layout, path):
        if layout["options"] == "zeroed":  # written, not only never written
            with open(path, "r+b") as f:
                for at in (0, 100 << 20, layout["disk"] - (40 << 20)):
                    f.seek(at)
                    f.write(b"\0" * (40 << 20))
        elif layout["options"] == "discarded":
            sparse.empty(path, 0, layout["disk"])
        elif layout["options"] == "wiped by muster":
            self.agent.format(self.agent.look([path]), "format")

    def recover(self, layouts, made):
        """By id: what brought a file back, or ""."""
        jobs, taken = [], {}
        for layout in layouts:
            if not made[layout["id"]] or layout["kind"] == "blank":
                continue
            volumes = taken[layout["id"]] = self.volumes(layout, "back")
            disks.take_off(layout, made[layout["id"]], volumes)
            if layout["kind"] not in ("raw", "swap"):
                jobs.append(self.job("rescue", layout, volumes))
        return jobs, taken

    def finish_recovery(self, jobs, taken):
        by = {}
        if self.carve_first:
            by = {name: "photorec" for name, volumes in taken.items() if carve.carve(volumes, self.files, self.sums, self.scratch)}
        left = [job for job in jobs if job["id"] not in by]
        by.update(self.guest.run(left) if not self.no_guest else {job["id"]: None for job in left})
        for name, volumes in taken.items():
            if name not in by:
                by[name] = "photorec" if not self.carve_first and carve.carve(volumes, self.files, self.sums, self.scratch) else ""
            for volume in volumes:
                os.remove(volume)
        return by

    def run(self, layouts):
        """Yields (layout, answers per disk, what the agent says of each, which disks are empty, what brought a file back or None)."""
        for batch in batches(layouts, self.batch):
            made = self.make(batch)
            empty = {k: [sparse.is_empty(p) for p in paths] for k, paths in made.items() if paths}
            jobs, taken = self.recover(batch, made) if self.recovery else ([], {})
            answers = self.ask([(k, paths) for k, paths in made.items() if paths])
            for paths in made.values():
                for path in paths or []:
                    os.remove(path)
            self.agent.show([])
            by = self.finish_recovery(jobs, taken) if self.recovery else {}
            for layout in batch:
                name = layout["id"]
                if not made[name]:
                    yield layout, None, None, None, None
                    continue
                yield layout, *answers[name], empty[name], by.get(name, "")

    def ask(self, made):
        paths = [path for _, several in made for path in several]
        looks = self.agent.look(paths) if paths else []
        allowed = self.agent.format(looks, "format-if-blank") if paths else []
        self.asked += sum(os.path.getsize(p) for p in paths)
        out, at = {}, 0
        for name, several in made:
            answers = []
            for look, may in zip(looks[at:at + len(several)], allowed[at:at + len(several)]):
                answers.append("blank" if look["blank"] and may else "data" if not look["blank"] and not may
                               else "blank, not writable" if look["blank"] else "writable")
            out[name] = (answers, [look["content"] for look in looks[at:at + len(several)]])
            at += len(several)
        return out


def batches(layouts, most):
    batch, used = [], 0
    for layout in layouts:
        if batch and used + layout["disks"] > most:
            yield batch
            batch, used = [], 0
        batch.append(layout)
        used += layout["disks"]
    if batch:
        yield batch


def expected_of(layout, empty, by):
    """From the layout alone: one word per disk."""
    if layout["kind"] == "blank":
        return ["blank"]
    return ["blank" if nothing else "data" if by else "either" for nothing in empty]
