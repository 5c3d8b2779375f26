# shellcheck shell=bash
# Faults of the hosts of lab/hosts.sh, which sources this: `plant NAME KIND`. Each stays until `down`.
#   slow-link    a tenth of the others' rate, both ways        slow-drive   a tenth of the others' rate
#   wrong-data   some of what it sends to ports 7490 to 7560, or from there, is altered on the way, with a valid checksum
#   xid          an Xid in its kernel log                      firmware     a different BIOS version
#   no-sudo      sudo requires a password                      noexec       programs run in /var/tmp only
#   prints       a start-up file that prints                   no-tty       PermitTTY no
#   dies         it ends                                       reboots      it ends and starts again, with a new boot id
#   firewall     it drops all packets to ports 7490 to 7560    wrong-key    a different host key
#   refused      no key may log in                             busy         ops works on it
#   other-machine   a different product, serial numbers and machine-id          full-memory  memory for the agent, and none to measure in
# Of the script that sources this: $dir, $pid (the host's process 1), enter, limit_drive, limit_link, kill_host, start_host.

append_log() {  # append_log HOST-FOLDER TEXT
  local next
  next=$(($(wc -l <"$1/machine/kmsg") + 1))
  echo "3,$next,$((next * 1000000)),-;$2" >>"$1/machine/kmsg"
}

# nf_tables alters payload without correcting the TCP checksum. Between namespaces checksums are not computed at all but left to a card that
# is never reached, so what arrives is accepted as valid, as after a card or a switch that alters data internally. Long segments only: no
# protocol header is near byte 200 of most of them.
alter_data() {
  enter "$pid" nft -f - <<'RULES'
table ip altered {
  chain output {
    type filter hook output priority 0;
    tcp sport 7490-7560 meta length > 4000 numgen inc mod 8 0 @th,1600,8 set 0x5a
    tcp dport 7490-7560 meta length > 4000 numgen inc mod 8 0 @th,1600,8 set 0x5a
  }
}
RULES
}

block_ports() {
  enter "$pid" nft -f - <<'RULES'
table ip blocked {
  chain input {
    type filter hook input priority 0;
    tcp dport 7490-7560 drop
  }
}
RULES
}

no_programs() {
  enter "$pid" bash -euc '
    for place in /run /tmp /dev/shm; do mount -o remount,noexec $place; done
    for place in /home/ops /root; do mount --bind $place $place; mount -o remount,bind,noexec $place; done'
}

reload_sshd() { kill -HUP "$pid"; }

# The agent has to start, or the host is not even reached: its program is a file in memory (11 MiB), and sshd, sudo, shells and the kernel's own
# take about 13 MiB. muster-accept (8 MiB) then comes packed, is unpacked, and becomes a file in memory too, about 19 MiB at once: that must not
# fit. Look at the programs' sizes when this host is accepted, or is not reached.
little_memory() {  # little_memory NAME
  local group file
  group=$(group_of memory "$1")
  file=$group/memory.max
  [[ -e $file ]] || file=$group/memory.limit_in_bytes
  echo 32M >"$file"
}

other_machine() {  # other_machine HOST-FOLDER
  local uuid
  uuid=$(cat /proc/sys/kernel/random/uuid)
  echo "$uuid" >"$1/machine/dmi/product_uuid"
  echo "SIM-${uuid:0:8}" >"$1/machine/dmi/product_serial"
  echo "SIM-${uuid:24:12}" >"$1/machine/block/nvme0n1/device/serial"
  enter "$pid" bash -c "echo ${uuid//-/} >/etc/machine-id"
}

# What counts is what processes use, which no file can simulate. More of them than processors: the other hosts use the same ones.
work_on() {  # work_on HOST-FOLDER
  echo "99.00 99.00 99.00 99/300 100" >"$1/machine/loadavg"
  enter "$pid" setpriv --reuid=ops --regid=ops --init-groups setsid \
    sh -c 'for n in 1 2 3 4; do while :; do :; done & done' </dev/null >/dev/null 2>&1
}

plant() {  # plant NAME KIND
  local host=$dir/hosts/$1
  case $2 in
    slow-link) limit_link "$1" 10mbit ;;
    slow-drive) limit_drive "$1" 10000000 ;;
    wrong-data) alter_data ;;
    xid) append_log "$host" "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus." ;;
    firmware) echo 0.9.7 >"$host/machine/dmi/bios_version" ;;
    no-sudo) enter "$pid" rm /etc/sudoers.d/ops ;;
    noexec) no_programs ;;
    prints) enter "$pid" bash -c 'for home in /root /home/ops; do sed -i "1i echo Welcome to \$(hostname)" $home/.bashrc; done' ;;
    no-tty) enter "$pid" bash -c 'echo "PermitTTY no" >/etc/ssh/sshd_config.d/no-tty.conf'; reload_sshd ;;
    dies) kill_host "$1" ;;
    reboots) kill_host "$1"; start_host "$1" ;;
    firewall) block_ports ;;
    wrong-key) enter "$pid" bash -c 'rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key'; reload_sshd ;;
    refused) enter "$pid" rm /root/.ssh/authorized_keys /home/ops/.ssh/authorized_keys ;;
    busy) work_on "$host" ;;
    other-machine) other_machine "$host" ;;
    full-memory) little_memory "$1" ;;
    *) echo "hosts.sh: there is no fault $2: $(sed -n '3,11s/^#  *//p' "${BASH_SOURCE[0]}")" >&2; exit 2 ;;
  esac
}
