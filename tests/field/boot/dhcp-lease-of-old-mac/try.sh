#!/bin/bash
. "$SRC/tests/field/dhcp.sh"
spec "$CASE/before.yaml"
expect "before, the first" "$(machine 52:54:00:77:00:01)" "ack 10.20.0.11"
expect "before, the second" "$(machine 52:54:00:77:00:02)" "ack 10.20.0.12"
spec "$CASE/replaced.yaml"
expect "the new port" "$(machine 52:54:00:77:00:99)" "ack 10.20.0.11"
spec "$CASE/swapped.yaml"
expect "the ports swapped, one" "$(machine 52:54:00:77:00:01)" "ack 10.20.0.12"
expect "the ports swapped, two" "$(machine 52:54:00:77:00:02)" "ack 10.20.0.11"
exit $wrong
