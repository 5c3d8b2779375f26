#!/usr/bin/env bash
# a node with the distribution's full kernel (kernel: full), as metal gets it: netbooted, imaged, configured
source "$(dirname "$0")/lib.sh"
small_spec 1 's/kernel: cloud/kernel: full/' >"$work/cluster.yaml"
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
