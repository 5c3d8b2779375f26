#!/usr/bin/env bash
# PCIe error counters that are not zero: acceptance counts from where they stood, and names the port that moved
# stands on: controller/engines/local_engine* controller/power/redfish* kernels/counters/{counters,pcie}* lab/{fault,rack_pcie}*
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
source tests/e2e/labs/small.sh
small_spec 1 >"$work/cluster.yaml"
shared_lab small
counted() { node_ssh node01 'cat /sys/bus/pci/devices/*/aer_dev_correctable 2>/dev/null' | awk '/TOTAL_ERR_COR/ { sum += $2 } END { print sum + 0 }'; }
before=$(counted)
echo "  corrected errors counted so far: $before"
# All that is known of the way from the injector to the counters, where they did not move.
explain() {
  node_ssh node01 sudo sh -c "'
    uname -r; cat /proc/cmdline
    lsmod | grep aer; ls -l /dev/aer_inject
    dmesg | grep -iE \"aer|pcieport|_OSC\" | tail -n 60
    grep -iE \"aer|pcie\" /proc/interrupts
    for d in /sys/bus/pci/devices/*; do [ -e \$d/aer_dev_correctable ] && { echo \$d; cat \$d/aer_dev_correctable \$d/aer_rootport_total_err_cor; }; done
    ls /sys/bus/pci_express/devices /sys/bus/pci_express/drivers
    lspci -vvv -d ::0604'" >&2 || true
}
errors() {  # errors NUMBER: one after the other, each counted
  local n from
  from=$(counted)
  one_more() { [[ $(counted) -ge $((from + n)) ]]; }
  for ((n = 1; n <= $1; n++)); do
    $muster lab break node01 pcie-error fast1 || { explain; die "error $n was not taken"; }
    wait_until 20 one_more || { explain; die "the kernel did not count error $n"; }
  done
}
counters() { node_ssh node01 sudo /usr/lib/muster/muster-accept counters "$@"; }
errors 3
check "the kernel counts three corrected errors" test "$(counted)" = $((before + 3))
counters --save /run/e2e-counters.json >/dev/null
counters --since /run/e2e-counters.json >"$work/quiet.json"
check "what was counted before is no finding" jq -e '.metrics.pcie_corrected.value == 0' "$work/quiet.json"
errors 2
counters --since /run/e2e-counters.json >"$work/moved.json"
check "what is counted since is" jq -e '.metrics.pcie_corrected.value == 2' "$work/moved.json"
check "the port is named" jq -e '.detail.part | startswith("PCIe 0000:")' "$work/moved.json"
port=$(jq -r .detail.part "$work/moved.json" | sed 's/^PCIe //')
check "it is the one above that drive" sh -c "$muster lab ssh node01 -- 'cat /sys/bus/pci/devices/$port/*/nvme/nvme*/serial' | grep -q LABFAST0101"
expect_exit 2 $muster lab break node01 pcie-error os   # the boot drive sits behind no port, and the lab says so
