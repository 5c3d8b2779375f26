"""What each end-to-end test stands on: the paths its head names, and those that its spec must make it name.

The form of the lines is in the head of run.sh. The spec is read without running anything: what is written in the script (heredocs and the
right sides of sed), the quickstart's spec where the script begins with that, and the specs that it, or the section of
docs/first-cluster.md that it walks, names. Where a sed takes something out this follows the few forms that the scripts use.
"""
import re
from pathlib import Path

from . import labs

PRODUCT = ("agent", "base", "cli", "controller", "hardware", "host", "images", "kernels", "lab", "playbooks", "schema", "sys", "systemd")
# Product that no end-to-end test runs, and why. `run.sh status` prints it. It makes no test old.
UNTESTED = {
    "kernels/gpu": "needs a GPU",
    "controller/engines/beegfs*": "BeeGFS is in no archive that the lab reaches",
    "playbooks/storage-beegfs.yaml": "BeeGFS is in no archive that the lab reaches",
    "images/debian-13-metal.yaml": "no end-to-end test installs Debian 13 with firmware; full-kernel does Debian 12",
    "images/ubuntu-22.04-metal.yaml": "no end-to-end test installs it; it adds nothing to the recipe that it names",
    "images/ubuntu-24.04-metal.yaml": "no end-to-end test installs it; it adds nothing to the recipe that it names",
    "playbooks/cuda-vendor.yaml": "no end-to-end test installs it; its packages and steps are those of gpu-vendor",
    "playbooks/gpu-ubuntu.yaml": "Canonical's packages of drivers are in no archive that the lab reaches",
}
AGES_NOTHING = ("base", "host", "sys")   # everything stands on it: short, bmc, reimage, adopt and stack name it, and are run for it
DRIVER_FILES = {"ssh": "controller/power/in_band*", "sakura-phy": "controller/power/sakura/*"}
FILES_OF = {"drivers": lambda name: [DRIVER_FILES.get(name, f"controller/power/{name}*")],
            "engines": lambda name: [f"controller/engines/{name}*", f"agent/storage/{name}*"],
            "playbooks": lambda name: [f"playbooks/{name}.yaml"]}
PAGE = "docs/first-cluster.md"


def braces(pattern):
    """`a/{b,c}*` as `a/b*` and `a/c*`."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [whole for part in found[1].split(",") for whole in braces(pattern[:found.start()] + part + pattern[found.end():])]


def matches(pattern, path):
    """A pattern is a file, a folder with all that is in it, or has a `*`, which does not cross a slash."""
    if "*" not in pattern:
        return path == pattern or path.startswith(pattern + "/")
    return re.fullmatch("[^/]*".join(re.escape(part) for part in pattern.split("*")), path) is not None


def head_of(text):
    lines = text.splitlines()[1:]
    end = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return lines[:end]


def _patterns(text, words):
    """The patterns of a head's lines that begin with these words."""
    return [pattern for line in head_of(text) if line.startswith(f"# {words}: ")
            for word in line.split(": ", 1)[1].split() for pattern in braces(word)]


def beside_the_record(text):
    """Of what a test stands on, that which no record of its runs shows (used.py)."""
    return _patterns(text, "beside the record")


def named(text):
    """What a script's head says that it stands on."""
    return _patterns(text, "stands on") + beside_the_record(text)


def weakened_by(text):
    """Environment variables under which the test proves less than its name says: `# weakened by: NAME...`."""
    return [name for line in head_of(text) if line.startswith("# weakened by: ") for name in line.split(": ", 1)[1].split()]


def title(text):
    lines = text.splitlines()
    return lines[1][2:] if len(lines) > 1 and lines[1].startswith("# ") else ""


class Scripts:
    def __init__(self, root):
        self.root = Path(root)
        folder = self.root / "tests/e2e"
        names = sorted(path.stem for path in folder.glob("*.sh") if path.stem not in ("run", "lib"))
        self.text = {name: (folder / f"{name}.sh").read_text(encoding="utf-8") for name in names}
        self.labs = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("labs/*.sh"))}

    def lab_of(self, name):
        """The lab that a test shares, or None."""
        return labs.of_text(self.text.get(name, ""))

    def whole(self, name):
        """A test's script, and behind it the file of its lab."""
        return self.text[name] + self.labs.get(self.lab_of(name), "")

    def paths(self, name):
        return [*named(self.text.get(name, "")), *named(self.labs.get(self.lab_of(name), ""))]

    def concerns(self, name, then=("", ""), files=()):
        """Whether a change of a path can change what the test proves. `then`: its script and the file of its lab at the commit of a pass, whose
        paths count beside today's as far as one of today's files is under them: a path that is taken out of the head leaves an old pass as old
        as it was."""
        own = [f"tests/e2e/{name}.sh", *(labs.path_of(lab) for lab in (self.lab_of(name), labs.of_text(then[0])) if lab)]
        silent = (*AGES_NOTHING, *UNTESTED)
        paths = self.paths(name)
        paths += [p for text in then for p in named(text) if p not in paths and any(matches(p, f) for f in files)]
        return lambda path: path in own or (not any(matches(p, path) for p in silent) and any(matches(p, path) for p in paths))


# ---- what a spec uses

def _without_comments(text):
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


DELETED = r"s/((?:, [a-z][a-z0-9-]*)+)(?:\\b)?//"


def _names_in_lists(text, shipped):
    """Shipped playbooks that stand in a list: after a bracket, a comma, a quote or sed's slash, and before one."""
    text = re.sub(DELETED, "", text).replace("\\[", "[").replace("\\]", "]")
    return {name for name in shipped
            if re.search(rf'(?:\[ ?|, |")' + re.escape(name) + r'(?:,| ?\]|"|/)|/' + re.escape(name) + r"(?:,| ?\])", text)}


class Uses:
    """Drivers, engines and playbooks of one spec, or of several together."""

    def __init__(self, drivers=(), engines=(), playbooks=()):
        self.drivers, self.engines, self.playbooks = set(drivers), set(engines), set(playbooks)

    def add(self, other):
        self.drivers |= other.drivers
        self.engines |= other.engines
        self.playbooks |= other.playbooks


def uses_of_text(text, shipped):
    return Uses(re.findall(r"\bdriver: ([a-z][a-z-]*)", text), re.findall(r"\bengine: ([a-z]+)", text), _names_in_lists(text, shipped))


def _quickstart(root, text, shipped):
    """The spec that a script begins with, less what it takes out or puts something else in the place of."""
    small = "small_spec" in text
    whole = any("lab/quickstart.yaml" in line and "sed -n" not in line for line in text.splitlines())
    whole = whole or "spec_from_quickstart" in text
    start = Uses()
    if whole:
        start.add(uses_of_text(_without_comments((root / "lab/quickstart.yaml").read_text(encoding="utf-8")), shipped))
    if small:
        start.add(Uses(["redfish"], ["local"], {"base", "ssh", "firewall", "storage-local"} & shipped))
    if re.search(r"s/driver: [a-z-]+/|s/power: \.\*/", text):
        start.drivers.clear()
    if re.search(r"s/playbooks: \\\[\.\*\\\]/|; s/playbooks: \\\[\.\*\\\]/|s/\\\[ base, \.\*mpi \\\]/", text):
        start.playbooks.clear()
    for deleted in re.findall(DELETED, text):
        start.playbooks -= set(deleted[2:].split(", "))
    if re.search(r"/\^?  scratch:/d", text):
        start.engines.discard("local")
    if re.search(r"/(\^  )?shared:/d|s/\^  shared: \.\*/(?!&)", text):
        start.engines.discard("moosefs")
    return start


def _walked(root, text):
    """Commands of the sections of docs/first-cluster.md whose headings the script names."""
    page = root / PAGE
    if not page.is_file() or (PAGE not in text and "page_commands" not in text):
        return ""
    commands = []
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        if f'"{heading}"' in text:
            commands += [line for line in body.splitlines() if line.startswith("    ")]
    return "\n".join(commands)


def uses(root, text, shipped):
    text = _without_comments(text)
    together = _quickstart(root, text, shipped)
    for old in re.findall(r"s/driver: ([a-z-]+)/", text):   # the left side of a sed is no use
        text = text.replace(f"s/driver: {old}/", "s//")
    together.add(uses_of_text(text, shipped))
    commands = _walked(root, text)
    for name in sorted(set(re.findall(r"\b((?:docs/specs|lab)/[\w-]+\.yaml)", text + commands)) - {"lab/quickstart.yaml"}):
        if not (root / name).is_file():
            continue
        found = uses_of_text(_without_comments((root / name).read_text(encoding="utf-8")), shipped)
        for deleted in re.findall(DELETED, commands):
            found.playbooks -= set(deleted[2:].split(", "))
        together.add(found)
    return together


# ---- what check asks of the heads

def _needed(used):
    for kind, patterns in FILES_OF.items():
        for name in sorted(getattr(used, kind)):
            yield f"{kind[:-1]} {name}", patterns(name)


def shipped_in(files):
    """Names of the tree's playbooks."""
    return {path.split("/")[1][:-len(".yaml")] for path in files if re.fullmatch(r"playbooks/[^/]+\.yaml", path)}


def complaints(scripts, files):
    """What is wrong with the heads, over the files of the tree."""
    bad = []
    shipped = shipped_in(files)
    for name in scripts.text:
        here, paths = f"tests/e2e/{name}.sh", scripts.paths(name)
        if not paths:
            bad.append(f"{here}: its head has no `# stands on: PATH...`")
        bad += [f"{here}: stands on {p}, which is not there" for p in paths if not any(matches(p, f) for f in files)]
        bad += [f"{here}: stands on {p}, which is said to be untested: {UNTESTED[p]}" for p in paths if p in UNTESTED]
        for what, patterns in _needed(uses(scripts.root, scripts.whole(name), shipped)):
            those = [f for f in files if any(matches(p, f) for p in patterns)]
            if not those:
                bad.append(f"{here}: its spec uses {what}, and there is no file {patterns[0]}")
            bad += [f"{here}: its spec uses {what}, and it does not stand on {f}"
                    for f in those if not any(matches(p, f) for p in paths)]
    for pattern, why in UNTESTED.items():
        if not any(matches(pattern, f) for f in files):
            bad.append(f"tests/e2e/passes/stands_on.py: {pattern} ({why}) is not there")
    bad += labs.complaints(scripts)
    named_by_any = [*UNTESTED, *(p for name in scripts.text for p in scripts.paths(name))]
    bad += [f"{f}: no end-to-end test stands on it: name it in a head, or in UNTESTED with the reason"
            for f in files if f.split("/")[0] in PRODUCT and "/" in f and not any(matches(p, f) for p in named_by_any)]
    return bad
