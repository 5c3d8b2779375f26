"""Runs jobs on disks (sparse files) in a Linux of its own: user-mode Linux, a kernel that is a process (Debian: user-mode-linux).

It has every file system, md, dm and bcache, whatever this machine's kernel has, and nothing that is mounted, assembled or imported
in it is seen by this machine. Its root is this machine's, read-only; of the rest it writes the scratch folder alone.
"""
import os
import shlex
import subprocess

KERNEL = "/usr/bin/linux.uml"
HERE = os.path.dirname(os.path.abspath(__file__))
DEVICES = 16  # that one kernel has: ubda ... ubdp


class Guest:
    def __init__(self, scratch, patience=1):
        self.scratch = scratch
        self.patience = patience  # times as long as on a machine that does nothing else
        self.boots = 0

    def run(self, jobs):
        """jobs: [{id, verb, kind, options, disks}]. Returns {id: text} of those that ended well; as many boots as it takes."""
        results, batch, used = {}, [], 0
        for job in jobs + [None]:
            if job is None or used + len(job["disks"]) > DEVICES:
                results.update(self.boot(batch))
                # Whoever took the kernel down, or its time, is not told by what is missing: each of the rest alone.
                lost = [j for j in batch if j["id"] not in results]
                for left in lost if len(batch) > 1 else []:
                    results.update(self.boot([left]))
                batch, used = [], 0
            if job:
                batch.append(job)
                used += len(job["disks"])
        return {k: v[3:].strip() for k, v in results.items() if v.startswith("ok ")}

    def boot(self, jobs):
        if not jobs:
            return {}
        self.boots += 1
        folder = os.path.join(self.scratch, "jobs")
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            os.remove(os.path.join(folder, old))
        disks = []
        for number, job in enumerate(jobs):
            names = ["/dev/ubd" + chr(ord("a") + len(disks) + i) for i in range(len(job["disks"]))]
            disks += job["disks"]
            with open(os.path.join(folder, "%03d" % number), "w") as f:
                for key, value in (("id", job["id"]), ("verb", job["verb"]), ("kind", job["kind"]), ("options", job.get("options", "")),
                                   ("devices", " ".join(names))):
                    f.write("%s=%s\n" % (key, shlex.quote(value)))
        # The name is this process's own; TMPDIR holds the guest's memory.
        argv = [KERNEL, "mem=640M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=" + HERE + "/guest.sh",
                "scratch=" + self.scratch, "patience=%d" % self.patience, "umid=corpus-%d" % os.getpid(), "con=null", "con0=null,fd:1",
                "panic=-1"]
        argv += ["ubd%d=%s" % (i, path) for i, path in enumerate(disks)]
        log = os.path.join(self.scratch, "guest.log")
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self.scratch
        with open(log, "ab") as out:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                     env=dict(os.environ, HOME=self.scratch, TMPDIR=memory))
            try:
                child.wait(600 * self.patience)
            except subprocess.TimeoutExpired:
                pass
            finally:  # also where this program is ended
                if child.poll() is None:
                    os.killpg(child.pid, 9)
                    child.wait()
        results = {}
        for number, job in enumerate(jobs):
            try:
                with open(os.path.join(folder, "%03d.result" % number), errors="replace") as f:
                    results[job["id"]] = f.read()
            except FileNotFoundError:
                pass
        return results
