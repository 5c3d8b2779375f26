"""What pages say of end-to-end tests: the table of docs/benchmarks.md, and claims.

A page claims that something was shown in one form only: "shown by" and the test's name in backquotes, several of them with commas or
"and" between. Each such test must have passed, by the ledger. Naming how to run a test claims nothing; the test must exist.
"""
import re

from .stands_on import title
from .tree import BEGIN, END, PAGE, split_page

CLAIM = re.compile(r"\bshown\s+by\s+(`[^`]+`(?:(?:,\s+|\s+and\s+)`[^`]+`)*)")
RUN = re.compile(r"tests/e2e/run\.sh ([^`|)\n#>&;]*)")
VERBS = {"all", "list", "status", "stale"}
# Sentences that said what had passed, which no page can know.
OLD_CLAIMS = [re.compile(pattern, re.I) for pattern in (
    r"\bpassed on (?:the )?\d", r"\bpassed in one go\b", r"\bwhole in the lab\b", r"\bin the lab, from\b", r"\bin the lab \(`", r"\| in the lab\b",
    r"\b(?:has|have)\W+(?:not\W+)?(?:yet\W+)?passed\b", r"\bnot\W+been\W+run\W+yet\b", r"\bexercised\b[^.|]*\bin the lab\b",
    r"\bnot passed\b", r"\bhow far it has got\b")]
ADVICE = "say what the code does; what ran, and when, is in `tests/e2e/run.sh status`"


def passes_of(lines):
    """The newest pass of each test that counts: from a clean tree."""
    newest = {}
    for line in lines:
        if line["tree"] == "clean":
            newest[line["name"]] = line
    return newest


def table(scripts, lines):
    newest = passes_of(lines)
    rows = ["| test | what is in it | passed | commit | time | where |", "|---|---|---|---|---|---|"]
    for name, text in scripts.text.items():
        what = title(text).replace("|", "\\|")
        line = newest.get(name)
        if line is None:
            rows.append(f"| `{name}` | {what} | never | | | |")
            continue
        load = " to ".join(f"{value:.1f}" for value in line["load"])
        where = f"{line['accelerator']}, {line['cores']} cores, load {load}"
        rows.append(f"| `{name}` | {what} | {line['date'][:10]} | {line['commit'][:9]} | {line['seconds']} s | {where} |")
    return "\n" + "\n".join(rows) + "\n"


def page_with(text, made):
    """The page with this table in it, None where its markers are missing."""
    parts = split_page(text)
    return None if parts is None else parts[0] + BEGIN + made + END + parts[2]


def _pages(root, files):
    for path in files:
        if path in ("README.md", "CHANGELOG.md") or (path.startswith("docs/") and path.endswith(".md")):
            yield path, (root / path).read_text(encoding="utf-8")


def _at(path, text, position):
    return f"{path}:{text.count(chr(10), 0, position) + 1}"


def _claims(path, text, scripts, newest):
    for claim in CLAIM.finditer(text):
        for name in re.findall(r"`([^`]+)`", claim[1]):
            if name not in scripts.text:
                yield f"{_at(path, text, claim.start())}: shown by `{name}`: there is no such end-to-end test"
            elif name not in newest:
                yield f"{_at(path, text, claim.start())}: shown by `{name}`: the ledger has no pass of it"
    for run in RUN.finditer(text):
        for name in run[1].split():
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):   # NAME..., an option, words behind the command
                break
            if name not in scripts.text and name not in VERBS:
                yield f"{_at(path, text, run.start())}: tests/e2e/run.sh {name}: there is no such end-to-end test"


def complaints(root, files, scripts, lines):
    bad, newest = [], passes_of(lines)
    for path, text in _pages(root, files):
        if path == PAGE:
            made = page_with(text, table(scripts, lines))
            if made is None:
                bad.append(f"{path}: the lines around the table of end-to-end tests are missing: {BEGIN} and {END}")
            elif made != text:
                bad.append(f"{path}: its table is not what the ledger says: tests/e2e/ledger.py table --write")
        bad += _claims(path, text, scripts, newest)
        if path != "CHANGELOG.md":
            bad += [f"{_at(path, text, found.start())}: \"{found[0]}\": {ADVICE}"
                    for pattern in OLD_CLAIMS for found in pattern.finditer(text.replace("\n", " "))]   # over ends of lines
    return bad
