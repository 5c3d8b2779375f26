#!/usr/bin/env python3
"""scripts/dead_links.py FOLDER: links of the pages in a folder that lead to no file in it, one a line; exit 1 if there is one.

Links of the web, and headings, are not followed.
"""
import os
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def main():
    root = os.path.realpath(sys.argv[1])
    dead = []
    for page in sorted(pathlib.Path(root).rglob("*.md")):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            path = os.path.realpath(page.parent / target)
            if not os.path.exists(path) or os.path.commonpath([root, path]) != root:
                dead.append(f"{page.relative_to(root)}: {target}")
    print("".join(line + "\n" for line in dead), end="", file=sys.stderr)
    sys.exit(1 if dead else 0)


if __name__ == "__main__":
    main()
