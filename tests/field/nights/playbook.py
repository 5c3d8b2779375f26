"""Steps of a playbook as the leader node01 of the cluster lab gets them: playbook.py PLAYBOOK STEP [NAME=VALUE]...

Prints an order for `muster-agent apply`; with `content=` among the values the text of the step's file alone. Values are those of the
playbook's conditions and texts ("accounting=yes", "cluster=lab2"); an empty one is false. Only as much of mustache as playbooks use.
"""

import json
import os
import re
import sys

import yaml

MACHINES = "NodeName=node01 NodeAddr=10.217.0.1 CPUs=1 RealMemory=1 State=UNKNOWN\n"


def render(value, words):
    if isinstance(value, list):
        return [render(one, words) for one in value]
    if isinstance(value, dict):
        return {key: render(one, words) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    value = re.sub(r"\{\{#machines\}\}\n.*?\{\{/machines\}\}\n", words.get("machines", MACHINES), value, flags=re.S)
    while True:
        match = re.search(r"\{\{([#^])([\w.]+)\}\}(\n?)((?:(?!\{\{[#^]).)*?)\{\{/\2\}\}\3", value, flags=re.S)
        if match is None:
            break
        shown = bool(words.get(match[2])) == (match[1] == "#")
        value = value[:match.start()] + (match[4] if shown else "") + value[match.end():]
    return re.sub(r"\{\{([\w.]+)\}\}", lambda match: words[match[1]], value)


def main():
    playbook, name = sys.argv[1:3]
    words = {"cluster": "lab", "node.name": "node01", "node.address": "10.217.0.1", "leader.name": "node01", "leader.address": "10.217.0.1",
             "is_leader": "yes", **dict(word.split("=", 1) for word in sys.argv[3:])}
    with open(f"{os.environ['SRC']}/playbooks/{playbook}.yaml", encoding="utf-8") as file:
        steps = [step for step in yaml.safe_load(file)["steps"] if step["name"] == name]
    if not steps:
        raise SystemExit(f"{playbook} has no step {name}")
    params = render(steps[0]["params"], words)
    if "content" in words:
        print(params["content"], end="")
    else:
        print(json.dumps({"steps": [{"id": f"field/{name}", "module": steps[0]["module"], "params": params}]}))


main()
