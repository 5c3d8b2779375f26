"""Whether each host is what expected.json says: verify.py EXPECTED PID...  PID: a process in the host's root and network namespace.
Looks itself, with none of what is being compared; prints what differs, exit 1 when anything does."""
import json
import os
import stat
import subprocess
import sys

with open(sys.argv[1]) as f:
    expected = json.load(f)


def table(path):
    with open(path) as f:
        return {line.split(":")[0]: line.rstrip("\n").split(":") for line in f}


def differences(pid):
    root = f"/proc/{pid}/root"
    with open(root + "/var/lib/dpkg/status") as f:
        installed = {block.split("\n", 1)[0][9:] for block in f.read().split("\n\n") if "\nStatus: install ok installed\n" in block}
    for name in expected["packages"]:
        if name not in installed:
            yield f"package {name} is missing"
    for want in expected["files"]:
        path = root + want["path"]
        if not os.path.isfile(path):
            yield f"{want['path']} is missing"
            continue
        have = os.stat(path)
        if (stat.S_IMODE(have.st_mode), have.st_uid, have.st_gid) != (int(want["mode"], 8), 0, 0):
            yield f"{want['path']}: mode or owner"
        with open(path) as f:
            if f.read() != want["text"]:
                yield f"{want['path']}: content"
    keys = list(expected["sysctls"])
    read = subprocess.run(["nsenter", "-t", str(pid), "-n", "cat"] + ["/proc/sys/" + key.replace(".", "/") for key in keys],
                          capture_output=True, text=True, check=True).stdout.split("\n")
    kept = ""
    for name in os.listdir(root + "/etc/sysctl.d"):
        with open(f"{root}/etc/sysctl.d/{name}") as f:
            kept += "\n" + f.read()
    for key, value in zip(keys, read):
        if value != str(expected["sysctls"][key]):
            yield f"{key} is {value}"
        if f"\n{key} = {expected['sysctls'][key]}\n" not in kept:
            yield f"{key} is not kept"
    groups, users = table(root + "/etc/group"), table(root + "/etc/passwd")
    for want in expected["groups"]:
        if groups.get(want["name"], [""] * 3)[2] != str(want["gid"]):
            yield f"group {want['name']}"
    for want in expected["users"]:
        have = users.get(want["name"], [""] * 7)
        if have[2] != str(want["uid"]) or have[6] != want["shell"] or not os.path.isdir(root + have[5]):
            yield f"user {want['name']}"
    for unit, want in expected["units"].items():
        have = " ".join(word for word in ("masked", "enabled", "active") if os.path.exists(f"{root}/run/stub-systemctl/{word}/{unit}"))
        if have != want:
            yield f"{unit} is '{have}'"


bad = 0
for one in sys.argv[2:]:
    for difference in differences(int(one)):
        bad += 1
        print(f"process {one}: {difference}")
sys.exit(1 if bad else 0)
