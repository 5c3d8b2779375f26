"""Tests of what is read from texts without a repository: what in a file is data (aging.py), and what a page claims (pages.py).
tests/e2e/ledger_test.py runs them with its own."""
import unittest
from pathlib import Path

from . import aging, pages

HERE = Path(__file__).resolve().parents[1]


# A path, a text and another one: they differ in what a program does with them.
DIFFERENT = (
    ("a.cc", 'auto a = "// x";', 'auto a = "// y";'), ("a.cc", "auto a = R\"(\n// x\n)\";", "auto a = R\"(\n// y\n)\";"),
    ("a.cc", "int a = 1'000; // it's", "int a = 2'000; // it's"), ("a.cc", 'f("  x");', 'f(" x");'),
    ("a.cc", "f('\\\\', \"a  b\");", "f('\\\\', \"a b\");"), ("a.cc", "f(u8'\"', \"// x\");", "f(u8'\"', \"// y\");"),
    ("a.cc", 'R"(a  b)"', 'R"(a b)"'), ("a.cc", '#define A \\\n\nint b;\n', '#define A \\\nint b;\n'),
    ("a.h", 'don\'t // x\n', 'don\'t // y\n'), ("a.sh", "cat <<E\n# x\nE\n", "cat <<E\n# y\nE\n"), ("a.sh", "#!/bin/sh\n", "#!/bin/bash\n"),
    ("a.sh", "cat <<'E-O'\n# x\nE-O\n", "cat <<'E-O'\n# y\nE-O\n"), ("a.sh", "cat <<E\n\tE\n# x\nE\n", "cat <<E\n\tE\n# y\nE\n"),
    ("a.sh", "cat <<-E\n\t# x\n\tE\n", "cat <<-E\n\t# y\n\tE\n"), ("a.sh", "cat <<A <<B\nA\n# x\nB\n", "cat <<A <<B\nA\n# y\nB\n"),
    ("a.sh", "a='\n# x\n'\n", "a='\n# y\n'\n"), ("a.sh", 'a="it\'s\n# x\n"\n', 'a="it\'s\n# y\n"\n'),
    ("a.sh", "a='b\n\nc'\n", "a='b\nc'\n"), ("a.sh", "echo # it's\na='\n# x\n'\n", "echo # it's\na='\n# y\n'\n"),
    ("a.sh", "a=$'\\'\n# x\n'\n", "a=$'\\'\n# y\n'\n"), ("a.sh", "echo $((1<<2)) '\n# x\n'\n", "echo $((1<<2)) '\n# y\n'\n"),
    ("a.sh", "a='b  \nc'\n", "a='b\nc'\n"), ("a.sh", "cat <<E.O\n# x\nE.O\n", "cat <<E.O\n# y\nE.O\n"),
    ("a.sh", "echo 'open\n# x\n", "echo 'open\n# y\n"), ("a.yaml", "a: |\n  # x\nb: 1\n", "a: |\n  # y\nb: 1\n"),
    ("a.yaml", 'a: "b\n  # x\n  c"\n', 'a: "b\n  # y\n  c"\n'), ("a.py", "a = '# x'\n", "a = '# y'\n"), ("a.sql", "-- x\n", "-- y\n"),
    ("a.md", "    run x\n", "    run y\n"),
)
# They differ in comments and blanks alone.
SAME = (
    ("a.cc", "int a; // it's", "int a;"), ("a.cc", "f('\"', 1'000,  2); /* \" */", "f('\"', 1'000, 2);"),
    ("a.cc", "int a = 1'000;", "int a = 1'000;  // it's"), ("a.sh", "a=(\n  b\n  # x\n)\n", "a=(\n  b\n)\n"),
    ("a.sh", "echo \"$(f 'a\"b')\" ${a#'}'} \\' $#\n# x\n", "echo \"$(f 'a\"b')\" ${a#'}'} \\' $#\n"),
    ("a.sh", "case x in\n  a) f;;  # it's\nesac\n# x\n", "case x in\n  a) f;;  # it's\nesac\n"),
    ("a.sh", "cat <<E\n'\nE\n# x\n", "cat <<E\n'\nE\n"), ("a.sh", "x\n# y\n", "x\n"), ("a.yaml", "a: it's\n# x\n", "a: it's\n"),
    ("a.yaml", "a: 1\n  # y\n", "a: 1\n"), ("a.py", "a = 1  # x\n", "a = 1\n"), ("a.md", "words\n    run\n", "others\n    run\n"),
)


class Data(unittest.TestCase):
    def test_what_is_data_is_no_comment(self):
        for path, was, now in DIFFERENT:
            with self.subTest(path=path, was=was):
                self.assertNotEqual(aging.what_matters(path, was.encode()), aging.what_matters(path, now.encode()))
        for path, was, now in SAME:
            with self.subTest(path=path, was=was):
                self.assertEqual(aging.what_matters(path, was.encode()), aging.what_matters(path, now.encode()))


class Claims(unittest.TestCase):
    def claims(self, text):
        """What a page's text claims, and what it may not say."""
        names = {path.stem for path in HERE.glob("*.sh")} - {"run", "lib"}
        ordinary = pages._ordinary(names, ["images/debian-13.yaml"])
        marked = pages._marked(text, names, ordinary)
        return {name for _, name in pages.claimed(marked)}, [words for _, words in pages.forbidden(marked)]

    def test_claims(self):
        for text, names in (
                ("`kexec`, `manual`, `phy` passed.", "kexec manual phy"), ("Proved by `tests/e2e/run.sh managed-head`", "managed-head"),
                ("Shown by the test `stack`", "stack"), ("**shown** by `stack`", "stack"), ("Was _shown_ by `ceph`, by `stack`", "ceph stack"),
                ("The tests `stack` and `ceph` have all passed.", "stack ceph"), ("| `stack` | passed |", "stack"),
                ("`stack` is green", "stack"), ("Green: `stack`, `ceph`", "stack ceph"),
                ("All of this was tried in the lab by the test `rails`.", "rails"),
                ("It was run whole, drives and all, in `moosefs-takeover`.", "moosefs-takeover"),
                ("`tests/e2e/run.sh stack ceph` ran to its end", "stack ceph"),
                ("tests/e2e/stack.sh demonstrates it", "stack"), ("# shown\nby `stack`", "stack"), ("It passed ([`stack`](x.md))", "stack"),
                ("`phy` passes.\n- `manual`", "phy"), ("\"`stack` passed\"", "stack"),
                ("`stack` passed on b953f06 and on commit 9636fbc", "stack")):
            with self.subTest(text):
                self.assertEqual(self.claims(text)[0], set(names.split()))
        for text in ("Run `tests/e2e/run.sh stack`.", "Which of these passed: `tests/e2e/run.sh status`",
                     "It shows `ceph` and its `packages` to you.",
                     "| a disk | \"what is found is shown by its name\"; e2e `forgotten-disk` |", "No GPU ran its checks (tests/e2e/hgx.sh).",
                     "The test `stack` drains a node. It passed it on.", "| elements verified | `stack` |",
                     "The recipe `debian-13` is what it tries first.",
                     "`tests/e2e/run.sh managed-head` never ran on it"):
            with self.subTest(text):
                self.assertEqual(self.claims(text), (set(), []))

    def test_what_no_page_can_know(self):
        for text in ("tried on a real DGX H100", "`stack` passed on b953f06 and on commit 9636fbc", "All 43 end-to-end tests are green",
                     "It ran on\nreal servers.", "43 of the end-to-end tests pass", "every end-to-end test passed", "Tested on real hardware"):
            with self.subTest(text):
                self.assertNotEqual(self.claims(text)[1], [])
        for text in ("It never ran on real servers.", "Not tested on a real DGX.", "What passed on which commit: `tests/e2e/run.sh status`"):
            with self.subTest(text):
                self.assertEqual(self.claims(text)[1], [])
