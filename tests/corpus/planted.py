"""The files that are put on every disk and have to come back: pictures, because photorec knows where one ends."""
import hashlib
import os
import random
import struct
import zlib


def png(rng, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + rng.randbytes(width * 3) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def plant(scratch, seed=1):
    """Writes the files below scratch/files and their digests to scratch/sums; returns {name: bytes}."""
    rng = random.Random(seed)
    files = {}
    for number in range(16):
        side = rng.choice([64, 100, 160, 220])
        files["run%d/result%02d.png" % (number % 6, number)] = png(rng, side, side)
    for name, data in files.items():
        path = os.path.join(scratch, "files", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    with open(os.path.join(scratch, "sums"), "w") as f:
        f.write("".join(hashlib.sha256(data).hexdigest() + "\n" for data in files.values()))
    return files
