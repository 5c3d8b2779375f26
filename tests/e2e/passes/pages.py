"""What pages say of end-to-end tests: the table of docs/benchmarks.md, and claims.

Read are all *.md, and the YAML files below docs/ and playbooks/; the generated table is left out. Naming a test, or how to run it, claims
nothing; the test must exist. A text claims that a test passed, and then the ledger must have a pass of it, in two ways:

- directly, where a word of DONE stands before tests or one of WORDS behind them, with nothing but SMALL words between: "shown by the
  test `a`", "`a`, `b` passed", "proved: `tests/e2e/run.sh a`", or in the next cell of a table behind them. Here every test's name in
  backquotes counts.
- in one sentence, where it names a test and has a word of WORDS anywhere that is not denied or asked ("never ran", "which of them passed").
  Here a name counts in `run.sh NAME` and e2e/NAME.sh; in backquotes, if it is nothing else: a name with a dash that no playbook and no
  image has; and any name in backquotes beside the word "test" ("the tests `stack` and `ceph`"). `stack` alone is a word like another.

Quotations without a test in them (titles of unit tests) are no words of the page. FORBIDDEN are sentences that no page can know.
"""
import re
from pathlib import PurePosixPath

from .tree import BEGIN, END, PAGE, split_page

DONE = r"passed|shown|showed|proved|proven|demonstrated|verified|confirmed|green|succeeded|ran|(?:was|were|been)\s+run|tried|exercised"
WORDS = rf"\b(?:{DONE}|pass|passes|shows|proves|demonstrates|verifies|succeeds)\b"
SMALL = (r"(?:[\s,:()]|\b(?:by|in|with|on|under|as|from|of|the|a|tests?|e2e|end-to-end|scenarios?|runs?|all|both|each|also|and|now|again|today|"
         r"has|have|had|was|were|is|are|been|be|it|they|this|that|which|successfully)\b){0,14}?")
DENIED = re.compile(r"\b(?:no|not|never|nothing|none|neither|nor|without|cannot|which|what|whether|once|until|if)\b[^,;:()|]{0,60}"
                    + WORDS, re.I)
# A test that a text names: "word" for a name in backquotes that is also something else, "test" for one that is not.
MARK = r"<(?:word|test) [a-z0-9-]+>"
LIST = rf"{MARK}(?:(?:[\s,&/]|\band\b|\bor\b|\bby\b|\bwith\b)*{MARK})*"
DIRECT = re.compile(rf"\b(?:{DONE})\b{SMALL}(?P<behind>{LIST})|(?P<before>{LIST})(?:\s*\|)?{SMALL}{WORDS}", re.I)
BESIDE = re.compile(rf"\b(?:tests?|e2e|end-to-end|scenarios?)\b[\s:(]*(?P<behind>{LIST})"
                    rf"|(?P<before>{LIST})\s+(?:end-to-end\s+)?(?:tests?|scenarios?)\b", re.I)
SHOWN = re.compile(r"\bshown\s+by\s+(?:the\s+)?(?:tests?\s+)?((?:`[a-z0-9][a-z0-9-]*`|" + MARK + r"|,|\s|\band\b|\bby\b)+)", re.I)
RUN = re.compile(r"\brun\.sh ([^`|)\n#>&;]*)")
VERBS = {"all", "list", "status", "stale"}
EVERY = r"\b(?:all|every|each|\d+)\s+(?:of\s+)?(?:the\s+|our\s+)?(?:\d+\s+)?end-to-end\s+tests?\b"
FORBIDDEN = [re.compile(pattern, re.I) for pattern in (
    r"\bpassed\s+on\b(?!\s+which)", r"\bpassed in one go\b", r"\bwhole in the lab\b", r"\bin the lab, from\b", r"\bin the lab \([`<]",
    r"\| in the lab\b", r"\b(?:has|have)\W+(?:not\W+)?(?:yet\W+)?passed\b", r"\bnot\W+been\W+run\W+yet\b",
    r"\bexercised\b[^|]*\bin the lab\b", r"\bnot passed\b", r"\bhow far it has got\b",
    EVERY + r".*\b(?:pass|passed|passes|green|succeed|succeeded)\b", r"\bgreen\b.*" + EVERY)]
REAL = re.compile(r"\b(?:ran|run|runs|tried|tested|shown|proved|proven|verified|exercised|installed)"
                  r"\s+on\s+(?:(?:a|an|the|two|three|\d+)\s+)?real\b", re.I)
DENIES = re.compile(r"\b(?:never|not|no|nothing|none|neither)\b", re.I)
LEGEND = """boots: how often the test's runs booted a machine. Of the time, booting: at least one machine was on its way up; steps: none was, and a
run had another action open (writing images, configuration, acceptance); rest: neither (building images, the lab, the test's own commands).
Empty: not recorded, or there was no controller. A lab that was kept is one that an earlier test had brought up: that time is the earlier test's."""
ADVICE = "say what the code does; what ran, and when, is in `tests/e2e/run.sh status`"


def passes_of(lines):
    """The newest pass of each test that counts: from a clean tree."""
    newest = {}
    for line in lines:
        if line["tree"] == "clean":
            newest[line["name"]] = line
    return newest


def _spent(line):
    """The table's cells of how a pass spent its seconds."""
    if "spent" not in line:
        return [""] * 4
    spent = line["spent"]
    rest = max(0, line["seconds"] - spent["booting"] - spent["steps"])   # rounded, and two controllers may have been at work at once
    return [str(spent["boots"]), f"{spent['booting']} s", f"{spent['steps']} s", f"{rest} s"]


def _lab(line):
    """Words on the lab that a test shares."""
    lab = line.get("lab")
    return f", lab {lab['name']} {'up in' if lab['paid'] else 'kept:'} {lab['bring_up']} s" if lab else ""


def table(scripts, lines):
    newest = passes_of(lines)
    rows, never = ["| test | passed | commit | time | boots | booting | steps | rest | where |", "|---|---|---|---|---|---|---|---|---|"], []
    for name in scripts.text:
        line = newest.get(name)
        if line is None:
            never.append(f"`{name}`")
            continue
        load = " to ".join(f"{value:.1f}" for value in line["load"])
        where = f"{line['accelerator']}, {line['cores']} cores, load {load}{_lab(line)}"
        cells = [f"`{name}`", line["date"][:10], line["commit"][:9], f"{line['seconds']} s", *_spent(line), where]
        rows.append(f"| {' | '.join(cells)} |")
    rows += ["", LEGEND]
    if never:
        rows += ["", f"Never passed: {', '.join(never)}."]
    return "\n" + "\n".join(rows) + "\n"


def page_with(text, made):
    """The page with this table in it, None where its markers are missing."""
    parts = split_page(text)
    return None if parts is None else parts[0] + BEGIN + made + END + parts[2]


# ---- reading a page

def _is_page(path):
    return path.endswith(".md") or (path.endswith((".yaml", ".yml")) and path.startswith(("docs/", "playbooks/")))


def _ordinary(names, files):
    """Names of tests that are something else too, in backquotes on a page."""
    shipped = {PurePosixPath(path).stem for path in files if path.startswith(("images/", "playbooks/"))}
    return {name for name in names if "-" not in name or name in shipped}


def _marked(text, names, ordinary):
    """The text with MARKs in place of the tests it names, without emphasis, links, quotations. Its lines stay where they are."""
    text = re.sub(r"</?\w+>", "", text.replace("<code>", "`").replace("</code>", "`"))
    text = re.sub(r"\[([^\]]*)\]\([^)\n]*\)", r"\1", text).replace("*", "")
    text = re.sub(r"(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)", "", text)

    def of_run(found):
        words = re.match(r"[a-z0-9 -]*", found[1])[0].split()
        return "".join(f" <test {word}>" for word in words if word in names) or found[0]

    text = RUN.sub(of_run, text)
    text = re.sub(r"\b(?:tests/)?e2e/([a-z0-9-]+)\.sh\b", lambda found: f"<test {found[1]}>" if found[1] in names else found[0], text)
    text = re.sub(r"`([a-z0-9-]+)`", lambda found: found[0] if found[1] not in names else
                  f"<{'word' if found[1] in ordinary else 'test'} {found[1]}>", text)
    text = re.sub(rf"`[^`\n]*?((?:{MARK} ?)+)[^`\n]*`", r"\1", text)   # the rest of a command with run.sh in it
    return re.sub(r'"[^"\n]*"', lambda found: '""' if len(found[0]) > 20 and not re.search(MARK, found[0]) else found[0], text)


def _flat(path, text):
    """A YAML file's comments as plain lines: a sentence goes on in the next."""
    return text if path.endswith(".md") else re.sub(r"(?m)^([ \t]*)#+ ?", r"\1", text)


# A blank line, a heading, an item of a list, a row or cell of a table, a fence, a key of YAML, or a full stop.
BREAK = re.compile(r"\n(?=\s*\n|\s*(?:[-+>|]|\d+\.|```)|#+ |\s*[\w-]+:(?:\s|$))|(?<=\n)#+ [^\n]*\n|\||[.!?](?=[\s)\"]|$)")


def _sentences(text):
    start = 0
    for end in [*(found.end() for found in BREAK.finditer(text)), len(text)]:
        sentence = text[start:end]
        if sentence.strip(" \n|"):
            yield start + len(sentence) - len(sentence.lstrip(" \n|")), sentence
        start = end


def _names(found):
    return re.findall(r"<(?:word|test) ([a-z0-9-]+)>", found["behind"] or found["before"])


def claimed(text):
    """(position, name of a test that the marked text claims to have passed)."""
    for found in DIRECT.finditer(text):
        yield from ((found.start(), name) for name in _names(found))
    for position, sentence in _sentences(text):
        if not re.search(WORDS, DENIED.sub(" ", sentence), re.I):
            continue
        named = re.findall(r"<test ([a-z0-9-]+)>", sentence) + [name for found in BESIDE.finditer(sentence) for name in _names(found)]
        yield from ((position, name) for name in named)


def forbidden(text):
    """(position, words) that no page can know."""
    for position, sentence in _sentences(text):
        flat = " ".join(sentence.split())
        yield from ((position, found[0]) for pattern in FORBIDDEN for found in pattern.finditer(flat))
        yield from ((position, found[0]) for found in REAL.finditer(flat) if not DENIES.search(flat))
    # Cells: their bars are breaks of sentences.
    yield from ((found.start(), found[0]) for found in re.finditer(r"\| in the lab\b", text, re.I))


def _unknown(text, names):
    """(position, words) that name a test which is not there."""
    for found in SHOWN.finditer(text):
        yield from ((found.start(), f"shown by `{name}`") for name in re.findall(r"`([^`]+)`", found[1]))
    for found in RUN.finditer(text):
        if not text[:found.start()].endswith("tests/e2e/"):
            continue
        for name in found[1].split():
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):   # NAME..., an option, words behind the command
                break
            if name not in names and name not in VERBS:
                yield found.start(), f"tests/e2e/run.sh {name}"


def _without_the_table(text):
    parts = split_page(text)
    return text if parts is None else parts[0] + "\n" * parts[1].count("\n") + parts[2]


def _of_page(path, text, names, ordinary, newest):
    text = _flat(path, text)
    marked = _marked(text, names, ordinary)

    def at(position, where=marked):
        return f"{path}:{where.count(chr(10), 0, position) + 1}"

    found = [f"{at(position)}: says that `{name}` passed: the ledger has no pass of it"
             for position, name in claimed(marked) if name not in newest]
    found += [f"{at(position)}: {words}: there is no such end-to-end test" for position, words in _unknown(marked, names)
              if words.startswith("shown")]
    found += [f"{at(position, text)}: {words}: there is no such end-to-end test" for position, words in _unknown(text, names)
              if not words.startswith("shown")]
    found += [f"{at(position)}: \"{words}\": {ADVICE}" for position, words in forbidden(marked)]
    return list(dict.fromkeys(found))


def complaints(root, files, scripts, lines):
    bad, newest, names = [], passes_of(lines), set(scripts.text)
    ordinary = _ordinary(names, files)
    for path in filter(_is_page, files):
        text = (root / path).read_text(encoding="utf-8")
        if path == PAGE:
            made = page_with(text, table(scripts, lines))
            if made is None:
                bad.append(f"{path}: the lines around the table of end-to-end tests are missing: {BEGIN} and {END}")
            elif made != text:
                bad.append(f"{path}: its table is not what the ledger says: tests/e2e/ledger.py table --write")
            text = _without_the_table(text)
        bad += _of_page(path, text, names, ordinary, newest)
    return bad
