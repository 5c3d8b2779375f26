"""accept_hosts.py MUSTER HOSTS-FOLDER SCRATCH COUNT: see accept-hosts.sh, which calls it."""
import glob
import json
import os
import sqlite3
import subprocess
import sys
import time

RUNS = 3
GOAL = 4


def resident_kib(root):
    """Of a process and all its descendants."""
    children, kib = {}, {}
    for status in glob.glob("/proc/[0-9]*/status"):
        try:
            with open(status) as f:
                fields = dict(line.split(":", 1) for line in f)
        except OSError:
            continue
        children.setdefault(int(fields["PPid"]), []).append(int(fields["Pid"]))
        kib[int(fields["Pid"])] = int(fields.get("VmRSS", "0 kB").split()[0])
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += kib.get(pid, 0)
        todo += children.get(pid, [])
    return total


def first_measured(database, run_started_ms):
    """Seconds until each host has had its first step measured, by host."""
    with sqlite3.connect("file:%s?mode=ro" % database, uri=True) as db:
        rows = db.execute("select node, min(time) from journal where event = 'step' and node <> '' and "
                          "json_extract(data, '$.status') in ('measured', 'applied') group by node").fetchall()
    return {node: (at - run_started_ms) / 1000 for node, at in rows}


def accept(muster, folder, state):
    environment = dict(os.environ, XDG_STATE_HOME=state)
    started_ms = time.time() * 1000
    with open(os.path.join(state, "out"), "w") as out:
        command = subprocess.Popen([muster, "accept", "--hosts", folder + "/hosts.txt", "--ssh-config", folder + "/ssh_config",
                                    "--name", "bench", "--beside-jobs", "--json"], stdout=out, stderr=subprocess.STDOUT, env=environment)
        peak = 0
        while command.poll() is None:
            peak = max(peak, resident_kib(command.pid))
            time.sleep(0.2)
    return first_measured(state + "/muster/accept/bench/muster.db", started_ms), peak / 1024


def clush(folder, count):
    started = time.monotonic()
    subprocess.run(["clush", "-f", "64", "-o", "-F %s/ssh_config" % folder, "-w", "node[01-%02d]" % count, "true"], check=True)
    return time.monotonic() - started


def main():
    muster, folder, scratch, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    firsts, rss, clushes = [], [], []
    for n in range(RUNS):
        clushes.append(clush(folder, count))
        state = os.path.join(scratch, str(n))
        os.mkdir(state)
        first, peak = accept(muster, folder, state)
        if len(first) != count:
            with open(os.path.join(state, "out")) as f:
                sys.exit("accept-hosts: %d of %d hosts were measured\n%s" % (len(first), count, f.read()[-3000:]))
        firsts.append(max(first.values()))
        rss.append(peak / count)
        print("clush %.1f s, first measurement on all %.1f s, on the first %.1f s, %.1f MiB a host" %
              (clushes[-1], firsts[-1], min(first.values()), rss[-1]))
    ratio = min(firsts) / min(clushes)
    print("ratio %.1f: the goal of at most %d is %s" % (ratio, GOAL, "met" if ratio <= GOAL else "missed"))
    print(json.dumps({"hosts": count, "first_s": round(min(firsts), 1), "clush_s": round(min(clushes), 1), "ratio": round(ratio, 1),
                      "rss_mb_per_host": round(max(rss), 1)}))


main()
