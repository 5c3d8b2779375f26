"""Tests of what is kept for later calls of run.sh: under which key images are, what is removed and when, what a line says of them.
tests/e2e/ledger_test.py runs them with its own."""
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from . import images, lines, stands_on, tree as trees
from .repository import LedgerTest

ROOT = Path(__file__).resolve().parents[3]
DAY = 24 * 3600
# Of the rest of the product the makers of images use these, and what they say of an image is in its own key: what is read of recipes,
# playbooks and spec, sources of packages, the controller's options.
IN_THE_IMAGES_KEY = {"controller/options", "controller/plan", "controller/spec"}


def digest(letter):
    return letter * 64


def put(folder, name, content=None, made=None, used=None, size=4096):
    """An entry of the cache: an image with this digest, else something that a script made."""
    entry = folder / name
    entry.mkdir(parents=True)
    if content:
        (entry / "manifest.json").write_text(json.dumps({"digest": f"sha256:{content}", "files": []}, separators=(",", ":")))
    (entry / images.SEAL).write_text("x" * size)
    for path, when in ((entry / images.SEAL, made), (entry, used)):
        if when:
            os.utime(path, (when, when))
    return entry


class Code(LedgerTest):
    def key(self):
        return images.key_of(trees.Tree(self.repo.root), self.repo.root / "build")

    def changes(self, *arguments, how=None):
        """The key after a change that is committed and built; the old one holds until both are done."""
        before = self.key()
        (how or self.repo.edit)(*arguments)
        self.assertEqual(self.key(), before)
        self.repo.commit("a change")
        self.assertEqual(self.key(), before)
        self.repo.build()
        return self.key()

    def test_the_key_changes_with_the_code_that_makes_images_and_that_the_programs_have(self):
        self.repo.write("agent/steps/file.cc", "int mode = 0644;\n")
        self.repo.write("controller/image/image.cc", "int level = 9;\n")
        self.repo.commit("makers")
        self.repo.build()
        known = [self.key()]
        self.assertRegex(known[0], "^code-[0-9a-f]{16}$")
        for path, old, new in (("agent/steps/file.cc", "0644", "0640"), ("controller/image/image.cc", "9", "10"), ("base/text.cc", "text", "words")):
            known.append(self.changes(path, old, new))
        self.assertEqual(len(set(known)), 4)
        known.append(self.changes("agent/steps/line.cc", "int line;\n", how=self.repo.write))
        self.assertEqual(len(set(known)), 5)

    def test_comments_moves_and_other_code_change_no_key(self):
        before = self.key()
        self.assertEqual(self.changes("base/text.cc", "int text;", '#include "base/x.h"\n// a text\nint text;'), before)
        self.assertEqual(self.changes("agent/answer.cc", "42", "43"), before)
        self.assertEqual(self.changes("playbooks/mpi.yaml", "mpi", "mpich"), before)
        (self.repo.root / "sys").mkdir()
        self.assertEqual(self.changes("mv", "base/text.cc", "sys/words.cc", how=self.repo.git), before)

    def test_programs_that_name_no_commit_share_images_only_among_themselves(self):
        known = [self.key()]
        for version in ("0.1.0", "0.1.0+20260102.030405.g0123456", f"0.1.0+20260102.030405.g{self.repo.git('rev-parse', '--short', 'HEAD')}.dirty"):
            self.repo.build(version)
            known.append(self.key())
            self.assertRegex(known[-1], "^programs-[0-9a-f]{16}$")
        self.assertEqual(len(set(known)), 4)
        shutil.rmtree(self.repo.root / ".git")
        self.assertEqual(self.key(), known[-1])
        shutil.rmtree(self.repo.root / "build")
        self.assertIsNone(self.key())

    def test_nothing_else_of_the_product_decides_what_is_in_an_image(self):
        used = set()
        for maker in images.MAKERS:
            self.assertTrue((ROOT / maker).exists(), maker)
            for path in (ROOT / maker).rglob("*") if (ROOT / maker).is_dir() else ():
                if path.suffix in (".cc", ".h"):
                    used |= set(re.findall(r'(?m)^#include "(.+)/[^/"]+"', path.read_text(encoding="utf-8")))
        self.assertEqual({folder for folder in used if not any(stands_on.matches(maker, folder) for maker in images.MAKERS)}, IN_THE_IMAGES_KEY)


class Folder(LedgerTest):
    def seen(self, **variables):
        """The variables that a test gets."""
        seen = self.repo.root / "build/seen"
        self.repo.passes("beta", DO=f'[[ -z $MUSTER_IMAGE_CACHE || -d $MUSTER_IMAGE_CACHE ]] && echo "$MUSTER_IMAGE_CACHE $MUSTER_E2E_CACHE" >{seen}',
                         **variables)
        return seen.read_text().rstrip("\n").split(" ")

    def key(self):
        return images.key_of(trees.Tree(self.repo.root), self.repo.root / "build")

    def test_the_folder_stays_and_is_that_of_the_code(self):
        cache = self.repo.root / "build/e2e-images"
        self.assertEqual(self.seen(), [f"{cache}/{self.key()}", str(cache)])
        self.assertEqual((cache.stat().st_mode & 0o777, (cache / self.key()).exists()), (0o700, False))   # an empty one goes again
        kept = put(cache / self.key(), "a")
        self.assertEqual(self.repo.command("bash", "tests/e2e/run.sh", "alpha", "beta", DO=f"test -d $MUSTER_IMAGE_CACHE/{kept.name}").returncode, 0)
        self.assertTrue(kept.is_dir())
        self.repo.edit("base/text.cc", "text", "words")
        self.repo.commit("other code")
        self.repo.build()
        self.assertNotEqual(self.seen()[0], str(kept.parent))

    def test_a_folder_of_ones_own_has_the_key_too(self):
        other = self.repo.root / "build/other"
        put(other, "a", digest("a"), made=1, used=1)   # as a controller that was started by hand leaves it there
        self.assertEqual(self.seen(MUSTER_IMAGE_CACHE=str(other)), [f"{other}/{self.key()}", str(other)])
        self.assertTrue((other / "a/manifest.json").is_file())

    def test_other_programs_in_their_place_share_no_images(self):
        self.assertEqual(self.seen(MUSTER_MUSTERD="/dev/null"), ["", str(self.repo.root / "build/e2e-images")])
        self.assertEqual(self.repo.rows(), [])

    def test_what_came_while_the_programs_were_exchanged_goes(self):
        folder = self.repo.root / "build/e2e-images" / self.key()
        old = put(folder, "old", made=time.time() - 60)
        builds = f"mkdir {folder}/new; echo x >{folder}/new/{images.SEAL}"
        self.repo.passes("beta", DO=builds)
        self.assertTrue((folder / "new").is_dir())
        shutil.rmtree(folder / "new")
        self.repo.write("build/other", "#!/bin/sh\necho 'muster 0.2.0'\n")
        (self.repo.root / "build/other").chmod(0o755)
        self.assertIn("not recorded", self.repo.passes("beta", DO=f"{builds}; cp build/other build/muster"))
        self.assertEqual((old.is_dir(), (folder / "new").is_dir()), (True, False))

    def test_what_is_old_unfinished_or_too_much_is_removed_by_one_who_is_alone(self):
        cache, now = self.repo.root / "build/cache", time.time()
        first, second = put(cache / "code-1", "a", used=now - 300), put(cache / "code-1", "b", used=now - 100)
        third, made = put(cache / "code-2", "c", used=now - 200), put(cache / "made", "root-1", used=now - 50)
        gone = [put(cache / "code-3", "d", made=now - 15 * DAY), put(cache / "code-1", "e.0123abcd"), put(cache / "made", "root-2.77")]
        (cache / "made" / "empty").mkdir()
        strange = put(cache / "elsewhere", "e", made=1, used=1)
        there = [first, second, third, made, strange]
        with mock.patch.object(images, "LIMIT", 2 * 4096), open(cache / "lock", "w", encoding="utf-8") as other:
            fcntl.flock(other, fcntl.LOCK_SH)
            with images.Cache(cache):
                self.assertTrue(all(entry.is_dir() for entry in there + gone))
            fcntl.flock(other, fcntl.LOCK_UN)
            with images.Cache(cache):
                self.assertEqual([entry.is_dir() for entry in there + gone], [False, True, False, True, True, False, False, False])
                with self.assertRaises(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                put(cache / "code-2", "f", used=now)
            self.assertEqual([entry.is_dir() for entry in (second, made, cache / "code-2/f")], [False, True, True])
            self.assertEqual(sorted(entry.name for entry in cache.iterdir()), ["code-2", "elsewhere", "lock", "made"])


class Counts(LedgerTest):
    def test_images_that_were_there_before_are_cached_all_others_built(self):
        with tempfile.TemporaryDirectory() as folder, images.Cache(Path(folder)) as cache:
            old = put(cache.path / "code-1", "old", digest("a"), used=1)
            put(cache.path / "code-1", "again", digest("b"))
            share = images.OfTest(cache, "code-1")
            before, now = int(share.began * 1000) - 1000, int(share.began * 1000) + 1000
            self.assertIsNone(share.counted([]))
            self.assertEqual(share.counted([{}]), {"built": 0, "cached": 0})
            # The second was built again and is the same; the third was made older by the test; the last was built in one lab, then taken.
            records = [{digest("a"): before, digest("b"): now, digest("c"): before, digest("d"): now}, {digest("d"): now, digest("a"): before}]
            self.assertEqual(share.counted(records), {"built": 3, "cached": 1})
            self.assertGreater(old.stat().st_mtime, share.began - 1, "it was used")
            self.assertEqual(images.OfTest(cache, None).counted(records), {"built": 4, "cached": 0})

    def test_the_images_of_a_controller_are_those_it_has_or_had(self):
        with tempfile.TemporaryDirectory() as folder:
            image = Path(folder) / "images/cpu"
            for name, content in ((digest("a"), '{"built_at": 7}'), (digest("b"), "{}"), (".layers", '{"built_at": 8}')):
                (image / name).mkdir(parents=True)
                (image / name / "build.json").write_text(content)
            (image / "current").symlink_to(digest("a"))
            self.assertEqual(images.of_state(folder), {digest("a"): 7, digest("b"): 0})

    def test_a_line_has_how_many_images_were_built_and_cached(self):
        folder = self.repo.root / "build/e2e-images" / images.key_of(trees.Tree(self.repo.root), self.repo.root / "build")
        put(folder, "old", digest("a"))
        row = json.dumps({"images": {digest("a"): 1, digest("b"): 2}})
        self.repo.passes("beta", DO=f"""printf '%s\\n' '{row}' >>"$MUSTER_E2E_USED" """)
        self.assertEqual(json.loads(self.repo.rows()[-1])["images"], {"built": 1, "cached": 1})
        self.fine()
        self.repo.passes("beta", DO="""printf '%s\\n' '{"images": {"a": 1}}' '{"images": 7}' '{}' >>"$MUSTER_E2E_USED" """)
        self.assertNotIn("images", json.loads(self.repo.rows()[-1]))
        self.fine()


class Roots(unittest.TestCase):
    def test_a_stock_root_is_made_once_of_the_same_packages_and_archives(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euc", """
                source tests/e2e/hosts/stock.sh
                archives=one
                chroot_sources() { echo "deb $archives"; }
                mmdebstrap() { echo "$*" >>$W/made; mkdir -p "$6/etc"; echo "$4" >"$6/etc/made"; ln "$6/etc/made" "$6/etc/same"; chmod 4755 "$6/etc/made"; }
                made() { wc -l <$W/made; }
                debian_root $W/alone minbase udev; [[ $(made) = 1 ]]
                export MUSTER_E2E_CACHE=$W/cache
                debian_root $W/first minbase udev; [[ $(made) = 2 ]]
                debian_root $W/again minbase udev; [[ $(made) = 2 ]]
                diff -r $W/first $W/again; [[ $(stat -c '%a %h' $W/again/etc/made) = '4755 2' ]]
                debian_root $W/others minbase udev,dbus; archives=two debian_root $W/elsewhere minbase udev; [[ $(made) = 4 ]]
                [[ $(ls $W/cache/made | grep -c '^debian-[0-9a-f]*$') = 3 ]]
                mmdebstrap() { false; }
                ! debian_root $W/fails important udev; [[ $(ls $W/cache/made | wc -l) = 3 ]]
                """], cwd=ROOT, env={**os.environ, "W": folder}, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
