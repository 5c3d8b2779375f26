#!/usr/bin/env bash
# a node with the distribution's full kernel and firmware (kernel: full, recipe debian-12-metal), as metal gets it: netbooted, imaged, configured; with declared network services
# stands on: agent/boot/{kernel_modules,ram_init}* agent/steps/{accounts,tcp}* agent/steps/files/config* agent/steps/services/time_servers*
# stands on: agent/steps/{network,packages,system} controller/engines/local_engine*
# stands on: controller/image controller/plan/network_services* controller/power/redfish* controller/spec/reader/reader_services*
# stands on: images/debian-12-metal.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
# Nothing answers at these addresses: the test looks at the node's settings.
services='  dns: [ 10.20.0.1 ]\n  search: [ lab.example ]\n  ntp: [ 10.20.0.1 ]\n  proxy: http://10.20.0.1:3142\ntime_zone: Europe/Berlin\n'
services+='firewall: [ { from: 10.7.0.0/16, port: 443, roles: [ cpu ], comment: portal } ]\npackages: [ less ]\nsysctls: { vm.swappiness: 7, kernel.panic: 40 }'
small_spec 1 's/recipe: debian-12, kernel: cloud/recipe: debian-12-metal, kernel: full/' "s|^users:|$services\nusers:|" >"$work/cluster.yaml"
$muster lab up "$work/cluster.yaml"
up_begins
up_ends 0
check "node01 is accepted" test "$(node_state node01)" = accepted
release=$(node_ssh node01 uname -r)
check "it runs the full kernel ($release)" grep -qE '^[0-9.]+-[0-9]+(\+deb[0-9u]+)?-amd64$' <<<"$release"
kernel=$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .kernel')
check "so did the RAM system, which boots the image's only kernel ($kernel)" test "$kernel" = "$release"
check "the package is linux-image-amd64" node_ssh node01 dpkg-query -W linux-image-amd64
check "a driver that the cloud kernel lacks is there" node_ssh node01 /sbin/modinfo ice

# Firmware comes from the mirror's component non-free-firmware. No emulated adapter asks for any and no virtual processor takes microcode:
# what is looked at is that both are where the kernel would find them.
on() { node_ssh node01 "$@" | tr -d '\r'; }
for package in firmware-misc-nonfree firmware-bnx2x firmware-qlogic intel-microcode amd64-microcode; do
  check "$package is installed" test "$(on dpkg-query -W -f "'\${Status}'" "$package")" = "install ok installed"
done
image=$MUSTER_LAB_DIR/state/images/cpu/current
asked=$(on /sbin/modinfo -F firmware ice | head -n 1)
check "the file that ice asks for ($asked) is on the node" node_ssh node01 test -s "/lib/firmware/$asked"
check "and in the RAM system" test -s "$image/ram/usr/lib/firmware/$asked"
for initrd in initrd ram-initrd; do
  check "microcode stands in front of $initrd" sh -c "head -c 512 '$image/$initrd' | grep -aqF kernel/x86/microcode"
  for maker in GenuineIntel AuthenticAMD; do
    check "that of $maker" grep -aqF "kernel/x86/microcode/$maker.bin" "$image/$initrd"
  done
done

check "it asks the declared name server" test "$(on grep -v '^#' /etc/resolv.conf)" = $'search lab.example\nnameserver 10.20.0.1'
check "which is in its port's settings as well" test "$(on grep -c -e '^DNS=10.20.0.1$' -e '^Domains=lab.example$' /etc/systemd/network/10-muster.network)" = 2
check "and the declared time server, and no other" test "$(on sudo chronyc -n sources | grep -c '^[\^=#][-?*+x~]')" = 1
check "with its address" sh -c "$muster lab ssh node01 -- sudo chronyc -n sources | grep -q '10\.20\.0\.1 '"
check "its time zone is the declared one" test "$(on date -d 2026-07-01T12:00:00Z +%H:%M)" = 14:00
check "the firewall lets the declared network in" sh -c "$muster lab ssh node01 -- sudo iptables -S ufw-user-input | grep -qe '-s 10.7.0.0/16 -p tcp -m tcp --dport 443 -j ACCEPT'"
check "and still the controller" sh -c "$muster lab ssh node01 -- sudo iptables -S ufw-user-input | grep -qe '-s 10.20.0.1/32 -j ACCEPT'"
check "kernel parameters are the declared ones" test "$(on cat /proc/sys/vm/swappiness /proc/sys/kernel/panic | tr '\n' ' ')" = "7 40 "
check "apt has the proxy" sh -c "$muster lab ssh node01 -- apt-config dump Acquire::http::Proxy | grep -q 10.20.0.1:3142"
check "and so do sessions" sh -c "$muster lab ssh node01 -- env | grep -q '^http_proxy=http://10.20.0.1:3142'"
$muster up "$work/cluster.yaml" --yes --report "$work/again" >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"
