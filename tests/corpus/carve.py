"""Brings planted files back without any file system: their bytes are looked for, and photorec has to find them, too."""
import hashlib
import os
import shutil
import subprocess

import sparse

WINDOW = 16 << 20


def find(volume, files):
    """Offset of a planted file that lies whole and in one piece in the volume, or None."""
    heads = {data[:512]: data for data in files.values()}
    for at, data in sparse.pieces(volume):
        for offset in range(-at % 512, len(data), 512):
            whole = heads.get(data[offset:offset + 512])
            if whole and read(volume, at + offset, len(whole)) == whole:
                return at + offset
    return None


def read(path, at, size):
    with open(path, "rb") as f:
        f.seek(at)
        return f.read(size)


def photorec(volume, at, sums, scratch):
    """Runs photorec on what is allocated around `at`. The holes of terabytes between would take it hours and show it nothing."""
    folder = os.path.join(scratch, "carved")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    image = os.path.join(folder, "image")
    begin = max(0, at - WINDOW // 2) // 4096 * 4096
    with open(image, "wb") as out:
        for piece_at, data in sparse.pieces(volume, begin, WINDOW):
            if piece_at % 512 == 0:
                out.write(data + b"\0" * (-len(data) % 512))
    script = "partition_none,fileopt,everything,disable,png,enable,wholespace,search"
    try:
        subprocess.run(["photorec", "/d", folder + "/out", "/cmd", image, script], cwd=folder, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=3600, check=False, env=dict(os.environ, TERM="dumb"))
    except subprocess.TimeoutExpired:
        return False
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".png") and hashlib.sha256(read(os.path.join(path, name), 0, 1 << 22)).hexdigest() in sums:
                return True
    return False


def carve(volumes, files, sums, scratch):
    """True if photorec gets a planted file back from any of the volumes."""
    for volume in volumes:
        at = find(volume, files)
        if at is not None and photorec(volume, at, sums, scratch):
            return True
    return False
