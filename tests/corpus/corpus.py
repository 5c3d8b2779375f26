"""Holds the agent's look against layouts that others' tools made. Called by run.sh, which says how.

`layouts`: each of layouts.jsonl is made in the guest (guest.py), put on sparse disks and hurt (disks.py), shown to the real agent
(product.py), and brought back by its own recovery command or photorec. Wrong is: a disk with something to bring back that is called
blank or that format-if-blank may write to; a blank one that is not; and, with recovery, an expectation that does not hold.
"""
import argparse
import collections
import json
import os
import signal
import sys
import time

import draw
import util_linux
from guest import DEVICES
from product import Agent
from runner import Corpus, expected_of, needs_guest

HERE = os.path.dirname(os.path.abspath(__file__))
LAYOUTS, KNOWN = HERE + "/layouts.jsonl", HERE + "/known-wrong.json"


def read_layouts():
    with open(LAYOUTS) as f:
        return [json.loads(line) for line in f]


def write_layouts(layouts):
    with open(LAYOUTS + ".new", "w") as f:
        f.writelines(json.dumps(layout) + "\n" for layout in layouts)
    os.rename(LAYOUTS + ".new", LAYOUTS)


def read_known():
    with open(KNOWN) as f:
        return json.load(f)


def write_known(known):
    with open(KNOWN, "w") as f:
        json.dump(known, f, indent=1, sort_keys=True)
        f.write("\n")


def choose(options):
    """(all layouts, those to run, how many of these nobody has decided)"""
    layouts = read_layouts() if os.path.exists(LAYOUTS) else []
    if options.accept:  # as they are drawn today
        before = {x["id"]: x for x in layouts}
        layouts = [dict(x, **{k: before.get(x["id"], {}).get(k) for k in ("expected", "by")}) for x in draw.draw()]
    chosen = [x for x in layouts if options.only in x["id"] and not (options.no_guest and needs_guest(x))]
    undecided = [x for x in chosen if not x["expected"]]
    if options.accept and not options.again:
        chosen = [x for x in undecided if x["id"] > options.after]
    elif not options.recovery:  # they have nothing to be held to
        chosen = [x for x in chosen if x["expected"]]
    return layouts, chosen[:options.first], 0 if options.recovery else len(undecided)


def decide(layout, found, by, accept, bad):
    """Holds what is expected against what recovery found, or takes it over."""
    if accept:
        layout["expected"], layout["by"] = found, by
    elif not layout["expected"]:
        bad.append("%s: nobody has decided what is expected; found is %s (%s)" % (layout["id"], found, by or "nothing came back"))
        layout["expected"] = found
    elif found != layout["expected"]:
        bad.append("%s: expected is %s, found is %s (%s)" % (layout["id"], layout["expected"], found, by or "nothing came back"))


def judge(layout, wrong, listed, answers, bad):
    """`wrong`, `listed`: numbers of disks, answered wrong now and by known-wrong.json."""
    if set(wrong) - set(listed):
        bad.append("%s: answered %s, expected %s" % (layout["id"], answers, layout["expected"]))
        return "WRONG"
    if wrong != listed:
        bad.append("%s: known-wrong.json has disks %s, wrong are %s" % (layout["id"], listed, wrong))
        return "listed"
    return "known wrong" if wrong else "right"


def layouts_verb(options):
    layouts, chosen, undecided = choose(options)
    known = read_known() if os.path.exists(KNOWN) else {"layouts": {}, "util-linux": []}
    corpus = Corpus(options)
    counts, by_kind, bad, begun = collections.Counter(), collections.defaultdict(collections.Counter), [], time.monotonic()
    counts["undecided"] = undecided
    for layout, answers, contents, empty, by in corpus.run(chosen):
        name = layout["id"]
        if answers is None:
            bad.append("%s could not be made" % name)
            counts["not made"] += 1
            print("not made     %s" % name, flush=True)
            continue
        if by is None and not layout["expected"]:
            counts["undecided"] += 1
            print("undecided    %s: only its own command can tell, in the guest" % name, flush=True)
            continue
        if corpus.recovery and by is not None:
            decide(layout, expected_of(layout, empty, by), by, options.accept, bad)
        wrong = [i for i, (expected, answer) in enumerate(zip(layout["expected"], answers)) if expected not in ("either", answer)]
        if options.accept:
            known["layouts"].pop(name, None)
            known["layouts"].update({name: wrong} if wrong else {})
            write_layouts(layouts)
            write_known(known)
        verdict = judge(layout, wrong, known["layouts"].get(name, []), answers, bad)
        counts[verdict] += 1
        by_kind[layout["kind"] + (" of " + layout["options"] if layout["kind"] in ("stripe", "blank") else "")][verdict] += 1
        for word in layout["expected"]:
            counts["expected " + word] += 1
        shown = " | ".join("%s, is %s: %s" % x for x in zip(answers, layout["expected"], contents))
        print("%-12s %s [%s] %s" % (verdict, name, layout["by"] or "-", shown[:300]), flush=True)
    print_summary(chosen, counts, by_kind, bad, corpus, time.monotonic() - begun)
    return 1 if bad else 0


def print_summary(chosen, counts, by_kind, bad, corpus, seconds):
    print("\n%-28s %6s %6s %6s" % ("kind", "right", "known", "WRONG"))
    for kind, c in sorted(by_kind.items()):
        print("%-28s %6d %6d %6d" % (kind, c["right"], c["known wrong"], c["WRONG"]))
    print("\n%d layouts, %d disks, %.1f TB, %d boots of the guest, %.0f s; the agent looked for %.1f s, %.2f s per TB" % (
        len(chosen), sum(x["disks"] for x in chosen), corpus.asked / 1e12, corpus.guest.boots, seconds, corpus.agent.seconds,
        corpus.agent.seconds / max(corpus.asked / 1e12, 0.001)))
    for line in bad:
        print("bad: " + line)
    print("disks expected: %d data, %d either, %d blank; expectations %s" % (
        counts["expected data"], counts["expected either"], counts["expected blank"],
        "confirmed by recovery" if corpus.recovery else "taken as committed"))
    print("%d right, %d known wrong, %d WRONG, %d no longer as wrong as known-wrong.json says, %d not made, %d not decided yet" % tuple(
        counts[word] for word in ("right", "known wrong", "WRONG", "listed", "not made", "undecided")))


def util_linux_verb(options):
    """Every disk image of util-linux' own tests, each on a sparse disk of 1 TB: none is blank, none may be written."""
    known = read_known() if os.path.exists(KNOWN) else {"layouts": {}, "util-linux": []}
    scratch = options.scratch
    images = [i for i in util_linux.fetch(scratch) if options.only in i]
    agent = Agent(options.agent, scratch)
    blank = []
    for at in range(0, len(images), 16):
        paths = []
        for number, image in enumerate(images[at:at + 16]):
            paths.append(os.path.join(scratch, "image%d" % number))
            util_linux.on_a_disk(image, paths[-1])
        looks = agent.look(paths)
        allowed = agent.format(looks, "format-if-blank")
        for image, path, look, may in zip(images[at:at + 16], paths, looks, allowed):
            name = "/".join(image.split("/")[-2:])
            if look["blank"] or may:
                blank.append(name)
            print("%-6s %-40s %s" % ("BLANK" if look["blank"] or may else "data", name, look["content"][:150]), flush=True)
            os.remove(path)
    if options.accept:
        known["util-linux"] = blank
        write_known(known)
    new, old = set(blank) - set(known["util-linux"]), {k for k in known["util-linux"] if options.only in k} - set(blank)
    print("%d images, %d called blank (%d known), %d listed as wrong and right now" % (
        len(images), len(blank), len(blank) - len(new), len(old)))
    return 1 if new or old or not images else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["layouts", "util-linux", "list"])
    parser.add_argument("--only", default="", help="those whose name has this in it")
    parser.add_argument("--after", default="", help="with --accept: only those behind this one, to go on where a run was ended")
    parser.add_argument("--first", type=int, default=None, help="so many")
    parser.add_argument("--no-recovery", dest="recovery", action="store_false", help="take the committed expectations")
    parser.add_argument("--accept", action="store_true", help="write down what is found: expectations and the list of wrong answers")
    parser.add_argument("--again", action="store_true", help="with --accept: those that have an expectation, too")
    parser.add_argument("--carve-first", action="store_true",
                        help="photorec before the layout's own command, which is then only run where it fails")
    parser.add_argument("--no-guest", action="store_true", help="only layouts that are made without it")
    parser.add_argument("--batch", type=int, default=DEVICES, help="disks that are made and asked about together")
    parser.add_argument("--patience", type=int, default=1, help="of the guest's time limits: so many times as long, on a busy machine")
    parser.add_argument("--agent", default="build/muster-agent")
    parser.add_argument("--scratch", help="a folder of its own, which run.sh removes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the guest ends, too
    if options.verb == "list":
        for layout in read_layouts():
            if options.only in layout["id"]:
                print(json.dumps(layout))
        return 0
    if options.accept and not options.recovery:
        parser.error("what is expected is decided by recovery")
    return {"layouts": layouts_verb, "util-linux": util_linux_verb}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
