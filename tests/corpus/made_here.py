"""File systems whose tools fill them by themselves: made without the guest, which is quicker.

No kernel is asked and no device made: each tool writes a file of the volume's size.
"""
import os

from disks import tool

EXT = "-q -F -E nodiscard,lazy_journal_init=1"


def knows(kind):
    return kind in MAKERS


def make(kind, options, volume, scratch):
    """Leaves the volume's size as it is."""
    size = os.path.getsize(volume)
    MAKERS[kind](options.split(), volume, os.path.join(scratch, "files"), scratch)
    os.truncate(volume, size)


def ext(name):
    return lambda options, volume, files, _: tool("mkfs." + name, *EXT.split(), "-d", files, *options, volume)


def xfs(options, volume, files, scratch):
    tool("mkfs.xfs", "-q", "-f", "-K", "-l", "size=64m", *options, "-p", prototype(files, scratch), volume)


def prototype(files, scratch):
    """What mkfs.xfs reads of folders and files."""
    path = os.path.join(scratch, "prototype")
    with open(path, "w") as f:
        f.write("/dev/null\n0 0\nd--755 0 0\n")
        for folder in sorted(os.listdir(files)):
            f.write("%s d--755 0 0\n" % folder)
            for name in sorted(os.listdir(os.path.join(files, folder))):
                f.write("%s ---644 0 0 %s\n" % (name, os.path.join(files, folder, name)))
            f.write("$\n")
        f.write("$\n")
    return path


def btrfs(options, volume, files, _):
    tool("mkfs.btrfs", "-q", "-f", "-K", *options, "--rootdir", files, volume)


def f2fs(options, volume, files, _):
    tool("mkfs.f2fs", "-q", "-f", "-t", "0", *options, volume)
    tool("sload.f2fs", "-f", files, volume)


def vfat(options, volume, files, _):
    tool("mkfs.vfat", "-F", "32", *options, volume)
    tool("mcopy", "-s", "-Q", "-i", volume, *[os.path.join(files, name) for name in sorted(os.listdir(files))], "::")


def ntfs(options, volume, files, _):
    tool("mkntfs", "-q", "-Q", "-F", "-s", "512", "-p", "2048", "-H", "255", "-S", "63", *options, volume)
    for folder in sorted(os.listdir(files)):  # it makes no folders
        for name in sorted(os.listdir(os.path.join(files, folder)))[:2]:
            tool("ntfscp", "-f", "-q", volume, os.path.join(files, folder, name), name)


def image(make_image):
    """What is written as one image, to the beginning of the volume."""
    def run(options, volume, files, _):
        os.truncate(volume, 0)
        tool(*make_image(options, volume, files))
    return run


MAKERS = {
    "ext2": ext("ext2"), "ext3": ext("ext3"), "ext4": ext("ext4"), "xfs": xfs, "btrfs": btrfs, "f2fs": f2fs, "vfat": vfat, "ntfs": ntfs,
    "swap": lambda options, volume, files, _: tool("mkswap", "-q", *options, volume),
    "ufs": image(lambda options, volume, files: ["makefs", "-t", "ffs", *options, volume, files]),
    "iso9660": image(lambda options, volume, files: ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-o", volume, files]),
    "squashfs": image(lambda options, volume, files: ["mksquashfs", files, volume, "-noappend", "-quiet", "-no-progress", *options]),
    "erofs": image(lambda options, volume, files: ["mkfs.erofs", *options, volume, files]),
    "romfs": image(lambda options, volume, files: ["genromfs", "-f", volume, "-d", files]),
    "cramfs": image(lambda options, volume, files: ["mkfs.cramfs", files, volume]),
}
