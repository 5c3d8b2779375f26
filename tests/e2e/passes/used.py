"""What the runs of an end-to-end test really used, as the controller's database has it, and what a script's head says of that.

A record names, of the runs that a controller carried out: the playbooks whose steps ran on a machine, and those baked into its images
(`acceptance/NAME`: a profile); the images' recipes, with those that they are made from; the power drivers and storage engines of the specs
that were run; and the step modules that the agent carried out, on machines and in images. A test's own playbooks and recipes are not in it.

What a head has to name of it: drivers, engines and playbooks always. Recipes, profiles and modules are on the way that all nodes go; of
them a head names those which the test `short` did not use when it passed last. A path that is only about parts which were not used, and
of which the spec has nothing either, is too much. Judged is a test's newest pass, while it is not older than the code: an older one says
what other code used. What no record shows, since a controller in a machine or a program beside the controller used it, stands in the
head's lines `# beside the record: PATH...`.
"""
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from . import stands_on
from .lines import USED

ORDINARY = "short"   # the test whose recipes, profiles and modules are on everybody's way


def merged(records):
    """One record of several; None if there are none."""
    return {kind: sorted({name for record in records for name in record[kind]}) for kind in USED} if records else None


# ---- the record, out of a controller's database

def _images(spec):
    """(name, recipe, baked playbooks) of a spec's images; without comments."""
    block = re.search(r"(?m)^images:[^\n]*\n((?: [^\n]*\n|\n)*)", spec + "\n")
    rows = block[1] if block else ""
    indents = [len(row) - len(row.lstrip()) for row in rows.splitlines() if row.strip()]
    if not indents:
        return
    for entry in re.split(rf"(?m)^(?= {{{min(indents)}}}\S)", rows):
        name, recipe = re.match(r"\s*([\w.-]+):", entry), re.search(r"\brecipe:\s*[\"']?([\w.-]+)", entry)
        baked = re.search(r"\bbake:\s*(\[[^\]]*\]|(?:\n\s*-[^\n]*)+)", entry)
        if name:
            yield name[1], recipe[1] if recipe else "", re.findall(r"[\w.-]+(?<!-)", re.sub(r"\n\s*-", " ", baked[1])) if baked else []


def _recipes(root, name):
    """A shipped recipe and those it is made from."""
    path = root / "images" / f"{name}.yaml"
    if not name or not path.is_file():
        return set()
    parent = re.search(r"(?m)^from:\s*([\w.-]+)", path.read_text(encoding="utf-8"))
    return {name} | (_recipes(root, parent[1]) if parent else set())


def _playbook(root, name):
    """A shipped playbook, or profile, by the word before a step's slash."""
    for known in (name, f"acceptance/{name}"):
        if (root / "playbooks" / f"{known}.yaml").is_file():
            return {known}
    return set()


def _modules_of(step):
    verify = step.get("verify")
    return {step.get("module"), verify.get("module") if isinstance(verify, dict) else None} - {None, ""}


def _baked_by_the_agent(image):
    """Modules of the steps that the agent carried out in a built image; simple ones need no agent, nor a module."""
    built = json.loads((image / "build.json").read_text(encoding="utf-8")) if (image / "build.json").is_file() else {}
    return {module for layer in built.get("inputs", {}).get("layers", []) for step in layer.get("steps", []) for module in _modules_of(step)}


def _steps_that_ran(database, after):
    """(playbook, modules) of each step of a plan that a machine answered."""
    plans = {digest: {a.get("id"): {s.get("id"): s for s in a.get("params", {}).get("steps", [])} for a in json.loads(text).get("actions", [])}
             for digest, text in database.execute("select digest, json from plan where digest in (select plan_digest from run where id > ?)",
                                                    (after,))}
    rows = database.execute("select distinct run.plan_digest, journal.action, json_extract(journal.data, '$.step') from journal "
                            "join run on run.id = journal.run where journal.event = 'step' and journal.run > ?", (after,))
    for digest, action, name in rows:
        step = plans.get(digest, {}).get(action, {}).get(name, {})
        yield (name or "").partition("/")[0], _modules_of(step)


def of_state(root, state, after=None):
    """The record of a controller's folder of state, or of its runs after this one; None if it has no database or never ran anything."""
    root, path = Path(root), Path(state) / "muster.db"
    if not path.is_file():
        return None
    found = {kind: set() for kind in USED}
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as database:
        specs = [text for text, in database.execute("select text from spec where revision in (select plan.spec_revision from plan "
                                                    "join run on run.plan_digest = plan.digest where run.id > ?)", (after or 0,))]
        for playbook, modules in _steps_that_ran(database, after or 0):
            found["playbooks"] |= _playbook(root, playbook)
            found["modules"] |= modules
        if not database.execute("select count(*) from run").fetchone()[0]:
            return None
    for text in specs:
        text = re.sub(r"(?m)(?:^|\s)#.*$", "", text)
        named = stands_on.uses_of_text(text, ())
        found["drivers"] |= named.drivers
        found["engines"] |= named.engines
        for name, recipe, baked in _images(text):
            image = Path(state) / "images" / name / "current"
            if image.exists():   # else it was not built
                found["images"] |= _recipes(root, recipe)
                found["modules"] |= _baked_by_the_agent(image)
                found["playbooks"].update(*(_playbook(root, playbook) for playbook in baked))
    return {kind: sorted(names) for kind, names in found.items()}


# ---- the heads against it

def _modules(root, files):
    """The file that has each step module."""
    found = {}
    for path in files:
        if path.startswith("agent/") and path.endswith(".cc"):
            for name in re.findall(r"(?m)^StepModule (\w+)_module\(", (Path(root) / path).read_text(encoding="utf-8")):
                found[name] = path
    return found


class Parts:
    """The files of each part that a record can name. A part is (kind, name)."""

    def __init__(self, root, files, drivers, engines):
        self.files = {("modules", name): [path] for name, path in _modules(root, files).items()}
        for path in files:
            found = re.fullmatch(r"(images|playbooks)/(.+)\.yaml", path)
            if found:
                self.files[found[1], found[2]] = [path]
        for kind, names in (("drivers", drivers), ("engines", engines)):
            for name in names:
                patterns = stands_on.FILES_OF[kind](name)
                self.files[kind, name] = [f for f in files if any(stands_on.matches(p, f) for p in patterns)]
        self.of = {}
        for part, paths in self.files.items():
            for path in paths:
                self.of.setdefault(path, set()).add(part)


def _always(part):
    return part[0] in ("drivers", "engines") or (part[0] == "playbooks" and "/" not in part[1])


def _parts(record):
    return {(kind, name) for kind in USED for name in (record or {}).get(kind, ())}


def complaints(scripts, files, records, ordinary):
    """What heads lack or have too much. `records`: of the tests that are judged. `ordinary`: the record of ORDINARY, or None."""
    bad = []
    specs = {name: stands_on.uses(scripts.root, scripts.whole(name), stands_on.shipped_in(files)) for name in scripts.text} if records else {}
    parts = Parts(scripts.root, files, {d for s in specs.values() for d in s.drivers} | {d for r in records.values() for d in r["drivers"]},
                  {e for s in specs.values() for e in s.engines} | {e for r in records.values() for e in r["engines"]})
    for test, record in records.items():
        here, paths, used = f"tests/e2e/{test}.sh", scripts.paths(test), _parts(record)
        for part in sorted(used):
            if not _always(part) and (ordinary is None or part in _parts(ordinary)):
                continue
            bad += [f"{here}: its run used {part[0][:-1]} {part[1]}, and it does not stand on {path}" for path in parts.files.get(part, [])
                    if not any(stands_on.matches(p, path) for p in paths)]
        used |= {(kind, name) for kind in ("drivers", "engines", "playbooks") for name in getattr(specs[test], kind)}
        beside = stands_on.beside_the_record(scripts.text[test])
        for pattern in stands_on.named(scripts.text[test]):   # what a shared lab's file names, other tests may have used
            about = {part for f in files if stands_on.matches(pattern, f) for part in parts.of.get(f, ())}
            if about and not about & used and pattern not in beside:
                few = ", ".join(f"{kind[:-1]} {name}" for kind, name in sorted(about)[:3])
                bad.append(f"{here}: stands on {pattern} ({few}), which its run did not use: take it out, or name it in a line "
                           "`# beside the record: PATH...`")
    return bad
