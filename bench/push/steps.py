"""The same 30 steps four times: an order for muster's agent, a playbook for Ansible, a script for sh, and what a host has to look
like afterwards: steps.py FOLDER writes order.json, playbook.yaml, script.sh and expected.json there."""
import json
import shlex
import sys

folder = sys.argv[1]
steps, tasks, script = [], [], ["set -eu", "changed=0"]
expected = {"packages": [], "files": [], "sysctls": {}, "users": [], "groups": [], "units": {}}


def both(kind, name, module, params, task):
    steps.append({"id": f"bench/{kind} {name}", "module": module, "params": params})
    tasks.append(dict({"name": f"{kind} {name}"}, **task))


# ---- five packages that are there; a ready script asks dpkg once
packages = "openssh-server sudo iptables procps iproute2".split()
for name in packages:
    both("package", name, "package", {"names": [name]}, {"ansible.builtin.apt": {"name": name, "state": "present"}})
    expected["packages"].append(name)
script.append(f"dpkg-query -W -f '${{Status}}\\n' {' '.join(packages)} | sort -u >/tmp/bench-packages")
script.append("[ \"$(cat /tmp/bench-packages)\" = 'install ok installed' ] || { apt-get -q -y install %s; changed=$((changed + 1)); }" % " ".join(packages))
script.append("rm /tmp/bench-packages")


def file_in_script(path, text, mode):
    script.append(f"cat >/etc/bench/.new <<'END-OF-FILE'\n{text}END-OF-FILE")
    script.append(f"if cmp -s /etc/bench/.new {path} && [ \"$(stat -c %a:%U:%G {path})\" = {mode.lstrip('0')}:root:root ]; then rm /etc/bench/.new")
    script.append(f"else chmod {mode} /etc/bench/.new; mv /etc/bench/.new {path}; changed=$((changed + 1)); fi")
    expected["files"].append({"path": path, "text": text, "mode": mode})


# ---- a folder, eight files, four templates
both("directory", "/etc/bench", "directory", {"path": "/etc/bench", "mode": "0755"},
     {"ansible.builtin.file": {"path": "/etc/bench", "state": "directory", "mode": "0755"}})
script.append("[ -d /etc/bench ] || { mkdir -m 0755 /etc/bench; changed=$((changed + 1)); }")
for i in range(8):
    path, text = f"/etc/bench/file{i:02d}", "".join(f"line {n} of file {i}\n" for n in range(60))
    both("file", path, "file", {"path": path, "content": text, "mode": "0640", "owner": "root", "group": "root"},
         {"ansible.builtin.copy": {"dest": path, "content": text, "mode": "0640", "owner": "root", "group": "root"}})
    file_in_script(path, text, "0640")
for i in range(4):
    path = f"/etc/bench/template{i:02d}"
    with open(f"{folder}/template{i:02d}.j2", "w") as f:
        f.write("# {{ cluster }} %d\n{%% for n in range(20) %%}server 10.64.0.{{ n }} iburst\n{%% endfor %%}" % i)
    text = f"# lab {i}\n" + "".join(f"server 10.64.0.{n} iburst\n" for n in range(20))
    both("template", path, "file", {"path": path, "content": text, "mode": "0644"},
         {"ansible.builtin.template": {"src": f"{folder}/template{i:02d}.j2", "dest": path, "mode": "0644"}})
    file_in_script(path, text, "0644")

# ---- four kernel parameters of the network, which a network namespace has of its own. Ansible's core has no module for them.
for key, value in (("net.core.somaxconn", 8192), ("net.ipv4.ip_forward", 1), ("net.ipv4.tcp_syncookies", 2), ("net.ipv4.tcp_fin_timeout", 30)):
    name = "bench-" + key.replace(".", "-")
    line = (f"if [ \"$(sysctl -n {key})\" != {value} ] || ! grep -qsx '{key} = {value}' /etc/sysctl.d/60-{name}.conf; then "
            f"echo '{key} = {value}' >/etc/sysctl.d/60-{name}.conf; sysctl -q -w {key}={value}; ")
    both("sysctl", key, "sysctl", {"name": name, "values": {key: value}},
         {"ansible.builtin.shell": line + "echo changed; fi", "register": "set", "changed_when": "set.stdout == 'changed'"})
    script.append(line + "changed=$((changed + 1)); fi")
    expected["sysctls"][key] = value

# ---- a group, three accounts
both("group", "benchers", "group", {"name": "benchers", "gid": 4000}, {"ansible.builtin.group": {"name": "benchers", "gid": 4000}})
script.append("getent group benchers >/dev/null || { groupadd -g 4000 benchers; changed=$((changed + 1)); }")
expected["groups"].append({"name": "benchers", "gid": 4000})
for i in range(3):
    name, uid = f"bench{i}", 3000 + i
    both("user", name, "user", {"name": name, "uid": uid, "shell": "/bin/bash"},
         {"ansible.builtin.user": {"name": name, "uid": uid, "shell": "/bin/bash", "state": "present"}})
    script.append(f"getent passwd {name} >/dev/null || {{ useradd -m -u {uid} -s /bin/bash {name}; changed=$((changed + 1)); }}")
    expected["users"].append({"name": name, "uid": uid, "shell": "/bin/bash"})

# ---- four units: two enabled and running, two masked
for unit in ("chrony", "ssh"):
    both("service", unit, "service", {"names": [unit], "enabled": True}, {"ansible.builtin.systemd": {"name": unit, "enabled": True, "state": "started"}})
    script.append(f"systemctl is-enabled --quiet {unit} && systemctl is-active --quiet {unit} || "
                  f"{{ systemctl enable {unit}; systemctl start {unit}; changed=$((changed + 1)); }}")
    expected["units"][unit + ".service"] = "enabled active"
for unit in ("apt-daily.timer", "apt-daily-upgrade.timer"):
    both("service", unit, "service", {"names": [unit], "masked": True}, {"ansible.builtin.systemd": {"name": unit, "masked": True}})
    script.append(f"[ \"$(systemctl is-enabled {unit})\" = masked ] || {{ systemctl mask {unit}; changed=$((changed + 1)); }}")
    expected["units"][unit] = "masked"

script.append("echo \"changed=$changed\"")
assert len(steps) == len(tasks) == 30, (len(steps), len(tasks))
with open(f"{folder}/order.json", "w") as f:
    json.dump({"steps": steps}, f)
with open(f"{folder}/playbook.yaml", "w") as f:  # JSON is YAML
    json.dump([{"hosts": "all", "gather_facts": False, "vars": {"cluster": "lab"}, "tasks": tasks}], f)
with open(f"{folder}/script.sh", "w") as f:
    f.write("\n".join(script) + "\n")
with open(f"{folder}/expected.json", "w") as f:
    json.dump(expected, f)
