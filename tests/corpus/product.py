"""Asks muster-agent about disks: the program itself, in a root folder whose /sys and /dev show the files as virtio disks.

It runs as on a node (`facts`, and `apply` with the step that would make a file system under the policy), so that no code of the
product is left out and none is linked in here. In the folder there is no mkfs: a step that is allowed to write gets as far as
wiping what it looks at, and fails then.
"""
import json
import os
import shutil
import subprocess
import time

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Agent:
    def __init__(self, program, scratch):
        self.root = os.path.join(scratch, "node")
        os.makedirs(self.root, exist_ok=True)
        shutil.copy(program, os.path.join(self.root, "muster-agent"))
        self.seconds = 0.0  # that facts took, in all

    def show(self, disks):
        """Makes these files the disks of the machine; returns the serial number of each."""
        for name in ("sys", "dev"):
            shutil.rmtree(os.path.join(self.root, name), ignore_errors=True)
        os.makedirs(os.path.join(self.root, "dev"))
        with open(os.path.join(self.root, "dev/null"), "w"):  # what programs are given to read
            pass
        serials = []
        for letter, path in zip(LETTERS, disks, strict=False):
            folder = os.path.join(self.root, "sys/block/vd" + letter)
            os.makedirs(folder + "/device")
            os.makedirs(folder + "/queue")
            serials.append("CORPUS-" + letter)
            for name, text in (("size", os.path.getsize(path) // 512), ("serial", serials[-1]), ("queue/logical_block_size", 512)):
                with open(os.path.join(folder, name), "w") as f:
                    f.write("%s\n" % text)
            os.link(path, os.path.join(self.root, "dev/vd" + letter))
        return serials

    def run(self, verb, text=""):
        begun = time.monotonic()
        done = subprocess.run(["chroot", self.root, "/muster-agent", verb], input=text, capture_output=True, text=True, check=False)
        if verb == "facts":
            self.seconds += time.monotonic() - begun
        return done

    def look(self, disks):
        """What the facts say of each disk, in the order given: a dict with blank, content, content_hash ..."""
        serials = self.show(disks)
        done = self.run("facts")
        if done.returncode != 0:
            raise RuntimeError("muster-agent facts: " + done.stderr.strip())
        found = {d["serial"]: d for d in json.loads(done.stdout)["disks"]}
        return [found[s] for s in serials]

    def format(self, looks, policy):
        """Has each disk formatted under this policy, by the disks' facts. True where that was not refused."""
        steps = [{"id": "corpus/" + d["serial"], "module": "filesystem",
                  "params": {"fs": "xfs", "label": "scratch", "disks": [
                      {"serial": d["serial"], "size_bytes": d["size_bytes"], "content_hash": d["content_hash"], "policy": policy}]}}
                 for d in looks]
        said = self.run("apply", json.dumps({"steps": steps})).stdout
        allowed = []
        for step in steps:
            lines = [line for line in said.splitlines() if line.startswith("failed " + step["id"] + " ")]
            if len(lines) != 1:
                raise RuntimeError("muster-agent apply says nothing of %s:\n%s" % (step["id"], said[-2000:]))
            refused = " is not blank: " in lines[0] or "is in use" in lines[0]
            if not refused and "mkfs.xfs" not in lines[0]:
                raise RuntimeError("neither refused nor written: " + lines[0])
            allowed.append(not refused)
        return allowed
