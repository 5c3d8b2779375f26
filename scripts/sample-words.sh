#!/usr/bin/env bash
# Draws what a reader judges: scripts/sample-words.sh SEED [LITERALS [COMMENTS]] prints 100 string literals and 30 comments of the product's
# sources, each with file and line, the same for the same seed (the commit's hash, say) and tree. Literals of fewer than three words and
# comments of fewer than six are left out, being keys, formats and headings, and so is SQL. Adjacent literals and the lines of a comment are one text.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 && $# -le 3 && ${2:-0}${3:-0} =~ ^[0-9]+$ ]] || { echo "usage: scripts/sample-words.sh SEED [LITERALS [COMMENTS]]" >&2; exit 2; }
exec python3 - "$1" "${2:-100}" "${3:-30}" <<'PYTHON'
import hashlib
import re
import subprocess
import sys

seed, literals, comments = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
FOLDERS = ("agent", "base", "cli", "controller", "kernels", "lab")
TOKEN = re.compile(r'''(?P<comment>(?://[^\n]*(?:\n[ \t]*(?=//))?)+)|(?P<block>/\*.*?\*/)
  |(?P<raw>R"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)")|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<char>'(?:[^'\\\n]|\\.)+')''', re.S | re.X)

SQL = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|PRAGMA)\b")


def words(text):
    return re.findall(r"[A-Za-z']{2,}", text)


def texts(path):
    """(kind, line, text) of a source."""
    source = open(path, encoding="utf-8").read()
    joined, begin, end = "", 0, -1   # adjacent literals are one

    def literal():
        if len(words(joined)) >= 3 and len(joined.split()) >= 3 and not SQL.match(joined):
            yield "literal", source.count("\n", 0, begin) + 1, joined

    for found in TOKEN.finditer(source):
        if found["text"] or found["raw"]:
            if source[:found.start()].rstrip().endswith("#include"):
                continue
            part = found["text"][1:-1] if found["text"] else found["raw"][found["raw"].index("(") + 1:found["raw"].rindex(")")]
            if end < 0 or source[end:found.start()].strip():
                yield from literal()
                joined, begin = "", found.start()
            joined, end = joined + part, found.end()
        elif found["comment"]:
            text = " ".join(re.sub(r"^[ \t]*//+ ?", "", line) for line in found["comment"].splitlines())
            if len(words(text)) >= 6:
                yield "comment", source.count("\n", 0, found.start()) + 1, text
    yield from literal()


files = subprocess.run(["git", "ls-files", "-z", "--", *(f"{folder}/*.{end}" for folder in FOLDERS for end in ("cc", "h", "cu", "cuh"))],
                       check=True, capture_output=True, text=True).stdout.split("\0")
drawn = {"literal": [], "comment": []}
for file in filter(None, files):
    for kind, line, text in texts(file):
        drawn[kind].append((hashlib.sha256(f"{seed}\0{file}\0{text}".encode()).hexdigest(), f"{file}:{line}", " ".join(text.split())))
for kind, number in (("literal", literals), ("comment", comments)):
    print(f"{number} of {len(drawn[kind])} {kind}s")
    for _, where, text in sorted(drawn[kind])[:number]:
        print(f"  {where}  {text}")
PYTHON
