# shellcheck shell=bash
# Two machines with three rails and the full kernel; node02's adapter on the third, rail2, counts errors (Debian's cloud kernel has no driver for it).
# members: port-errors rails roce
# stands on: agent/steps/network agent/steps/tcp* controller/engines/local_engine* controller/power/redfish* lab/{lab_spec,qemu_args}*
# stands on: playbooks/{base,firewall,interconnect,mpi,networks,ssh,storage-local,tuning}.yaml
lab_spec() {  # lab_spec PLAYBOOKS [SED-EXPRESSION...]: one image for all members, and the playbooks of one
  local playbooks=$1
  shift
  small_spec 2 's/kernel: cloud/kernel: full/' "s/playbooks: \[ .* \]/playbooks: [ $playbooks ]/" \
    's/bake: \[ .* \]/bake: [ base, ssh, firewall, networks, storage-local, tuning, mpi, interconnect ]/' \
    's/^users:/  rails: { count: 3, cidr: "10.100.{rail}.0\/24", mtu: 9000, kind: ethernet }\nusers:/' \
    's/^lab:/lab:\n  rails: 3\n  nodes: { node02: { counting: [ rail2 ] } }/' "$@"
}
lab_machines() { lab_spec "base, ssh, firewall, networks, storage-local"; }
# `up` sets addresses, MTU and links by each member's spec. Soft-RoCE stays on the rails: roce is the last.
lab_reset() { :; }
