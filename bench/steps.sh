#!/usr/bin/env bash
# 60 steps that hold already, checked by muster's agent over ssh and by `ansible-playbook --check` over ssh, on one node of the lab.
# Needs root (the lab) and Debian's package ansible-core. Last line: JSON.
source "$(dirname "${BASH_SOURCE[0]}")/../tests/e2e/lib.sh"
command -v ansible-playbook >/dev/null || die "apt-get install ansible-core"

sed 's/node\[01-03\]/node[01-01]/; s/mac: .*/mac: [ "52:54:00:20:00:01" ]/; /shared:/d; s/, storage-shared, mpi//; /smp:/d' \
  lab/quickstart.yaml >"$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" >/dev/null

# Ansible needs Python and its apt bindings on the node; what muster needs is there.
proxy="-o Acquire::http::Proxy=http://10.20.0.1:3142"
node_ssh node01 sudo sh -c "'apt-get $proxy -q update && DEBIAN_FRONTEND=noninteractive apt-get $proxy -q -y --no-install-recommends install python3 python3-apt'" >"$work/apt.log" 2>&1 ||
  { tail -5 "$work/apt.log"; die "python3 on the node"; }

# ---- the same 60 twice: an order for the agent, a playbook for Ansible
python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
steps, tasks = [], []

def both(kind, name, module, params, task):
    steps.append({"id": "bench/%s %s" % (kind, name), "module": module, "params": params})
    tasks.append(dict({"name": "%s %s" % (kind, name)}, **task))

def asked(argv):   # what Ansible's core has no module for: a command that may run in check mode
    return {"ansible.builtin.command": {"argv": argv}, "check_mode": False, "changed_when": False}

for name in "openssh-server sudo ufw iptables chrony xfsprogs mdadm nvme-cli pciutils fio".split():
    both("package", name, "package", {"names": [name]}, {"ansible.builtin.apt": {"name": name, "state": "present"}})
for i in range(14):
    path, text = "/etc/bench/file%02d" % i, "".join("line %d of file %d\n" % (n, i) for n in range(60))
    both("file", path, "file", {"path": path, "content": text, "mode": "0640", "owner": "root", "group": "root"},
         {"ansible.builtin.copy": {"dest": path, "content": text, "mode": "0640", "owner": "root", "group": "root"}})
for i in range(6):
    path = "/etc/bench/template%02d" % i
    with open("%s/template%02d.j2" % (work, i), "w") as f:
        f.write("# {{ cluster }} %d\n{%% for n in range(20) %%}server 10.20.0.{{ n }} iburst\n{%% endfor %%}" % i)
    text = "# lab %d\n" % i + "".join("server 10.20.0.%d iburst\n" % n for n in range(20))
    both("template", path, "file", {"path": path, "content": text, "mode": "0644"},
         {"ansible.builtin.template": {"src": "%s/template%02d.j2" % (work, i), "dest": path, "mode": "0644"}})
for key, value in (("net.core.somaxconn", 4096), ("kernel.panic", 30), ("vm.swappiness", 10), ("vm.dirty_ratio", 15),
                   ("net.ipv4.tcp_syncookies", 1), ("net.ipv4.ip_forward", 0), ("fs.file-max", 2000000), ("kernel.sysrq", 0)):
    both("sysctl", key, "sysctl", {"name": "bench-" + key.replace(".", "-"), "values": {key: value}},
         dict(asked(["sysctl", "-n", key]), register="got", failed_when="got.stdout != '%d'" % value))
for unit in "chrony ssh systemd-journald systemd-networkd systemd-udevd systemd-logind muster-agent".split():
    both("service", unit, "service", {"names": [unit]}, {"ansible.builtin.systemd": {"name": unit, "state": "started"}})
for unit in ("apt-daily.timer", "apt-daily-upgrade.timer"):
    both("service", unit, "service", {"names": [unit], "masked": True}, {"ansible.builtin.systemd": {"name": unit, "masked": True}})
both("service", "ufw", "service", {"names": ["ufw"], "running": True}, {"ansible.builtin.systemd": {"name": "ufw", "state": "started"}})
for i in range(4):
    name = "bench%d" % i
    both("user", name, "user", {"name": name, "uid": 3000 + i, "shell": "/bin/bash"},
         {"ansible.builtin.user": {"name": name, "uid": 3000 + i, "shell": "/bin/bash", "state": "present"}})
for i in range(3):
    both("group", "benchg%d" % i, "group", {"name": "benchg%d" % i, "gid": 4000 + i},
         {"ansible.builtin.group": {"name": "benchg%d" % i, "gid": 4000 + i}})
for path, fs in (("/", "ext4"), ("/scratch", "xfs"), ("/state", "ext4")):
    argv = ["findmnt", "-n", "-t", fs, path]
    both("mount", path, "command", {"argv": ["false"], "check": argv}, asked(argv))
both("sshd", "-T", "command", {"argv": ["false"], "check": ["/usr/sbin/sshd", "-T"]}, asked(["/usr/sbin/sshd", "-T"]))
both("ufw", "status", "command", {"argv": ["false"], "check": ["ufw", "status"]}, asked(["ufw", "status"]))
assert len(steps) == len(tasks) == 60, (len(steps), len(tasks))
json.dump({"steps": steps}, open(work + "/order.json", "w"))
json.dump([{"hosts": "all", "gather_facts": False, "become": True, "vars": {"cluster": "lab"}, "tasks": tasks}],
          open(work + "/bench.yaml", "w"))   # JSON is YAML
PY

agent() { $muster lab ssh node01 -- sudo muster-agent "$1" <"$work/order.json"; }
agent apply >"$work/apply.out" || { grep -v '^already\|^applied' "$work/apply.out"; die "the 60 steps could not be made true"; }

# ---- Ansible from the controller's place in the lab's network, with its own ssh: pipelining, and one connection kept open
cat >"$work/inventory" <<INVENTORY
node01 ansible_host=10.20.0.11 ansible_user=ops ansible_ssh_private_key_file=$MUSTER_LAB_DIR/ssh/id_ed25519 ansible_python_interpreter=/usr/bin/python3 ansible_ssh_common_args='-o UserKnownHostsFile=$work/known_hosts'
INVENTORY
cat >"$work/ansible.cfg" <<CFG
[defaults]
host_key_checking = False
[ssh_connection]
pipelining = True
control_path_dir = $work/cp
CFG
export ANSIBLE_CONFIG=$work/ansible.cfg ANSIBLE_LOCAL_TEMP=$work/tmp ANSIBLE_HOME=$work/ansible LC_ALL=C.UTF-8
ansible_check() { $muster lab exec -- ansible-playbook --check -i "$work/inventory" "$work/bench.yaml"; }

seconds() { local begun; begun=$(date +%s%N); "$@" >"$work/out" 2>&1 || { tail -20 "$work/out"; return 1; }; echo "scale=2; ($(date +%s%N) - $begun) / 1000000000" | bc; }
load=$(cut -d' ' -f1 /proc/loadavg)   # other work on the machine makes both slower
muster_runs=()
for _ in 1 2 3; do
  took=$(seconds agent check) || die "muster: $took"
  grep -q '"already":60' "$work/out" || { tail -3 "$work/out"; die "muster: not all 60 hold"; }
  muster_runs+=("$took")
done
on_node=$(sed -n 's/.*"ms":\([0-9]*\).*/\1/p' "$work/out")
ansible_runs=()
for _ in 1 2; do
  took=$(seconds ansible_check) || die "ansible: $took"
  grep -q 'ok=60 *changed=0 .*failed=0' "$work/out" || { tail -5 "$work/out"; die "ansible: not all 60 hold"; }
  ansible_runs+=("$took")
done
best() { printf '%s\n' "$@" | sort -n | head -1; }
echo "muster: ${muster_runs[*]} s (on the node itself: $on_node ms); ansible: ${ansible_runs[*]} s; best of each counts"
m=$(best "${muster_runs[@]}") a=$(best "${ansible_runs[@]}")
$muster lab down >/dev/null 2>&1 || true
jq -nc --argjson m "$m" --argjson a "$a" --argjson n "$on_node" --argjson load "$load" \
  '{bench: "steps", steps: 60, muster_s: $m, muster_on_node_ms: $n, ansible_s: $a, ratio: (($a / $m * 10 | floor) / 10), load: $load}'
