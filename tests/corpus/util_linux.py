"""Fetches the disk images that util-linux tests blkid with: `apt-get source`, into the scratch folder, nothing of it kept."""
import glob
import gzip
import lzma
import os
import subprocess

import sparse

DISK = 1 << 40


def fetch(scratch):
    """Paths of the images, packed as they are."""
    folder = os.path.join(scratch, "util-linux")
    os.makedirs(folder, exist_ok=True)
    lists = os.path.join(folder, "lists")
    os.makedirs(lists + "/partial", exist_ok=True)
    sources = os.path.join(folder, "sources.list")
    mirror, release = os.environ.get("CORPUS_MIRROR", "http://deb.debian.org/debian"), os.environ.get("CORPUS_RELEASE", "bookworm")
    with open(sources, "w") as f:
        f.write("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n" % (mirror, release))
    # With a list and an index of its own: this machine's apt stays as it is.
    apt = ["apt-get", "-q", "-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + lists,
           "-o", "Dir::Cache::srcpkgcache=", "-o", "Dir::Cache::pkgcache=", "-o", "APT::Sandbox::User=root"]
    subprocess.run(apt + ["update"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(apt + ["source", "--download-only", "util-linux"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    archive = glob.glob(folder + "/util-linux_*.orig.tar.*")
    archive = [a for a in archive if not a.endswith(".asc")][0]
    subprocess.run(["tar", "-C", folder, "--wildcards", "-xf", archive, "*/tests/ts/blkid/images-*"], check=True)
    return sorted(p for kind in ("images-fs", "images-pt") for p in glob.glob("%s/*/tests/ts/blkid/%s/*.img.*" % (folder, kind))
                  if p.endswith((".xz", ".gz")))


def on_a_disk(image, disk):
    """The image's beginning at the beginning, its last MiB at the end as well, where what is found from the end is looked for."""
    sparse.make(disk, DISK)
    opener = lzma.open if image.endswith(".xz") else gzip.open
    at, tail = 0, b""
    with opener(image) as source, open(disk, "r+b") as target:
        while data := source.read(sparse.PIECE):
            sparse.put(target, at, data)
            at += len(data)
            tail = (tail + data)[-sparse.PIECE:]
        if at > 2 * sparse.PIECE:
            sparse.put(target, DISK - len(tail), tail)
