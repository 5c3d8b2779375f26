"""Sparse files of terabytes: copied, striped and emptied by what is allocated in them, never by their size."""
import os

PIECE = 1 << 20
BLOCK = 4096


def make(path, size):
    with open(path, "wb") as f:
        f.truncate(size)


def extents(path, start=0, size=None):
    """(offset, length) of everything allocated in [start, start + size), in order."""
    fd = os.open(path, os.O_RDONLY)
    try:
        end = os.fstat(fd).st_size if size is None else min(start + size, os.fstat(fd).st_size)
        at = start
        while at < end:
            try:
                begin = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:  # nothing behind
                return
            if begin >= end:
                return
            at = min(os.lseek(fd, begin, os.SEEK_HOLE), end)
            yield begin, at - begin
    finally:
        os.close(fd)


def pieces(path, start=0, size=None):
    """(offset, bytes) of the allocated pieces that are not all zeros; none is larger than PIECE or crosses a multiple of it."""
    with open(path, "rb") as f:
        for begin, length in extents(path, start, size):
            end = begin + length
            while begin < end:
                n = min(PIECE - begin % PIECE, end - begin)
                f.seek(begin)
                data = f.read(n)
                if data.count(0) != n:
                    yield begin, data
                begin += n


def put(f, at, data):
    """Writes without allocating blocks of zeros where nothing was."""
    for i in range(0, len(data), BLOCK):
        block = data[i:i + BLOCK]
        if block.count(0) != len(block):
            f.seek(at + i)
            f.write(block)


def copy(source, start, size, target, at):
    """Bytes [start, start + size) of source to offset `at` of target, where nothing is yet."""
    with open(target, "r+b") as f:
        for begin, data in pieces(source, start, size):
            put(f, at + begin - start, data)


def empty(path, start, size):
    """Reads as zeros afterwards and takes no room: what a discard leaves, and a dd of zeros for whoever reads it."""
    total = os.path.getsize(path)
    size = max(0, min(size, total - start))
    with open(path, "r+b") as f:
        for begin, length in list(extents(path, start, size)):
            if begin % BLOCK == 0 and length % BLOCK == 0:
                punch(f.fileno(), begin, length)
                continue
            f.seek(begin)
            f.write(b"\0" * length)  # at most what is allocated at an odd edge


def punch(fd, start, size):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size, punch_hole = 1, 2
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if libc.fallocate(fd, keep_size | punch_hole, start, size) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def is_empty(path):
    return next(pieces(path), None) is None


def stripe(volume, members, chunk):
    """Deals a volume out to members in turn, as a stripe without metadata does."""
    files = [open(m, "r+b") for m in members]
    for begin, data in pieces(volume):
        at = begin
        while at < begin + len(data):
            n = min(chunk - at % chunk, begin + len(data) - at)
            row, member = divmod(at // chunk, len(members))
            put(files[member], row * chunk + at % chunk, data[at - begin:at - begin + n])
            at += n
    for f in files:
        f.close()


def unstripe(members, volume, chunk):
    with open(volume, "r+b") as f:
        for number, member in enumerate(members):
            for begin, data in pieces(member):
                at = begin
                while at < begin + len(data):
                    n = min(chunk - at % chunk, begin + len(data) - at)
                    put(f, (at // chunk * len(members) + number) * chunk + at % chunk, data[at - begin:at - begin + n])
                    at += n
