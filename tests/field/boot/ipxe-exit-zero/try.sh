#!/usr/bin/env bash
# What musterd hands to machines that are not to fetch a system.
set -euo pipefail
source "$CASE/../network.sh"
ip addr add 10.20.0.11/24 dev vm
nodes 52:54:00:00:00:01 52:54:00:00:00:02 >spec.yaml
musterd
spec spec.yaml
for file in boot.ipxe boot/52-54-00-00-00-01.ipxe boot/52-54-00-00-00-99.ipxe; do
  expect "$file" "exit 1" "$(curl -sf http://10.20.0.1:7480/$file | grep -o 'exit.*')"
done
