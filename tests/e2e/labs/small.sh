# shellcheck shell=bash
# Three small machines; each member declares as many of them as it needs, with its own image and acceptance. `up` changes no image.
# members: degraded silent-node bad-night pcie-errors bad-image kexec
# stands on: controller/engines/local_engine* controller/power/redfish* playbooks/{base,firewall,ssh,storage-local}.yaml
lab_machines() { small_spec 3; }
# Machines that a member does not declare run on as they were; the next one that declares them has them back by `up`. kexec is the last: it
# makes another owner's machine of node02.
lab_reset() { :; }
