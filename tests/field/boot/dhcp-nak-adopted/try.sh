#!/usr/bin/env bash
# musterd's dnsmasq, and a host that has its address from another server.
set -euo pipefail
source "$CASE/../network.sh"
nodes 52:54:00:00:00:01 52:54:00:00:00:02 \
  '  - { name: login01, role: cpu, address: 10.20.0.31, adopt: { host: 10.20.0.31, host_key: "SHA256:8zUNzGaXp/zEX4x58o3O4XaGdmlLXNNeDG2mht9i13E" } }' >spec.yaml
musterd
spec spec.yaml
expect "a declared machine" "ack 10.20.0.11" "$(client 52:54:00:00:00:01 discover)"
expect "the adopted host, at its boot" silence "$(client 52:54:00:00:00:31 reboot 10.20.0.31)"
expect "a stranger" silence "$(client 52:54:00:00:00:99 reboot 10.20.0.77)"
expect "a stranger without an address" silence "$(client 52:54:00:00:00:99 discover)"
