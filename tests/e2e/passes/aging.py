"""What of the code has changed since a commit, in so far as it can change what a program does.

Compared is content, over the whole tree and following moves (`git diff -M`). Two texts are the same when only comments, blank lines or
`#include` lines differ; so a file that moved, and those that include it under its new name, are not changed. Files of other kinds are
compared byte by byte, and so is a file in which it is not clear what is a comment; literals count to their last blank. Of a Markdown
page only headings and indented lines count: those are the commands that a test reads from it.
"""
import io
import re
import tokenize
from pathlib import PurePosixPath

C_LIKE = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
# Raw literals, literals, numbers (whose parts a quote may separate), comments.
C_PARTS = re.compile(rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\.?\d(?:\'?\w|\.)*|\'(?:\\.|[^\'\\\n])+\''
                     rb'|//(?:\\\n|[^\n])*|/\*.*?\*/', re.S)


def _c(data):
    literals = []

    def part(found):
        if found[0].startswith((b"//", b"/*")):
            return b" "
        if found[0][:1] in b".0123456789" and b"'" not in found[0]:
            return found[0]
        literals.append(found[0])                          # byte for byte, blanks and lines too
        return b"\0%d\0" % len(literals)

    code = C_PARTS.sub(part, data)
    if b'"' in code or b"'" in code or data.count(b"\0"):   # a quote without its other half: it is not known what is a literal
        return data
    kept, continued = [], False
    for line in code.split(b"\n"):
        line = re.sub(rb"\s+", b" ", line).strip()
        if continued or (line and not re.match(rb"# ?include\b", line)):
            kept.append(line)
        continued = line.endswith(b"\\")
    return re.sub(rb"\0(\d+)\0", lambda found: literals[int(found[1]) - 1], b"\n".join(kept))


class _Unclear(Exception):
    """It is not known where a string or a here-document of a script ends."""


HERE_DOCUMENT = re.compile(rb"<<(-?)[ \t]*(?:\\?([\w-]+)|'([\w-]+)'|\"([\w-]+)\")")
SHELL_COMMENT = re.compile(rb"#[^\n]*")


class _Shell:
    """Finds the lines of a script that are data: in a string of several lines, or in a here-document. The rest are commands."""

    def __init__(self, data):
        self.data, self.at, self.inside, self.ends, self.kept = data, 0, [], [], []
        while self.at < len(data):
            self._line()
        if self.inside or self.ends:
            raise _Unclear

    def _line(self):
        start, outside = self.at, self._in_commands()
        end = self.data.find(b"\n", start)
        whole = self.data[start:len(self.data) if end < 0 else end]
        bare = whole.strip()
        if outside and (not bare or (bare.startswith(b"#") and not (start == 0 and bare.startswith(b"#!")))):
            continued = self.data[:start].endswith(b"\\\n")
            self.kept += [whole] if continued else []
            self.at = start + len(whole) + 1
            if continued and bare:
                raise _Unclear
            return
        while self.at < len(self.data) and self.data[self.at:self.at + 1] != b"\n":
            self._step()
        line = self.data[start:self.at]
        self.kept.append(line if not self._in_commands() or line.endswith((b"\\ ", b"\\\t")) else line.rstrip())
        self.at += 1
        while self.ends:
            self._here_document(*self.ends.pop(0))

    def _here_document(self, dash, delimiter):
        while self.at < len(self.data):
            end = self.data.find(b"\n", self.at)
            line = self.data[self.at:len(self.data) if end < 0 else end]
            self.at += len(line) + 1
            self.kept.append(line)
            if (line.lstrip(b"\t") if dash else line) == delimiter:
                return
        raise _Unclear

    def _in_commands(self):
        return not self.inside or self.inside[-1] == "("

    def _in_quotes(self):
        """Whether a brace stands in double quotes, where a single quote is a character."""
        return next((kind == '"' for kind in reversed(self.inside) if kind != "{"), False)

    def _step(self):
        """One character, or what belongs together; self.inside is what is open: ' $' " ` ( { and (( of arithmetic."""
        kind, rest = self.inside[-1] if self.inside else "", self.data[self.at:self.at + 3]
        one, size = rest[:1], 1
        if kind == "'":
            self._close(one == b"'")
        elif one == b"\\":
            size = 1 if rest[1:2] == b"\n" else 2
        elif kind == "$'":
            self._close(one == b"'")
        elif rest == b"$((":
            size = self._open("((", 3)
        elif rest[:2] in (b"$(", b"${"):
            size = self._open("(" if rest[:2] == b"$(" else "{", 2)
        elif one == b"`":
            self._close(True) if kind == "`" else self._open("`", 1)
        elif one == b'"':
            self._close(True) if kind == '"' else self._open('"', 1)
        elif kind == "{":
            self._close(one == b"}") or (one == b"'" and not self._in_quotes() and self._open("'", 1))
        elif kind != '"':
            size = self._command(kind, rest)
        self.at += size

    def _command(self, kind, rest):
        """A character outside of strings."""
        first = self.at == 0 or self.data[self.at - 1:self.at] in b" \t\n;&|("
        if kind == "((":
            if rest[:1] == b"(":
                return self._open("(", 1)
            self._close(rest[:2] == b"))")
            return 2 if rest[:2] == b"))" else 1
        if rest[:2] == b"((" and first:
            return self._open("((", 2)
        if rest[:2] == b"$'":
            return self._open("$'", 2)
        if rest[:1] == b"'":
            return self._open("'", 1)
        if rest[:1] == b"(":
            return self._open("(", 1)
        if rest[:1] == b")":
            self._close(kind == "(")                       # else that of a pattern of `case`
        if rest[:1] == b"#" and first:
            return len(SHELL_COMMENT.match(self.data, self.at)[0])
        if rest[:3] == b"<<<":
            return 3
        if rest[:2] == b"<<":
            found = HERE_DOCUMENT.match(self.data, self.at)
            if not found:
                raise _Unclear
            self.ends.append((found[1], found[2] or found[3] or found[4]))
            return len(found[0])
        return 1

    def _open(self, kind, size):
        self.inside.append(kind)
        return size

    def _close(self, yes):
        if yes:
            self.inside.pop()
        return yes


def _shell(data):
    try:
        return b"\n".join(_Shell(data).kept)
    except _Unclear:
        return data


OPEN_YAML = re.compile(rb"""(?:^|[-:,\[{] )\s*(?:"(?:\\.|[^"\\])*|'[^']*)$""")


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
        if OPEN_YAML.search(line):                          # a string goes on in the next line
            return data
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
