#!/usr/bin/env bash
# the spec's package mirror (network.apt): the image is built from it, and a node's own packages come from it and from nowhere else
# stands on: agent/steps/packages controller/engines/local_engine* controller/image/service/bake* controller/image/{customize,layers,package_sources,recipe}*
# stands on: controller/power/redfish* controller/spec/apt_origin* controller/spec/reader/{reader_apt,reader_services}* images/debian-12.yaml
# stands on: lab/apt_proxy* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
# The lab's package proxy is a mirror, too: of the first plain-HTTP mirror of this computer. docs/lab.md
mirror=http://10.20.0.1:3142/debian
small_spec 1 "s|^users:|  apt: { mirror: $mirror }\nusers:|" 's/^lab:/packages: [ tree ]\nlab:/' >"$work/cluster.yaml"
lab_up
check "the spec is valid" $muster spec check "$work/cluster.yaml"
up_begins
up_ends 0
check "node01 is accepted" test "$(node_state node01)" = accepted
check "the image is made of that mirror" jq -e --arg m "$mirror" '.inputs.recipe.mirror == $m' "$MUSTER_LAB_DIR/state/images/cpu/current/build.json"
sources() { node_ssh node01 cat /etc/apt/sources.list | tr -d '\r' | sed 's/ \[[^]]*\]//'; }
sources
check "a node's packages come from it, with updates and security" \
  test "$(sources)" = "$(printf 'deb %s %s main\n' "$mirror" bookworm "$mirror" bookworm-updates "$mirror-security" bookworm-security)"
check "and from nowhere else" fails_on node01 "ls -A /etc/apt/sources.list.d | grep -q ."
check "the declared package is there" node_ssh node01 test -x /usr/bin/tree
check "and was found there" sh -c "$muster lab ssh node01 -- apt-cache policy tree | grep -q ' $mirror '"
check "apt believes the lists" node_ssh node01 sudo apt-get -qq update --error-on=any
$muster up "$work/cluster.yaml" --yes --report "$work/again" >"$work/again.log" || { tail -n 40 "$work/again.log"; die "the second up"; }
check "the second time there is nothing to do" grep -q "nothing changed" "$work/again.log"

# A node whose list was changed is put right as soon as it is configured again.
node_ssh node01 "echo 'deb http://10.20.0.1:9/debian bookworm main' | sudo tee /etc/apt/sources.list" >/dev/null
sed -i 's/^packages: .*/packages: [ tree, less ]/' "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/mended" >"$work/mended.log" || { cat "$work/mended.log"; die "configured again"; }
check "the list is the mirror's again" test "$(sources | grep -c "^deb $mirror")" = 3
