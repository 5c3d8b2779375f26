"""What of the code has changed since a commit, in so far as it can change what a program does.

Compared is content, over the whole tree and following moves (`git diff -M`). Two texts are the same when only comments, blank lines or
`#include` lines differ; so a file that moved, and those that include it under its new name, are not changed. Files of other kinds are
compared byte by byte. Of a Markdown page only headings and indented lines count: those are the commands that a test reads from it.
"""
import io
import re
import tokenize
from pathlib import PurePosixPath

C_LIKE = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
# Raw literals, literals, comments. A quote between digits separates them.
C_PARTS = re.compile(rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
                     rb'|//(?:\\\n|[^\n])*|/\*.*?\*/', re.S)


def _c_part(found):
    part = found[0]
    if part.startswith((b"//", b"/*")):
        return b" "
    return repr(part).encode() if b"\n" in part else part   # a raw literal of several lines is data: kept whole, on one line


def _c(data):
    lines = (re.sub(rb"\s+", b" ", line).strip() for line in C_PARTS.sub(_c_part, data).split(b"\n"))
    return b"\n".join(line for line in lines if line and not re.match(rb"# ?include\b", line))


def _shell(data):
    kept, ends = [], []
    for number, line in enumerate(data.split(b"\n")):
        if ends:                                            # inside a here-document: data
            kept.append(line)
            if line.lstrip(b"\t") == ends[0]:
                ends.pop(0)
            continue
        bare = line.strip()
        if not bare or (bare.startswith(b"#") and not (number == 0 and bare.startswith(b"#!"))):
            continue
        ends = [found[1] for found in re.findall(rb"(?<!<)<<-?\s*(['\"]?)(\w+)\1", line)]
        kept.append(line.rstrip())
    return b"\n".join(kept)


def _yaml(data):
    kept, inside = [], None
    for line in data.split(b"\n"):
        indent = len(line) - len(line.lstrip(b" "))
        if inside is not None and (not line.strip() or indent > inside):   # a block scalar: data
            kept.append(line)
            continue
        inside = None
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        if re.search(rb"(?:^|[:-] )\s*[|>][-+0-9]{0,2}\s*(?:#.*)?$", line):
            inside = indent
        kept.append(line.rstrip())
    return b"\n".join(kept).rstrip(b"\n")


def _python(data):
    try:
        tokens = tokenize.tokenize(io.BytesIO(data).readline)
        dropped = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING)
        return repr([(token.type, token.string) for token in tokens if token.type not in dropped]).encode()
    except (tokenize.TokenError, SyntaxError):
        return data


def _page(data):
    return b"\n".join(line.rstrip() for line in data.split(b"\n") if line.startswith((b"    ", b"## ")))


def what_matters(path, data):
    kind = PurePosixPath(path).suffix
    if kind in C_LIKE:
        return _c(data)
    for kinds, part in (((".sh",), _shell), ((".yaml", ".yml"), _yaml), ((".py",), _python), ((".md",), _page)):
        if kind in kinds:
            return part(data)
    return data


class Change:
    """A file of the newer commit and what it was: `old` or `new` is None for one that came or went."""

    def __init__(self, mode, old, new):
        self.mode_changed, (self.old, self.old_blob), (self.new, self.new_blob) = mode, old, new

    def shown(self):
        return self.new or f"{self.old} (gone)"


def differences(tree, old, new):
    """Changes between two commits whose bytes or modes differ: pure moves are not among them."""
    fields = tree.git("diff", "--raw", "-z", "-M", "-l0", "--no-abbrev", old, new).decode().split("\0")
    found, at = [], 0
    while at < len(fields) and fields[at]:
        old_mode, new_mode, old_blob, new_blob, how = fields[at].lstrip(":").split(" ")
        moved = how[0] in "RC"
        paths = fields[at + 1:at + (3 if moved else 2)]
        at += 1 + len(paths)
        before = (None, None) if how == "A" else (paths[0], old_blob)
        after = (None, None) if how == "D" else (paths[-1], new_blob)
        mode = how not in ("A", "D") and old_mode != new_mode
        if old_blob != new_blob or mode:
            found.append(Change(mode, before, after))
    return found


class Ages:
    """Answers which files make a pass of a commit old. What was compared once is kept."""

    def __init__(self, tree, head):
        self.tree, self.head = tree, head
        self.since, self.verdicts = {}, {}

    def _text(self, path, blob):
        return what_matters(path, self.tree.blob(blob)) if blob else b""

    def _real(self, change):
        key = (change.old, change.old_blob, change.new, change.new_blob)
        if key not in self.verdicts:
            self.verdicts[key] = change.mode_changed or (
                self._text(change.old, change.old_blob) != self._text(change.new, change.new_blob))
        return self.verdicts[key]

    def changed(self, commit, concerns):
        """The changes since `commit` in files for which concerns(path) holds, by their old path or their new one."""
        if commit not in self.since:
            self.since[commit] = differences(self.tree, commit, self.head)
        return [change.shown() for change in self.since[commit]
                if any(path and concerns(path) for path in (change.old, change.new)) and self._real(change)]
