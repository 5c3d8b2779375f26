"""Draws the layouts from a seed: what is on the disks, where, and what was done to them since. Knows nothing of how muster looks.

Each is a dict: id, disk (bytes), disks (how many), kind and options (make.sh), place, start and size (of the volume on each disk,
bytes), chunk (of a stripe), hurt (list, in order, done to every disk; or only to the first: "first:..."), expected (one word per disk).
"""
import random

SEED = 20261124
MIB, GIB, TB = 1 << 20, 1 << 30, 10 ** 12

# Disks as they are sold, 0.5 to 7.7 TB.
DISKS = [500107862016, 960197124096, 1000204886016, 1600321314816, 1920383410176, 2000398934016, 3200631791616, 3840755982336,
         4000787030016, 6001175126016, 6401252745216, 7681501126656]

# kind: (how many layouts, largest volume, options to choose from). The largest is what the tool makes in seconds: some write a map
# of every block.
ALL = 8 * TB
SINGLE = {
    "ext4": (26, ALL, ["", "", "-T largefile4", "-O bigalloc -C 65536", "-O ^has_journal",
                      "-E nodiscard,lazy_journal_init=1,stride=16,stripe_width=64"]),
    "ext4 1k": (4, 100 * GIB, ["-b 1024"]),
    "ext3": (5, 480 * GIB, ["-i 4194304"]),
    "ext2": (4, 480 * GIB, ["-i 4194304", "-b 2048 -i 4194304"]),
    "xfs": (26, ALL, ["", "", "", "-d su=64k,sw=4", "-d su=512k,sw=8", "-s size=4096", "-d agcount=64"]),
    "btrfs": (20, ALL, ["", "", "-m single", "-M -m single -d single", "-n 65536"]),
    "f2fs": (6, 64 * GIB, [""]),
    "vfat": (5, 460 * GIB, ["-s 128"]),
    "exfat": (6, 4 * TB, ["", "-c 1M"]),
    "ntfs": (9, 460 * GIB, [""]),
    "ntfs 64k": (5, ALL, ["-c 65536"]),
    "jfs": (5, 470 * GIB, [""]),
    "reiserfs": (5, 470 * GIB, ["", "--format 3.6 -b 4096"]),
    "nilfs2": (5, 4 * TB, ["", "-B 16384"]),
    "minix": (3, 32 * GIB, ["-i 4096"]),
    "udf": (4, 470 * GIB, ["-b 4096"]),
    "hfs": (3, 64 * GIB, [""]),
    "bfs": (2, GIB, ["-N 48"]),
    "gfs2": (4, 470 * GIB, ["-J 32"]),
    "ocfs2": (4, 470 * GIB, ["-J size=64M"]),
    "reiser4": (2, 470 * GIB, [""]),
    "apfs": (2, 470 * GIB, [""]),
    "ufs": (3, 2 * GIB, ["-s 128m -o version=1", "-s 128m -o version=2"]),
    "iso9660": (2, GIB, [""]),
    "squashfs": (2, GIB, [""]),
    "erofs": (2, GIB, [""]),
    "romfs": (1, GIB, [""]),
    "cramfs": (1, GIB, [""]),
    "swap": (3, ALL, [""]),
    "luks": (14, ALL, ["luks1", "luks2", "luks2 inner=xfs", "detached", "detached inner=xfs"]),
    "dmcrypt": (4, ALL, ["", "inner=xfs"]),
    "bcache": (5, ALL, ["", "inner=xfs"]),
    "drbd": (3, ALL, [""]),
    "raw": (12, ALL, [""]),
}
# kind: (how many layouts, numbers of disks, options)
SEVERAL = {
    "zfs": (14, [1, 1, 2, 3], {1: [""], 2: ["", "mirror"], 3: ["", "raidz"]}),
    "lvm": (22, [1, 1, 2, 3], {1: ["linear", "linear inner=xfs", "linear hole=200", "linear hole=50 inner=xfs"],
                               2: ["striped", "linear", "striped inner=xfs"], 3: ["striped", "striped hole=300"]}),
    "md": (26, [2, 2, 3, 4], {2: ["raid0 1.2 512", "raid0 1.0 64", "raid1 1.2", "raid1 0.90", "raid0 0.90 256 inner=xfs", "linear 1.2",
                                  "raid1 1.1 inner=xfs", "linear 1.0 inner=xfs"],
                              3: ["raid5 1.2 512", "raid0 1.2 1024 inner=xfs", "raid5 1.0 64 inner=xfs"],
                              4: ["raid10 1.2 512", "raid5 1.2 512 inner=xfs", "raid0 1.1 512"]}),
    "btrfs": (8, [2, 2, 3], {2: ["-d raid0 -m raid1", "-d raid1 -m raid1", "-d single -m raid1"],
                            3: ["-d raid0 -m raid1", "-d raid5 -m raid1"]}),
    # A volume dealt out by a controller or `mdadm --build`, without metadata: chunk, and "span" for one disk behind the other.
    "stripe": (30, [2, 2, 3, 4], {n: ["ext4", "xfs", "btrfs", "ext4", "xfs", "ntfs 64k", "luks luks2", "lvm linear"] for n in (2, 3, 4)}),
}
BLANK = [("never", 8), ("zeroed", 6), ("discarded", 6), ("wiped by muster", 12)]

PLACES = ["whole"] * 4 + ["gpt"] * 5 + ["mbr"] * 1 + ["mbr63"] * 2 + ["behind"] * 4 + ["windows"] * 1 + ["shifted"] * 4 + ["truncated"] * 3
SHIFTS = [63 * 512, 34 * 512, 4096 + 512, 8 * MIB, 32 * MIB, 100 * MIB, 128 * MIB, 300 * MIB, GIB, 16 * GIB, 100 * GIB]
BEHIND = [513 * MIB, 1025 * MIB, 2 * GIB + MIB, 16 * GIB + MIB, 33 * GIB, 100 * GIB + MIB, 250 * GIB]
TABLES = ("gpt", "mbr", "mbr63", "behind", "windows")
HEADS = ["zero 1 MiB", "zero 1 MiB", "zero 10 MiB", "zero 16 MiB", "zero 32 MiB", "zero 32 MiB", "zero 100 MiB", "discard 64 MiB",
         "discard 256 MiB", "discard 1024 MiB", "discard 10240 MiB"]
ENDS = ["zero 34 MiB, both ends", "zero 100 MiB, both ends", "zero 64 MiB, both ends"]
OTHERS = ["format vfat", "format ntfs", "format exfat", "format swap", "format ext4"]


def draw_hurt(rng, table):
    """What somebody did since. A table is nearly always zapped: with it no disk is blank, and nothing is asked."""
    out = []
    if table:
        out.append(rng.choice(["zap", "zap", "zap", "zap", "wipefs", "none"]))
    dice = rng.random()
    if dice < 0.30:
        out.append(rng.choice(HEADS))
    elif dice < 0.50:
        out.append(rng.choice(HEADS[4:]))
    elif dice < 0.65:
        out.append(rng.choice(ENDS))
    elif dice < 0.80:
        out.append("wipefs")
    elif dice < 0.90:  # formatted for another system, and that undone in turn
        out += [rng.choice(OTHERS), rng.choice(["wipefs", "zero 1 MiB", "zero 32 MiB"])]
    elif dice < 0.95:
        out += ["new table", "zap"]
    return [h for h in dict.fromkeys(out) if h != "none"] or ["none"]


def draw_place(rng, disk, largest):
    """(disk, place, start, size of the volume)"""
    place = rng.choice(PLACES)
    if place in ("whole", "truncated") and largest < disk:
        if largest < DISKS[0]:
            place = rng.choice(["gpt", "behind", "shifted"])
        else:
            disk = max(d for d in DISKS if d <= largest)
    # A DOS table ends at 2 TiB.
    if place in ("mbr", "mbr63"):
        largest = min(largest, 1900 * GIB)
    start = {"whole": 0, "truncated": 0, "gpt": MIB, "mbr": MIB, "mbr63": 63 * 512, "windows": 17 * MIB}.get(place)
    if place == "shifted":
        start = rng.choice(SHIFTS)
    if place == "behind":
        start = rng.choice(BEHIND)
    room = disk - start - (0 if place == "whole" else 4 * MIB)
    if place == "truncated":
        size = int(disk * rng.choice([1.25, 2, 3])) // MIB * MIB  # the disk has the beginning of it
        size = min(size, 15 * TB, largest * 2)
    elif place == "whole":
        size = disk
    elif largest > room and rng.random() < 0.6:
        size = room
    else:
        size = rng.choice([s for s in (GIB, 20 * GIB, 200 * GIB, 894 * GIB) if s <= min(room, largest)] or [min(room, largest)])
    if place != "whole":
        size = size // MIB * MIB
    return disk, place, start, size


def name_of(number, layout):
    words = [layout["kind"], layout["options"].split("inner=")[0] if layout["kind"] in ("stripe", "md", "zfs", "luks", "blank") else "",
             layout["place"]] + layout["hurt"]
    text = "-".join(w for w in words if w)
    plain = "".join(c if c.isalnum() else " " for c in text.lower())
    return "%03d-%s" % (number, "-".join(plain.split())[:60])


def single(rng, kind, largest, options):
    disk, place, start, size = draw_place(rng, rng.choice(DISKS), largest)
    hurt = draw_hurt(rng, place in TABLES)
    # As it is, such a volume is not the question; one in six stays so all the same.
    if hurt == ["none"] and rng.random() < 0.8:
        hurt = (["zap"] if place in TABLES else []) + [rng.choice(HEADS[3:])]
    return {"disk": disk, "disks": 1, "kind": kind.split()[0], "options": rng.choice(options), "place": place, "start": start, "size": size,
            "hurt": hurt}


def several(rng, kind, counts, options):
    count = rng.choice(counts)
    disk = rng.choice(DISKS if count < 3 else DISKS[:8])
    chosen = rng.choice(options[count])
    if kind == "stripe":
        if chosen == "ntfs 64k" or rng.random() < 0.8:
            place, chunk = "stripe", rng.choice([64, 256, 512, 1024, 4096]) * 1024
        else:
            place, chunk = "span", disk
        return {"disk": disk, "disks": count, "kind": "stripe", "options": chosen, "place": place, "start": 0,
                "size": min(disk // chunk, 15 * TB // count // chunk) * chunk * count, "chunk": chunk,
                "hurt": [rng.choice(["none", "none", "zero 1 MiB", "zero 32 MiB", "zero 34 MiB, both ends", "discard 64 MiB", "wipefs"])]}
    place = rng.choice(["whole", "gpt", "gpt", "behind"])
    start = {"whole": 0, "gpt": MIB, "behind": rng.choice(BEHIND[:5])}[place]
    size = disk if place == "whole" else (disk - start - 9 * MIB) // MIB * MIB
    if "hole=" in chosen and disk < 900 * GIB:
        chosen = "linear"
    return {"disk": disk, "disks": count, "kind": kind, "options": chosen, "place": place, "start": start, "size": size,
            "hurt": draw_hurt(rng, place in TABLES)}


def blank(rng, how):
    layout = {"disk": rng.choice(DISKS), "disks": 1, "kind": "blank", "options": how, "place": "whole", "start": 0, "size": 0,
              "hurt": ["none"]}
    layout["size"] = layout["disk"]
    if how in ("discarded", "wiped by muster"):  # what was there before
        layout["before"] = rng.choice(["ext4", "xfs", "btrfs", "luks luks2", "zfs", "lvm linear"])
        layout["place"] = rng.choice(["whole", "gpt"]) if how == "wiped by muster" else "whole"
        layout["start"] = MIB if layout["place"] == "gpt" else 0
        layout["size"] = layout["disk"] - (9 * MIB + layout["disk"] % MIB if layout["place"] == "gpt" else 0)
    return layout


def draw(seed=SEED):
    rng = random.Random(seed)
    out = []
    for kind, (count, largest, options) in SINGLE.items():
        out += [single(rng, kind, largest, options) for _ in range(count)]
    for kind, (count, counts, options) in SEVERAL.items():
        out += [several(rng, kind, counts, options) for _ in range(count)]
    for how, count in BLANK:
        out += [blank(rng, how) for _ in range(count)]
    rng.shuffle(out)  # so that any part of them is a sample of all
    return [dict(id=name_of(i + 1, layout), **layout) for i, layout in enumerate(out)]
