#!/usr/bin/env bash
# a spec with a playbook of its own and an overlay: carried, baked, applied; a changed text applies what it is about; a broken one is refused by its line
# stands on: agent/steps/files cli/{carry_out,spec_file}* controller/engines/local_engine* controller/image/layers* controller/image/service/bake*
# stands on: controller/power/redfish* controller/spec/reader/{own_playbooks,parse_playbook,reader_playbooks}* controller/spec/{carry,playbook}*
# stands on: playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
mkdir "$work/site"
motd() {  # motd WORDS
  cat <<'YAML' | sed "s/WORDS/$1/"
playbook: motd
help: what people see when they log in
steps:
  - name: tools
    phase: image
    module: package
    params: { names: [ tree ] }
  - name: message
    module: file
    params: { path: /etc/motd, content: "WORDS {{node.name}} of {{cluster}}\n" }
  - name: marker
    module: file
    params: { path: /etc/site-marker, content: "untouched\n" }
  - name: kernel parameters
    module: sysctl
    params: { name: motd, values: { vm.swappiness: 7 } }
    verify: { module: sysctl, params: { name: motd, values: { vm.swappiness: 7 } } }
YAML
}
motd welcome-to >"$work/site/motd.yaml"
# Of the shipped playbook `ssh` nothing is changed but that one step comes behind it.
cat >"$work/site/ssh.yaml" <<'YAML'
playbook: ssh
overlay: true
steps:
  - name: a banner of the site
    module: file
    params: { path: /etc/site-banner, content: "authorised users only\n" }
YAML
small_spec 1 's/storage-local \]/storage-local, motd ]/' >"$work/cluster.yaml"
echo 'playbooks: [ site ]' >>"$work/cluster.yaml"

lab_up
check "the spec is valid, with what lies beside it" $muster spec check "$work/cluster.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
on() { node_ssh node01 "$@"; }
check "the file is rendered" test "$(on cat /etc/motd)" = "welcome-to node01 of quickstart"
check "the kernel has the parameter" test "$(on cat /proc/sys/vm/swappiness)" = 7
check "the package is in the image" on test -x /usr/bin/tree
check "the overlay's step came behind the shipped ones" test "$(on cat /etc/site-banner)" = "authorised users only"
check "which are there" on test -e /etc/ssh/sshd_config.d/00-muster.conf
check "the plan says whose playbooks they are" \
  sh -c "sqlite3 -readonly '$MUSTER_LAB_DIR/state/muster.db' 'select json from plan' | grep -q 'site/motd.yaml'"

# The stored spec needs no file beside it.
mv "$work/site" "$work/elsewhere"
$muster up --yes --report "$work/report" | tee "$work/again.log"
check "nothing to do without the files" grep -q "already accepted, nothing changed" "$work/again.log"
expect_exit 2 $muster up "$work/cluster.yaml" --yes
$muster spec show >"$work/shown.yaml"
check "what the controller shows is a whole spec" $muster spec check "$work/shown.yaml"
mv "$work/elsewhere" "$work/site"

on_time() { on stat -c %y "$1"; }
marker=$(on_time /etc/site-marker)
before=$(boots node01)
image=$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .digest')
motd good-day-on >"$work/site/motd.yaml"
$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/changed.log"
check "the changed text is on the node" test "$(on cat /etc/motd)" = "good-day-on node01 of quickstart"
check "what did not change was not written" test "$(on_time /etc/site-marker)" = "$marker"
check "the node was not booted for it" test "$(boots node01)" = "$before"
check "nor was the image built again" test "$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .digest')" = "$image"

motd broken | sed 's/module: file/module: filee/' >"$work/site/motd.yaml"
revision=$($muster spec show --json | jq .revision)
expect_exit 2 $muster up "$work/cluster.yaml" --yes 2>"$work/refused"
check "the refusal names file, line and column" grep -q 'site/motd.yaml:9:13: ' "$work/refused"
motd again >"$work/site/motd.yaml"
sed -i '/overlay/d' "$work/site/ssh.yaml"
expect_exit 2 $muster up "$work/cluster.yaml" --yes 2>"$work/refused"
check "a shipped playbook's name is not taken by accident" grep -q 'site/ssh.yaml:1:1: playbook' "$work/refused"
check "no revision came of either" test "$($muster spec show --json | jq .revision)" = "$revision"
check "and the node is as it was" test "$(on cat /etc/motd)" = "good-day-on node01 of quickstart"
