#!/usr/bin/env python3
"""A package archive that looks like Ubuntu 24.04's, made of the Debian release that this computer's apt uses.

  make_archive.py FOLDER KEY FOREIGN-KEY

KEY and FOREIGN-KEY: secret keys in $GNUPGHOME. Writes these archives for serve_archive.py, each below FOLDER/NAME/ubuntu:
  good         signed with KEY, whose public half is also in its package ubuntu-keyring
  foreign      the same, signed with FOREIGN-KEY
  no-universe  the same as good, without the component universe
  no-chrony    the same as good, without the package chrony
They have one pool: packages made here lie in FOLDER/pool/own, Debian's are fetched from its mirror when they are needed. Needs root, so
that the files of rebuilt packages keep their owners.
"""
import gzip
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from email.utils import formatdate
from pathlib import Path

COMPONENTS = ("main", "restricted", "universe", "multiverse")
POCKETS = ("", "-updates", "-security")
# What lies in Ubuntu's universe, of the packages that images are made of.
UNIVERSE = re.compile(r"fio|(lib)?openmpi|perftest|moosefs|systemd-boot|slurm|munge|prometheus|docker")
# Sections that no server has packages of: half of Debian. A virtual machine reads the lists twice as fast without them.
LEFT_OUT = {"cli-mono", "debug", "doc", "education", "electronics", "games", "gnome", "gnu-r", "golang", "graphics", "hamradio", "haskell",
            "introspection", "java", "javascript", "kde", "lisp", "mail", "news", "ocaml", "php", "ruby", "rust", "science", "sound", "tex", "video",
            "xfce"}
OS_RELEASE = """PRETTY_NAME="Look-alike of Ubuntu 24.04"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04 (made of Debian's packages)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
"""
# As Ubuntu 24.04 installs it.
SSH_BY_SOCKET = """
if [ "$1" = configure ]; then
  deb-systemd-helper disable ssh.service
  deb-systemd-helper enable ssh.socket
fi
"""


def run(*argv, **more):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, **more).stdout


def field(stanza, name):
    found = re.search(rf"^{name}: (.*)$", stanza, re.M)
    return found[1] if found else ""


# ---- Debian's part

def debian(origins):
    """(pocket, stanza) of each of Debian's packages. `origins`: gets the mirrors, each with its folder in the pool."""
    own = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(encoding="utf-8"), re.M)[1]
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(FILENAME)", "Created-By: Packages", text=True)
    for uri, release, component, file in (line.split("|") for line in listed.splitlines()):
        pocket = release.removeprefix(own)
        if component != "main" or not release.startswith(own) or pocket not in POCKETS:
            continue
        pool = origins.setdefault(uri.rstrip("/"), f"pool/debian{len(origins)}")
        for stanza in run("/usr/lib/apt/apt-helper", "cat-file", file, text=True).split("\n\n"):
            if field(stanza, "Section") not in {"", *LEFT_OUT}:
                yield pocket, re.sub(r"^Filename: ", f"Filename: {pool}/", stanza.strip("\n"), flags=re.M)


# ---- packages made here

class OwnPackages:
    def __init__(self, pool):
        self.pool = pool
        self.found = []   # (pocket, stanza)
        pool.mkdir(parents=True)

    def stub(self, name, version="24.04", depends="", files=None, pocket=""):
        """A package with these files, {path: (bytes, mode)}, and nothing else."""
        control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nSection: misc\nMaintainer: nobody <nobody@example.org>\n"
        control += (f"Depends: {depends}\n" if depends else "") + "Description: stub for a test\n"
        with tempfile.TemporaryDirectory() as root:
            for path, (content, mode) in {"DEBIAN/control": (control.encode(), 0o644), **(files or {})}.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(mode)
            Path(root).chmod(0o755)
            self.build(root, pocket, "--root-owner-group")

    def rebuilt(self, name, change):
        """Debian's package after `change(its unpacked folder)`, with a higher version."""
        with tempfile.TemporaryDirectory() as work:
            run("apt-get", "-qq", "download", name, cwd=work, stderr=subprocess.DEVNULL)
            root = f"{work}/root"
            run("dpkg-deb", "-R", str(next(Path(work).glob("*.deb"))), root)
            change(Path(root))
            edit(Path(root) / "DEBIAN/control", lambda text: re.sub(r"^(Version: .*)$", r"\1ubuntu1", text, flags=re.M))
            self.build(root, "")

    def build(self, root, pocket, *options):
        control = (Path(root) / "DEBIAN/control").read_text(encoding="utf-8").rstrip("\n")
        file = self.pool / f"{field(control, 'Package')}_{field(control, 'Version').replace(':', '.')}.deb"
        run("dpkg-deb", *options, "-b", root, str(file))
        data = file.read_bytes()
        self.found.append((pocket, f"{control}\nFilename: pool/own/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}"))


def edit(file, change):
    before = file.read_text(encoding="utf-8")
    after = change(before)
    assert after != before, f"{file}: nothing to change"
    file.write_text(after, encoding="utf-8")


def own_packages(pool, key):
    own = OwnPackages(pool)
    own.rebuilt("base-files", lambda root: edit(root / "usr/lib/os-release", lambda _: OS_RELEASE))
    own.rebuilt("openssh-server", lambda root: edit(root / "DEBIAN/postinst", lambda text: re.sub(r"\nexit 0\s*$", "\n", text) + SSH_BY_SOCKET))
    own.stub("ubuntu-keyring", files={"usr/share/keyrings/ubuntu-archive-keyring.gpg": (run("gpg", "--batch", "--export", key), 0o644)})
    for name in ("linux-firmware", "intel-microcode", "amd64-microcode"):
        own.stub(name)
    own.stub("linux-image-generic", depends="linux-image-amd64, linux-firmware, intel-microcode, amd64-microcode")
    # The one from which a node can tell that it reads this pocket: Debian's own one is older.
    own.stub("hello", "99-0ubuntu0.1", files={"usr/bin/hello": (b"#!/bin/sh\necho hello\n", 0o755)}, pocket="-security")
    # An empty list is none to apt, and Debian's updates have nothing of what UNIVERSE names.
    for pocket in POCKETS[1:]:
        own.stub(f"main-of{pocket}", pocket=pocket)
        own.stub(f"moosefs-of{pocket}", pocket=pocket)
    return own.found


# ---- archives

def write_archive(folder, key, packages, components=COMPONENTS, without=()):
    (folder / "pool").parent.mkdir(parents=True)
    (folder / "pool").symlink_to("../../pool")
    for pocket in POCKETS:
        suite, sums = folder / f"dists/noble{pocket}", ""
        for component in components:
            lists = suite / component / "binary-amd64"
            lists.mkdir(parents=True)
            data = "".join(f"{stanza}\n\n" for where, stanza in packages[pocket, component] if where not in without).encode()
            packed = gzip.compress(data, 1, mtime=0)
            (lists / "Packages.gz").write_bytes(packed)
            for name, content in (("Packages", data), ("Packages.gz", packed)):
                sums += f" {hashlib.sha256(content).hexdigest()} {len(content)} {component}/binary-amd64/{name}\n"
        release = (f"Origin: Ubuntu\nLabel: Ubuntu\nSuite: noble{pocket}\nVersion: 24.04\nCodename: noble\nDate: {formatdate(usegmt=True)}\n"
                   f"Architectures: amd64\nComponents: {' '.join(components)}\nSHA256:\n{sums}")
        run("gpg", "--batch", "--quiet", "--local-user", key, "--clearsign", "-o", str(suite / "InRelease"), input=release.encode())


def main(folder, key, foreign):
    folder, origins = Path(folder), {}
    own = own_packages(folder / "pool/own", key)
    replaced = {field(stanza, "Package") for pocket, stanza in own if not pocket}
    packages = {(pocket, component): [] for pocket in POCKETS for component in COMPONENTS}
    for pocket, stanza in [*debian(origins), *own]:
        name = field(stanza, "Package")
        if name in replaced and "Filename: pool/own/" not in stanza:
            continue
        packages[pocket, "universe" if UNIVERSE.match(name) else "main"].append((name, stanza))
    if not origins:
        sys.exit("this computer's apt has no lists of its own Debian release: apt-get update")
    (folder / "origins.json").write_text(json.dumps({pool: uri for uri, pool in origins.items()}), encoding="utf-8")
    write_archive(folder / "good/ubuntu", key, packages)
    write_archive(folder / "foreign/ubuntu", foreign, packages)
    write_archive(folder / "no-universe/ubuntu", key, packages, components=("main", "restricted", "multiverse"))
    write_archive(folder / "no-chrony/ubuntu", key, packages, without=("chrony",))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
