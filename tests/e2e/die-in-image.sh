#!/usr/bin/env bash
# a node loses power in the middle of imaging, and the network of another is cut for 60 s: both resume and are accepted
# stands on: agent/* agent/storage/storage_state* agent/{boot,core,facts,image,joining,link,measuring,work} controller/api/{agent_api,images_api}*
# stands on: controller/engines/local_engine* controller/image/frames* controller/link/{event_log,link_hub}* controller/ports/run_ports*
# stands on: controller/power/redfish* controller/{executor,run} lab/{fault,outages}* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
small_spec 2 >"$work/cluster.yaml"
lab_up
up_begins
during_up "node02 is in the middle of imaging" node_is node02 '.phase == "image" and .fraction > 0.3'
$muster lab break node02 kill
$muster lab break node01 net-cut 60
up_ends 0
check "node01 is accepted" test "$(node_state node01)" = accepted
check "node02 is accepted" test "$(node_state node02)" = accepted
result() { journal "select json_extract(data, '\$.result.$2') from journal where action = '$1/image' and event = 'succeeded'"; }
check "node02 kept what was on its disk" test "$(result node02 resumed)" = 1
check "node02 did not fetch it all again ($(result node02 kept) frames kept)" test "$(result node02 kept)" -gt 0
attempts() { journal "select max(attempt) from journal where action = '$1/image'"; }
check "node02 was imaged in a second attempt" test "$(attempts node02)" = 2
check "node01's order went on over the cut: one attempt" test "$(attempts node01)" = 1
check "node01 was not restarted: RAM system, installed system" test "$(boots node01)" = 2
check "node02 booted once more" test "$(boots node02)" = 3
