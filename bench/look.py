"""look.py AGENT SCRATCH: the agent's look at blank disks, timed by size. Called by look.sh."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/corpus"))
import sparse  # noqa: E402
from product import Agent  # noqa: E402

SIZES = [500107862016, 960197124096, 1920383410176, 3840755982336, 7681501126656]
RUNS = 3


def read_by_children():
    """Bytes that the programs started and waited for here have read."""
    with open("/proc/self/io") as f:
        return int(f.readline().split()[1])


def check_work(agent, paths):
    """A byte at either end is seen, and without it the same disks are blank."""
    for path in paths:
        for at in (0, os.path.getsize(path) - 1):
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(b"x")
            if agent.look([path])[0]["blank"]:
                sys.exit("look: %s with a byte at %d is called blank" % (path, at))
            sparse.make(path, os.path.getsize(path))
    for path, look in zip(paths, agent.look(paths)):
        if not look["blank"] or look["size_bytes"] != os.path.getsize(path):
            sys.exit("look: %s is not seen as it is: %s" % (path, look))


def main(program, scratch):
    agent = Agent(program, scratch)
    paths = [os.path.join(scratch, "%d.disk" % size) for size in SIZES]
    for path, size in zip(paths, SIZES):
        sparse.make(path, size)
    check_work(agent, paths)
    agent.seconds = 0
    agent.look([])
    nothing = agent.seconds  # the program's start and a machine without disks
    rows = []
    for path, size in zip(paths, SIZES):
        times, before = [], read_by_children()
        for _ in range(RUNS):
            agent.seconds = 0
            agent.look([path])
            times.append(max(agent.seconds - nothing, 0))
        rows.append({"tb": round(size / 1e12, 2), "s": round(min(times), 3), "s_per_tb": round(min(times) / size * 1e12, 3),
                     "read_mib": (read_by_children() - before) // RUNS >> 20})
        print("%(tb)5.2f TB: %(s).3f s, %(s_per_tb).3f s per TB, %(read_mib)d MiB read" % rows[-1])
    total = sum(r["s"] for r in rows) / sum(SIZES) * 1e12
    print(json.dumps({"bench": "look", "runs": RUNS, "disks": rows, "s_per_tb": round(total, 3), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
