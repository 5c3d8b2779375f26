#!/bin/bash
. "$SRC/tests/field/dhcp.sh"
spec "$CASE/cluster.yaml"
expect "an adopted host, for its own address" "$(machine 52:54:00:77:00:31 request 10.20.0.31)" silence
expect "a stranger without an address" "$(machine 52:54:00:77:00:55)" silence
expect "a declared machine" "$(machine 52:54:00:77:00:01)" "ack 10.20.0.11"
expect "a declared machine with a wrong address" "$(machine 52:54:00:77:00:01 request 192.168.7.9)" nak
exit $wrong
