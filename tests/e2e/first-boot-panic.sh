#!/usr/bin/env bash
# the installed kernel panics at its first boot from disk: one machine restarts by itself, one stands still until the deadline and is started again; both accepted
# stands on: agent/image/efi_variables* controller/engines/local_engine* controller/ports/{power,run_ports}* controller/power/service/power_service*
# stands on: controller/power/{redfish,waiter}* controller/{boot,executor,run} lab/{boot_faults,fault,qemu_args,qemu_machine}* playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
small_spec 2 's/^limits: .*/limits: { netboot: 5 min, boot: 4 min }/' >"$work/cluster.yaml"
# node02 with panic=0: a kernel that panicked stays as it is, as one that hangs does.
python3 - "$work/cluster.yaml" <<'PY'
import sys
path = sys.argv[1]
lines = open(path).read().splitlines()
first = next(i for i, l in enumerate(lines) if l.lstrip().startswith("- name: node["))
last = next(i for i in range(first + 1, len(lines)) if lines[i] and not lines[i].startswith("    "))
group = lines[first:last]
out = []
for n in (1, 2):
    for line in group:
        if "- name:" in line: line = f"  - name: node0{n}"
        if line.lstrip().startswith("mac:"): line = f'    mac: "52:54:00:20:00:0{n}"'
        line = line.replace("{n}", str(n))
        out.append(line)
    if n == 2: out.append("    vars: { kernel_options: panic=0 }")
open(path, "w").write("\n".join(lines[:first] + out + lines[last:]) + "\n")
PY
lab_up
for n in node01 node02; do $muster lab break "$n" panic-first-boot; done
console() { cat "$MUSTER_LAB_DIR/nodes/$1/console.log"; }
panicked() { grep -qa 'Kernel panic - not syncing: NMI' "$MUSTER_LAB_DIR/nodes/$1/console.log"; }
waits_for_disk() { $muster why node02 2>/dev/null | grep -q "the installed system's agent"; }
up_begins
during_up "node01's console shows the panic" panicked node01
during_up "node02's console shows it, too" panicked node02
during_up "why says that the installed system's agent is awaited" waits_for_disk
up_ends 0
check "node01 is accepted" test "$(node_state node01)" = accepted
check "node02 is accepted" test "$(node_state node02)" = accepted
faults() { $muster lab status --json | jq -c --arg n "$1" '.nodes[] | select(.name == $n) | .faults'; }
check "both struck once: no fault is left" test "$(faults node01)$(faults node02)" = "{}{}"
check "neither panicked a second time" \
  test "$(console node01 | grep -ca '] Kernel panic') $(console node02 | grep -ca '] Kernel panic')" = "1 1"
resets() { grep " $1 " "$MUSTER_LAB_DIR/bmc.log" | grep -c "\"ResetType\":\"$2\"" || true; }
tries() { journal "select max(attempt) from journal where action = '$1/boot'"; }
echo "  attempts of the restart: node01 $(tries node01), node02 $(tries node02)"
check "node01 restarted by itself: one attempt, and its power was never cut" \
  test "$(tries node01) $(resets node01 'Force[A-Za-z]*')" = "1 0"
check "node02 was started again through the RAM system, in a second attempt" test "$(tries node02)" = 2
check "the run said why: no agent reported from the installed system within its 4 minutes, and the machine on" \
  test "$(journal "select count(*) from journal where action = 'node02/boot' and data like '%no agent reported from the installed system within%power is on%'")" = 1
check "node01 is one whose kernels restart after a panic, node02 is not" \
  sh -c "$muster lab ssh node01 -- cat /proc/cmdline | grep -qw panic=30 && $muster lab ssh node02 -- cat /proc/cmdline | grep -qw panic=0"
