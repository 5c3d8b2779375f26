"""second_xfs.py DEVICE: puts XFS' second superblock in the place of the first. It is looked for where one disk's size puts it."""
import os
import sys

fd = os.open(sys.argv[1], os.O_RDWR)
size = os.lseek(fd, 0, os.SEEK_END)
block = 4096
groups = [size // block // n for n in (4, 8, 16, 32, 64)] + [(1 << 28) - 1]
# In blocks: a group is made a multiple of the stripe, and one shorter than that where all would begin on one disk.
stripes = [1, 16, 64, 128, 256]
places = {(blocks // stripe + more) * stripe for blocks in groups for stripe in stripes for more in (-1, 0, 1)}
places = {at * block for at in places | {at - stripe for at in places for stripe in stripes}}
for at in sorted(places):
    if 0 < at < size and os.pread(fd, 4, at) == b"XFSB":
        os.pwrite(fd, os.pread(fd, 4096, at), 0)
        os.fsync(fd)
        sys.exit(0)
sys.exit("no second superblock of XFS")
