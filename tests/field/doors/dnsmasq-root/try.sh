#!/bin/bash
. "$SRC/tests/field/dhcp.sh"
spec "$CASE/site.yaml"
pid=$(cat "$run/dnsmasq.pid")
expect "of its user ids, root's" "$(grep -c '^Uid:.*[[:space:]]0[[:space:]]' "/proc/$pid/status")" 0
# CAP_NET_BIND_SERVICE, CAP_NET_ADMIN and CAP_NET_RAW are bits 10, 12 and 13.
expect "its other capabilities" "$((0x$(sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$pid/status") & ~0x3400))" 0
expect "the state folder" "$(stat -c %a "$WORK/state")" 700
expect "a declared machine" "$(machine 52:54:00:77:00:01)" "ack 10.20.0.11"
expect "the loader by TFTP" "$(there curl -s --max-time 20 tftp://10.20.0.1/snponly.efi | cmp - /usr/lib/ipxe/snponly.efi && echo same)" same
exit $wrong
