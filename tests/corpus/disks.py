"""From volumes to disks and back: where a volume lies, what was done to the disk since, and what a rescuer takes off it again.

All of it on files: tables by sgdisk and sfdisk, second formats by the tools that make them, zeros as holes.
"""
import os
import re
import shutil
import subprocess

import sparse

MIB = 1 << 20


def tool(*argv, text=None):
    done = subprocess.run([str(a) for a in argv], input=text, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PATH="/usr/sbin:/sbin:/usr/bin:/bin"))
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(map(str, argv)), (done.stdout + done.stderr).strip()[-500:]))


def dealt_out(layout):
    return layout["place"] in ("stripe", "span")


def write_table(path, layout):
    start, size = layout["start"] // 512, layout["size"] // 512
    place = layout["place"]
    if place in ("mbr", "mbr63"):
        tool("sfdisk", "-q", "--force", path, text="label: dos\nstart=%d, size=%d, type=83\n" % (start, size))
    elif place == "behind":
        tool("sgdisk", "--set-alignment=1", "--new=1:2048:%d" % (start - 2049), "--new=2:%d:%d" % (start, start + size - 1), path)
    elif place == "windows":
        tool("sgdisk", "--set-alignment=1", "--new=1:34:32801", "--typecode=1:0c01", "--new=2:%d:%d" % (start, start + size - 1), path)
    elif place == "gpt":
        tool("sgdisk", "--set-alignment=1", "--new=1:%d:%d" % (start, start + size - 1), path)


def place(layout, volumes, disks):
    """Makes the disks of the volumes, which are gone afterwards."""
    wipe_first = "wipefs" in layout["hurt"] and not any(h.startswith("format") for h in layout["hurt"])
    for volume in volumes if wipe_first and not dealt_out(layout) else []:
        tool("wipefs", "-q", "-a", volume)  # the partition's own; the table's comes later
    if layout["place"] == "stripe":
        for disk in disks:
            sparse.make(disk, layout["disk"])
        sparse.stripe(volumes[0], disks, layout["chunk"])
    elif layout["place"] == "span":
        for number, disk in enumerate(disks):
            sparse.make(disk, layout["disk"])
            sparse.copy(volumes[0], number * layout["disk"], layout["disk"], disk, 0)
    else:
        for volume, disk in zip(volumes, disks):
            if layout["start"] == 0:
                os.rename(volume, disk)
                os.truncate(disk, layout["disk"])
                continue
            sparse.make(disk, layout["disk"])
            write_table(disk, layout)
            sparse.copy(volume, 0, layout["size"], disk, layout["start"])
            os.remove(volume)
    for volume in volumes:
        if os.path.exists(volume):
            os.remove(volume)


def hurt(disk, what):
    amount = re.match(r"(zero|discard) (\d+) MiB(, both ends)?$", what)
    if amount:
        size = int(amount[2]) * MIB
        sparse.empty(disk, 0, size)
        if amount[3]:
            sparse.empty(disk, os.path.getsize(disk) - size, size)
    elif what == "zap":  # ends with 2 where the table was no GPT, which is zapped all the same
        subprocess.run(["sgdisk", "--zap-all", disk], capture_output=True, check=False)
    elif what == "wipefs":
        tool("wipefs", "-q", "-a", disk)
    elif what == "new table":
        tool("sgdisk", "--clear", "--new=1:2048:0", disk)
    elif what == "format vfat":
        tool("mkfs.vfat", "-F", "32", "-s", "128", "-I", disk) if os.path.getsize(disk) < 2 << 40 else tool("mkfs.exfat", disk)
    elif what == "format ntfs":
        tool("mkntfs", "-q", "-Q", "-F", "-c", "65536", "-s", "512", "-p", "0", "-H", "255", "-S", "63", disk)
    elif what == "format exfat":
        tool("mkfs.exfat", disk)
    elif what == "format swap":
        tool("mkswap", "-q", disk)
    elif what == "format ext4":
        tool("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_journal_init=1", disk)
    elif what != "none":
        raise ValueError(what)


def take_off(layout, disks, volumes):
    """The volumes as a rescuer finds them who knows where they began and how large they were: copies."""
    for volume in volumes:
        sparse.make(volume, layout["size"])
    if layout["place"] == "stripe":
        sparse.unstripe(disks, volumes[0], layout["chunk"])
    elif layout["place"] == "span":
        for number, disk in enumerate(disks):
            sparse.copy(disk, 0, layout["disk"], volumes[0], number * layout["disk"])
    else:
        for disk, volume in zip(disks, volumes):
            sparse.copy(disk, layout["start"], layout["size"], volume, 0)


def make_raw(scratch, layout, volume):
    """An archive on a bare disk: what tapes, databases and object stores look like from outside. It begins at a place of its own."""
    places = [0, 33 * MIB, 100 * MIB, 1 << 30, 300 << 30]
    at = places[int(layout["id"][:3]) % len(places)]
    archive = os.path.join(scratch, "files.tar")
    if not os.path.exists(archive):
        tool("tar", "-C", os.path.join(scratch, "files"), "-cf", archive, ".")
    sparse.make(volume, layout["size"])
    with open(volume, "r+b") as out, open(archive, "rb") as source:
        out.seek(at)
        shutil.copyfileobj(source, out)
