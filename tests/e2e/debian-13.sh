#!/usr/bin/env bash
# two machines from blank to accepted on Debian 13: its image, its RAM system (packed kernel modules), its MooseFS and mdadm, Python and Jupyter
# stands on: agent/boot/{kernel_modules,ram_init}*
# stands on: agent/image/{blobs,boot_network,commit_slot,efi_variables,esp_files,image_job,layout,mounted,own_slots,seed,slot_boot,slot_child,slot_frames,slot_seed,write_slot,writer}*
# stands on: agent/steps/disk agent/storage/{moosefs,parts,shared}*
# stands on: controller/engines/{engine,local_engine,moosefs_engine}* controller/image controller/power/redfish* images/debian-13.yaml
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
# stands on: playbooks/storage-shared.yaml playbooks/tools.yaml
source "$(dirname "$0")/lib.sh"
spec_from_quickstart 's/recipe: debian-12/recipe: debian-13/; s/node\[01-03\]/node[01-02]/; s/, "52:54:00:20:00:03" \]/ ]/; s/storage-shared, mpi \]/storage-shared, mpi, tools ]/'
$muster lab up "$work/cluster.yaml"

start=$SECONDS
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
echo "  bring-up took $((SECONDS - start)) s"
check "two of two accepted" test "$(jq -r '[.nodes[] | select(.verdict == "accepted")] | length' "$work/report/report.json")" = 2
on() { node_ssh "$@" | tr -d '\r'; }  # on NODE COMMAND...
check "they run Debian 13" test "$(on node01 sh -c "'. /etc/os-release; echo \$VERSION_CODENAME'")" = trixie
check "with Debian 13's kernel" sh -c "$muster lab ssh node02 -- uname -r | grep -q deb13"
kernel=$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .kernel')
check "and the RAM system boots the image's only kernel ($kernel)" test "$kernel" = "$(on node02 uname -r)"
check "no unit failed" fails_on node01 "systemctl --failed --no-legend --plain | grep -q ."
check "local scratch is XFS" test "$(on node01 findmnt -n -o FSTYPE /scratch)" = xfs
check "on the RAID" sh -c "$muster lab ssh node01 -- cat /proc/mdstat | grep -q 'active raid0'"
node_ssh node01 sudo sh -c "'echo from-node01 > /shared/e2e && sync'"
check "a file written on node01 is read on node02" test "$(on node02 cat /shared/e2e)" = from-node01
check "a notebook's Python has the system's NumPy" node_ssh node02 /opt/muster-python/bin/python -c "'import numpy, notebook'"
