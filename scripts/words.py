#!/usr/bin/env python3
"""Refuses words of docs/style.md ("Words") that make people of machines, in string literals, comments, playbooks, schemas and pages.

scripts/words.py [PATH...]: without paths, every tracked file but those of the folders that are not done yet. Exit 1 with one line per
place, 0 when there is none. A name in backquotes, such as the user `nobody`, and a literal of one word are code. Tables of style.md quote
the words that they replace.

In product code names are read, too: of `max_stranger_body` and `kStrangerSeconds` each part. Names of JSON fields are literals.
"""
import re
import subprocess
import sys

WORDS = re.compile(r"\b(nobody|somebody|whoever|whom|anew|lest|owes|guilty|mended|(?:is|are|was|were) told|(?:is|are|was|were) asked|"
                   r"signs? of life|of its own accord)\b", re.I)
# The user of that name, and persons.
ALLOWED = ("Maintainer: nobody <nobody@", "runuser -u nobody", "id -u nobody", "chown nobody:nogroup", "/home/shared/id)\" = nobody", "-qx nobody",
           'node02 "$token" nobody', "Nobody gets in by password",
           # Names of files.
           "$work/mended", "$work/nobody")
# Parts of names that the table replaces, and names of single things that did not say what they are.
PARTS = {"stranger", "strangers", "tonight", "night", "nights", "proving", "blame", "blames", "blamed", "guilty", "papers", "mended"}
# Members that are a JSON field's name.
FIELDS = {"night"}
PRODUCT = ("agent/", "base/", "cli/", "controller/", "host/", "kernels/", "lab/", "sys/")
CODE = (".cc", ".h", ".cu", ".cuh")
PLAIN = (".yaml", ".sh", ".md", ".json", ".service", ".cmake")

# Not done yet. The list only gets shorter; "/" at the end names a folder, else it is a prefix of a path. Migrations are not edited once they
# are released.
LATER = ("schema/migrations/",)

TOKEN = re.compile(r'''(?P<comment>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<raw>R"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)")
  |(?P<text>"(?:[^"\\\n]|\\.)*")|'(?:[^'\\\n]|\\.)+\'''', re.S | re.X)


def texts(path, source):
    """(offset, text) of what a person can read in a file."""
    if not path.endswith(CODE):
        yield 0, source
        return
    for found in TOKEN.finditer(source):
        text = found["comment"] or found["block"] or found["raw"] or found["text"]
        if text and (found["comment"] or found["block"] or " " in text):
            yield found.start(), text


def names(path, source):
    """(offset, name) of each name of product code with a part that is refused."""
    if not path.endswith(CODE) or not path.startswith(PRODUCT):
        return
    code = TOKEN.sub(lambda text: re.sub(r"[^\n]", " ", text[0]), source)
    for found in re.finditer(r"[A-Za-z_]\w*", code):
        parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", found[0]).lower().split("_")
        if found[0] not in FIELDS and PARTS.intersection(parts):
            yield found.start(), found[0]


def places(path):
    source = open(path, encoding="utf-8").read()
    for start, text in texts(path, source):
        shown = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), text)
        if path.endswith("docs/style.md"):
            shown = re.sub(r"^\|.*", lambda row: " " * len(row[0]), shown, flags=re.M)
        for code in ALLOWED:
            shown = shown.replace(code, " " * len(code))
        for found in WORDS.finditer(shown):
            yield source.count("\n", 0, start + found.start()) + 1, found[0]
    for start, name in names(path, source):
        yield source.count("\n", 0, start) + 1, name


def main():
    files = sys.argv[1:]
    if not files:
        listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0")
        files = [name for name in listed if name.endswith(CODE + PLAIN) and not name.startswith(LATER)]
    bad = [(path, line, word) for path in files for line, word in places(path)]
    for path, line, word in bad:
        print(f"{path}:{line}: '{word}': see docs/style.md, Words")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
