"""accept_hosts.py MUSTER HOSTS-FOLDER SCRATCH COUNT: see accept-hosts.sh, which calls it."""
import glob
import json
import os
import sqlite3
import subprocess
import sys
import time

RUNS = 3
GATE, GOAL, PAIR_GOAL = 5, 4, 2  # all hosts, and the first two, against clush of `true`


def status_of(path):
    with open(path) as f:
        return dict(line.split(":", 1) for line in f)


def tree(root):
    """Pids of a process and all its descendants, without `ssh`: that is the same for every tool."""
    children, names = {}, {}
    for path in glob.glob("/proc/[0-9]*/status"):
        try:
            fields = status_of(path)
        except OSError:
            continue
        children.setdefault(int(fields["PPid"]), []).append(int(fields["Pid"]))
        names[int(fields["Pid"])] = fields["Name"].strip()
    out, todo = [], [root]
    while todo:
        pid = todo.pop()
        if names.get(pid) != "ssh":
            out.append(pid)
        todo += children.get(pid, [])
    return out


def pss_kib(root):
    """Proportional: what processes share counts once."""
    total = 0
    for pid in tree(root):
        try:
            total += int(status_of("/proc/%d/smaps_rollup" % pid).get("Pss", "0 kB").split()[0])
        except (OSError, ValueError):
            continue  # it has ended
    return total


def machine_seconds():
    """Of all processors since the boot, without idle and waiting for drives."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq = [int(word) for word in f.readline().split()[1:8]]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def load_beside():
    """Before a run: the load average, and how many processors others use now."""
    before = machine_seconds()
    time.sleep(2)
    return os.getloadavg()[0], (machine_seconds() - before) / 2


def first_measured(database, run_started_ms):
    """Seconds until each host has had its first step measured, by host."""
    with sqlite3.connect("file:%s?mode=ro" % database, uri=True) as db:
        rows = db.execute("select node, min(time) from journal where event = 'step' and node <> '' and "
                          "json_extract(data, '$.status') in ('measured', 'applied') group by node").fetchall()
    return {node: (at - run_started_ms) / 1000 for node, at in rows}


def accept(muster, folder, state):
    """Seconds by host, MiB of the command at its highest, processor seconds of the command with ssh."""
    environment = dict(os.environ, XDG_STATE_HOME=state)
    started_ms = time.time() * 1000
    with open(os.path.join(state, "out"), "w") as out:
        command = subprocess.Popen([muster, "accept", "--hosts", folder + "/hosts.txt", "--ssh-config", folder + "/ssh_config",
                                    "--name", "bench", "--beside-jobs", "--json"], stdout=out, stderr=subprocess.STDOUT, env=environment)
        peak = 0
        while True:
            pid, _, usage = os.wait4(command.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, pss_kib(command.pid))
            time.sleep(0.5)
    return first_measured(state + "/muster/accept/bench/muster.db", started_ms), peak / 1024, usage.ru_utime + usage.ru_stime


def clush(folder, count):
    started = time.monotonic()
    subprocess.run(["clush", "-f", "64", "-o", "-F %s/ssh_config" % folder, "-w", "node[01-%02d]" % count, "true"], check=True)
    return time.monotonic() - started


def one_run(muster, folder, state, count):
    os.mkdir(state)
    load, others = load_beside()
    out = {"load_before": load, "others_cores": others, "clush_s": clush(folder, count)}
    before = machine_seconds()
    first, mib, command_seconds = accept(muster, folder, state)
    if len(first) != count:
        with open(os.path.join(state, "out")) as f:
            sys.exit("accept-hosts: %d of %d hosts were measured\n%s" % (len(first), count, f.read()[-3000:]))
    times = sorted(first.values())
    out.update(first_s=times[-1], pair_s=times[min(1, count - 1)], cpu_s_per_host=(machine_seconds() - before) / count,
               command_cpu_s_per_host=command_seconds / count, pss_mb_per_host=mib / count)
    print("clush %(clush_s).1f s, first measurement on all %(first_s).1f s, on the first two %(pair_s).1f s; per host %(cpu_s_per_host).2f "
          "processor seconds in all, %(command_cpu_s_per_host).2f of them of the command with ssh, %(pss_mb_per_host).2f MiB of the command; "
          "before it: load %(load_before).2f, others use %(others_cores).1f processors" % out)
    return out


def word(met):
    return "met" if met else "missed"


def main():
    muster, folder, scratch, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    runs = [one_run(muster, folder, os.path.join(scratch, str(n)), count) for n in range(RUNS)]
    best = {key: min(run[key] for run in runs) for key in ("clush_s", "first_s", "pair_s", "cpu_s_per_host", "command_cpu_s_per_host")}
    worst = {key: max(run[key] for run in runs) for key in ("pss_mb_per_host", "load_before", "others_cores")}
    ratio, pair = best["first_s"] / best["clush_s"], best["pair_s"] / best["clush_s"]
    print("all hosts: ratio %.1f: the limit of %d is %s, the goal of %d is %s" % (ratio, GATE, word(ratio <= GATE), GOAL, word(ratio <= GOAL)))
    print("first two hosts: ratio %.1f: the goal of %d is %s" % (pair, PAIR_GOAL, word(pair <= PAIR_GOAL)))
    figures = {key: round(value, 2) for key, value in {**best, **worst, "ratio": ratio, "pair_ratio": pair}.items()}
    print(json.dumps({"hosts": count, **figures}))
    if ratio > GATE:
        sys.exit(1)


main()
