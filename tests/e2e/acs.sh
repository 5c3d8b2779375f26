#!/usr/bin/env bash
# PCIe ACS: on by the kernel before, off after the playbook, off again after a reboot; one machine
# stands on: agent/steps/gpu/acs* agent/steps/services controller/engines/local_engine* controller/power/redfish* playbooks/acs.yaml
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"

# The lab's root ports sit behind an emulated IOMMU and have no GPUs below them, so the bridges are named in the spec.
sed 's/node\[01-03\]/node[01-01]/; s/mac: .*/mac: [ "52:54:00:20:00:01" ]/; /shared:/d; s/, storage-shared, mpi//; /smp:/d' lab/quickstart.yaml |
  sed 's/\(playbooks: \[.*storage-local\)/\1, acs/; s/^acceptance:/vars: { acs_bridges: "BRIDGES" }\nacceptance:/' >"$work/draft.yaml"

control() { node_ssh node01 sudo lspci -vvv -s "$1" | grep 'ACSCtl'; }
on() { grep -q 'SrcValid+.*ReqRedir+.*CmpltRedir+.*UpstreamFwd+' <<<"$(control "$1")"; }
off() { grep -q 'SrcValid-.*ReqRedir-.*CmpltRedir-.*UpstreamFwd-' <<<"$(control "$1")"; }

# First without the playbook, to see what the kernel does on its own.
sed 's/, acs\b//; /^vars:/d' "$work/draft.yaml" >"$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/first.log" || { tail -n 40 "$work/first.log"; die "the first up"; }
node_ssh node01 sudo lspci -D | grep -i 'PCI bridge' | cut -d' ' -f1 >"$work/ports"
ports=$(tr '\n' ' ' <"$work/ports")
check "the machine has root ports: $ports" test -s "$work/ports"
for port in $ports; do
  if ! on "$port"; then
    echo "  the kernel left ACS off on $port: switched on by setpci, for the test"
    node_ssh node01 sudo setpci -s "$port" ECAP_ACS+0x6.w=001d
  fi
  check "ACS is on before: $port $(control "$port" | tr -s ' \t' ' ')" on "$port"
done

sed "s/BRIDGES/${ports% }/" "$work/draft.yaml" >"$work/acs.yaml"
$muster up "$work/acs.yaml" --yes --report "$work/report2" | tee "$work/up.log"
for port in $ports; do check "off after: $port $(control "$port" | tr -s ' \t' ' ')" off "$port"; done

boot=$(node_ssh node01 cat /proc/sys/kernel/random/boot_id)
node_ssh node01 sudo systemctl --no-block reboot || true
rebooted() { local now; now=$(node_ssh node01 cat /proc/sys/kernel/random/boot_id 2>/dev/null) && [[ $now != "$boot" ]]; }
check "it came up again" wait_until 400 rebooted
for port in $ports; do check "still off after the reboot: $port" wait_until 60 off "$port"; done
check "it was the unit at boot that did it" wait_until 30 \
  sh -c "$muster lab ssh node01 -- sudo journalctl -b -u muster-acs.service | grep -q 'ACS: [1-9][0-9]* registers corrected'"

# A reset lets the kernel put its policy back; the agent's own verb is what the timer runs, which comes two minutes after a boot.
node_ssh node01 sudo systemctl stop muster-acs.timer
port=${ports%% *}
node_ssh node01 sudo setpci -s "$port" ECAP_ACS+0x6.w=001d
check "set again, as a reset would" on "$port"
node_ssh node01 sudo systemctl start muster-acs.service
check "off again without the controller" off "$port"
