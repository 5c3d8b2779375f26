#!/bin/bash
. "$SRC/tests/field/dhcp.sh"
spec "$SRC/tests/field/boot/dhcp-nak-adopted/cluster.yaml"
expect "a stranger, for an address of another network" "$(machine 52:54:00:77:00:55 request 192.168.7.9)" silence
expect "a declared machine with such an address" "$(machine 52:54:00:77:00:01 request 192.168.7.9)" nak
exit $wrong
