#!/usr/bin/env bash
# Two nodes have their leases; then a port is replaced, then two MACs are put right.
set -euo pipefail
source "$CASE/../network.sh"
musterd
nodes 52:54:00:00:00:01 52:54:00:00:00:02 >before.yaml
nodes 52:54:00:00:00:99 52:54:00:00:00:02 >replaced.yaml
nodes 52:54:00:00:00:02 52:54:00:00:00:99 >swapped.yaml
spec before.yaml
expect "node01" "ack 10.20.0.11" "$(client 52:54:00:00:00:01 discover)"
expect "node02" "ack 10.20.0.12" "$(client 52:54:00:00:00:02 discover)"
spec replaced.yaml
expect "node01's new port" "ack 10.20.0.11" "$(client 52:54:00:00:00:99 discover)"
expect "node02 as before" "ack 10.20.0.12" "$(client 52:54:00:00:00:02 discover)"
spec swapped.yaml
expect "node01, which was node02" "ack 10.20.0.11" "$(client 52:54:00:00:00:02 discover)"
expect "node02, which was node01" "ack 10.20.0.12" "$(client 52:54:00:00:00:99 discover)"
