#!/usr/bin/env bash
# the reference cluster in small, five machines in four roles, SIMULATED GPUs: quick, then standard, accepted; then one GPU, one rail, one drive: each named
# stands on: agent/* agent/storage/{health,metadata,moosefs,nfs,parts,shared,storage_state}*
# stands on: agent/{boot,checks,core,facts,image,joining,link,measuring,steps,work} base cli controller/*
# stands on: controller/engines/{engine,local_engine,moosefs_engine,nfs_engine}* controller/hosts/hosts_spec*
# stands on: controller/options controller/ports/{power,run_ports,store}* controller/power/redfish* controller/power/service/power_service*
# stands on: controller/rollout/service controller/{api,boot,bringup,current,executor,image,link,locate,nodes,plan,report,run,spec,store,trust}
# stands on: docs/first-cluster.md hardware host images/debian-13.yaml kernels/* kernels/{common,containers,counters,cpu,drives,link,rdma,together,training} lab
# stands on: lab/* lab/stub-gpu playbooks/acceptance/quick.yaml playbooks/acceptance/standard.yaml playbooks/apptainer.yaml playbooks/base.yaml
# stands on: playbooks/firewall.yaml playbooks/gpu-vendor.yaml playbooks/interconnect.yaml playbooks/mpi.yaml playbooks/networks.yaml
# stands on: playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml playbooks/storage-nfs.yaml playbooks/storage-shared.yaml
# stands on: playbooks/tuning.yaml sys
source "$(dirname "$0")/lib.sh"
for tool in gpg gcc dpkg-deb python3; do command -v $tool >/dev/null || die "there is no $tool here"; done

# As docs/first-cluster.md says, command by command, in a folder with the tree's `lab`: the stand-ins' packages in an archive of their
# own, whose key the spec pins; the lab; `up` and `accept`, here with --report and --yes.
walk=$work/walk
mkdir -p "$walk" "$work/bin"
ln -s "$PWD/lab" "$walk/lab"
ln -s "$(realpath "$muster")" "$work/bin/muster"
says() { page_commands "Rehearse eight HGX servers" | grep -E "$1" || die "docs/first-cluster.md does not say: $1"; }
walked() {  # walked PATTERN [WHAT-COMES-BEHIND-IT]
  local line
  line=$(says "$1")
  echo "  \$ $line"
  (cd "$walk" && PATH=$work/bin:$PATH && eval "$line ${2:-}")
}
walked '^lab/stub-gpu/build.sh' '>../stub.log 2>&1' || { cat "$work/stub.log"; die "the stand-ins' packages"; }
walked "^\\{ sed '/\^  nvidia_/d' lab/hgx.yaml"
cp "$walk/hgx.yaml" "$work/cluster.yaml"
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
says '^sudo muster lab up hgx.yaml$' >/dev/null
lab_up   # the page's command, and images of earlier tests
walked '^muster spec check hgx.yaml'
serving=$(says '^sudo muster lab exec -- python3 .* &$' | sed 's/^sudo muster //; s/ &$//')
(cd "$walk" && eval "exec $work/bin/muster $serving") >"$work/http.log" 2>&1 &

names="head01 hgx01 hgx02 login01 store01"
verdicts() { jq -r '[.nodes | sort_by(.name)[] | .name + " " + .verdict] | join("\n")' "$1"; }
accepted() { [[ $(jq -r '[.nodes[] | select(.verdict == "accepted") | .name] | sort | join(" ")' "$1") == "$names" ]]; }
on() { node_ssh "$@" | tr -d '\r'; }

# ---- installed, configured, accepted by quick
start=$SECONDS
walked '^muster up hgx.yaml$' '--yes --report ../quick' >"$work/up.log" || { tail -n 60 "$work/up.log"; findings "$work/quick/report.json" || true; die "bring-up"; }
report=$work/quick/report.json
echo "  bring-up with quick took $((SECONDS - start)) s"
verdicts "$report" | sed 's/^/  /'
check "five of five are accepted by quick" accepted "$report"
check "the report says SIMULATED HARDWARE" jq -e .simulated "$report"
check "scratch is held to what its drives read" \
  jq -e '[.nodes[] | select(.name | startswith("hgx")) | .checks[] | select(.name == "local storage/read_mbps" or .name == "local storage/write_mbps")] | length == 4 and all(.verdict == "pass" and (.derivation | contains("lab: 0.001 x raw drives (2 drives")))' "$report"

# Every line about the GPUs says what they are, and nothing of them counts as measured.
check "node show says SIMULATED GPU of each" sh -c "$muster node show hgx01 | grep -c 'SIMULATED GPU' | grep -qx 3"   # the number, and each of two
check "the plan's notes say it, which the report repeats" jq -e 'any(.notes[]; contains("SIMULATED GPU: provided by the lab on hgx01 (2), hgx02 (2)"))' "$report"
check "the check of the hardware says it" \
  jq -e '[.nodes[] | select(.name | startswith("hgx")) | .checks[] | select(.name == "hardware/gpus" or .name == "hardware/gpu_model")] | length == 4 and all(.verdict == "pass" and (.measured_text | contains("SIMULATED GPU")))' "$report"
no_gpu_measured() {
  jq -e '[.nodes[] | select(.name | startswith("hgx")) | .checks[] | select(.name | test("^gpu (bf16|fp8|silent|memory|copies|nccl|training)"))]
         | length > 0 and all(.verdict == "not_applicable" and (.derivation | contains("SIMULATED GPU")))' "$1" >/dev/null
}
check "no load of GPUs was measured, and none passed" no_gpu_measured "$report"
check "what the stand-ins' driver counts was read" \
  jq -e '[.nodes[].checks[] | select(.name == "gpu counters/gpus_lost")] | length == 2 and all(.verdict == "pass" and .measured == 0)' "$report"
check "every line of a check of GPUs says it" \
  jq -e '[.nodes[].checks[] | select(.name | startswith("gpu "))] | length > 0 and all((.title | contains("SIMULATED GPU")) and (.measured_text + .reason | contains("SIMULATED GPU")))' "$report"
check "the other roles have no GPUs" jq -e '[.nodes[] | select(.name | startswith("hgx") | not) | .checks[] | select(.name | startswith("gpu "))] | length == 0' "$report"

# ---- the GPU software
for n in hgx01 hgx02; do
  check "$n: every step of gpu-vendor that needs a GPU was carried out" \
    jq -e --arg n "$n" '[.nodes[] | select(.name == $n) | .steps[] | select(.name | startswith("gpu-vendor/"))] | length == 7 and all((.status == "applied" or .status == "already") and (.name | contains("SIMULATED GPU")))' "$report"
  check "$n: a container of a plain user has both devices and the library" \
    jq -e --arg n "$n" '[.nodes[] | select(.name == $n) | .steps[] | select(.name | startswith("apptainer/GPUs in a container"))] | length == 1 and all((.status == "applied" or .status == "already") and (.name | contains("SIMULATED GPU")))' "$report"
  on "$n" cat /etc/cdi/nvidia.json >"$work/$n-cdi.json"
  check "$n: its CDI file has two devices and all of them, with the driver's libraries" \
    jq -e '.kind == "nvidia.com/gpu" and ([.devices[].name] == ["0", "1", "all"]) and ([.containerEdits.mounts[].hostPath] | any(endswith("/libcuda.so.1")) and any(endswith("/libnvidia-ml.so.1")))' "$work/$n-cdi.json"
done
check "DCGM's stand-in knows two" sh -c "$muster lab ssh hgx01 -- sudo dcgmi discovery -l | grep -q '^2 GPUs found.*SIMULATED GPU'"
check "a login shell finds nvcc" test "$(on hgx01 sh -lc "'command -v nvcc'")" = /usr/local/cuda/bin/nvcc
check "Slurm knows their type" test "$(on head01 sinfo -h -N -o "'%N %G'" | grep '^hgx' | sort -u | tr -s ' \n' ' ')" = "hgx01 gpu:h100:2 hgx02 gpu:h100:2 "
gres() { on login01 srun -N1 -n1 -w "$1" --gres=gpu:h100:2 --chdir=/tmp sh -c "'echo \$CUDA_VISIBLE_DEVICES'"; }
for n in hgx01 hgx02; do check "a job asks for two of $n by type and gets them" test "$(gres $n)" = 0,1; done
check "no more than there are" fails_on login01 "srun -N1 -n1 -w hgx01 --gres=gpu:h100:3 --immediate=5 --chdir=/tmp true"
# slurmd comes after the devices that gres.conf names: without one it waits, and drains no node.
on hgx02 sudo sh -c "'systemctl stop slurmd && mv /dev/nvidia1 /dev/nvidia1.away && systemctl start --no-block slurmd'"
sleep 5
check "slurmd waits for a device that is not there yet" fails_on hgx02 "systemctl is-active --quiet slurmd"
on hgx02 sudo mv /dev/nvidia1.away /dev/nvidia1
check "and begins when it is" wait_until 120 on hgx02 systemctl is-active --quiet slurmd
check "with both GPUs" wait_until 120 sh -c "$muster lab ssh head01 -- sinfo -h -N -n hgx02 -o %T | grep -qx idle"

# ---- networks and storage
check "rails are found beside a port without cable" sh -c "test \$($muster lab ssh hgx02 -- cat /etc/muster/networks.json | jq '[.ports[] | select(.rail >= 0)] | length') = 2"
for rail in 0 1; do check "rail $rail carries 9000 bytes in one piece" on hgx01 sudo ping -q -c 3 -W 5 -M "do" -s 8972 -I "10.100.$rail.12" "10.100.$rail.13"; done
check "NFS comes over the storage network" sh -c "$muster lab ssh login01 -- cat /proc/self/mountinfo | grep -q ' /home/shared .* - nfs4 10.30.0.'"
check "MooseFS is mounted where nothing of it lies, over the storage network, too" \
  sh -c "$muster lab ssh login01 -- findmnt -n -o FSTYPE,SOURCE /shared | grep -q '^fuse.*10.30.0.[0-9]*:9421'"
mtu_of() { on "$1" sh -c "'cat /sys/class/net/\$(ip -o -4 address | sed -n \"s/^[0-9]*: \([^ ]*\) .* 10.30.0.*/\1/p\")/mtu'"; }
for n in hgx01 store01; do check "$n: the storage network has jumbo frames" test "$(mtu_of $n)" = 9000; done
expect_exit 0 $muster up "$work/cluster.yaml" --yes >"$work/again.log"
check "the second up says that nothing changed" grep -q "already accepted, nothing changed" "$work/again.log"

# ---- standard, with counters that are not zero
# What was counted before is no fault now, nor is a program's error: a link that was down, an Xid of a program's.
on hgx01 sudo sh -c "'echo \"<3>NVRM: Xid (PCI:0000:e0:00): 31, pid=1, name=python3, SIMULATED GPU, MMU Fault\" >/dev/kmsg'"
on login01 sudo sh -c "'p=\$(ls /sys/bus/pci/devices/0000:01:00.0/virtio*/net); ip link set \$p down; sleep 1; ip link set \$p up; echo \"\$p was away \$(cat /sys/class/net/\$p/carrier_down_count) times\"'"
on hgx01 sudo sh -c "'p=\$(cat /sys/class/infiniband/rxe1/parent); ip link set \$p down; sleep 2; ip link set \$p up; cat /sys/class/infiniband/rxe1/ports/1/hw_counters/link_downed'" >"$work/downed"
check "rail 1 of hgx01 has been down ($(tail -n 1 "$work/downed"))" test "$(tail -n 1 "$work/downed")" -ge 1
check "and is a rail again" wait_until 120 on hgx01 sudo ping -q -c 1 -W 2 -I 10.100.1.12 10.100.1.13
check "the Xid of a program is in the log" sh -c "$muster lab ssh hgx01 -- sudo dmesg | grep -q 'Xid.*: 31,'"
check "the link was away" sh -c "test \$($muster lab ssh login01 -- cat /sys/bus/pci/devices/0000:01:00.0/virtio*/net/*/carrier_down_count) -ge 1"
wait_until 120 on login01 timeout 10 stat --file-system /home/shared >/dev/null || die "login01 has its storage back"
start=$SECONDS
walked '^muster accept --profile standard$' '--yes --report ../standard' || die "standard"
report=$work/standard/report.json
echo "  standard took $((SECONDS - start)) s"
check "five of five are accepted by standard" accepted "$report"
check "no load of GPUs was measured, and none passed" no_gpu_measured "$report"
rdma() { jq -c '.nodes[] | .name as $n | .checks[] | select(.name | startswith("rdma/")) | [$n, .name, .subject, .verdict, .measured_text, .reason]' "$1"; }
rdma "$report"
for n in hgx01 hgx02 store01; do
  check "$n: both rails were measured" \
    jq -e --arg n "$n" '[.nodes[] | .name as $by | .checks[] | select(.name == "rdma/send_gbps" and .verdict == "pass" and ($by == $n or (.subject | startswith($n))))
                         | .subject | capture("(?<rail>rail [01])$").rail] | unique == ["rail 0", "rail 1"]' "$report"
done

# ---- one GPU falls off the bus
check "Slurm's health check finds nothing before" on hgx02 sudo /etc/slurm/muster-health
$muster lab break hgx02 gpu-xid 1
check "the lab shows the fault" sh -c "$muster lab status --json | jq -e '.nodes[] | select(.name == \"hgx02\") | .faults | has(\"gpu-xid 1\")'"
check "its driver has lost it" fails_on hgx02 "nvidia-smi -L"
report=$work/xid/report.json
expect_exit 3 $muster accept --profile quick --yes --report "$work/xid"
# Behind a mandatory failure nothing else of that node is measured, which is said, and is no finding.
findings "$report" | grep -v ' | skipped | ' >"$work/xid.findings"
sed 's/^/  /' "$work/xid.findings"
check "hgx02 is quarantined" test "$(node_state hgx02)" = quarantined
check "the GPU is named" grep -q '^hgx02 | counters/gpu_xids | fail .*SIMULATED GPU 0000:e1:00' "$work/xid.findings"
check "why names it, too" sh -c "$muster why hgx02 | grep -q 'SIMULATED GPU 0000:e1:00'"
check "nothing else is" nowhere_in -vE '^hgx02 \| counters/gpu_xids' "$work/xid.findings"
for n in head01 hgx01 login01 store01; do check "$n is accepted" test "$(jq -r --arg n $n '.nodes[] | select(.name == $n) | .verdict' "$report")" = accepted; done

sick() {
  on hgx02 sudo /etc/slurm/muster-health >/dev/null 2>&1 || true
  on head01 sinfo -h -N -n hgx02 -o %E | grep -q 'muster health: gpu_xids.*SIMULATED GPU 0000:e1:00'
}
check "Slurm's health check takes it out, too" wait_until 180 sick

# Healed, all are accepted again: by quick, which measures the same counters.
$muster lab break hgx02 gpu-xid 1 --heal
on head01 sudo scontrol update nodename=hgx02 state=resume
check "both GPUs answer" test "$(on hgx02 nvidia-smi -L | grep -c 'SIMULATED GPU')" = 2
expect_exit 0 $muster accept --profile quick --yes --report "$work/healed"
check "five of five are accepted by quick again" accepted "$work/healed/report.json"

# ---- one rail shaped, one drive slow: both are named, and nothing else
serial=$(jq -r '[.nodes[] | select(.name == "hgx01") | .disks[] | select(.group == "fast") | .serial] | sort | .[0]' "$work/standard/report.json")
echo "  rail 1 of hgx02 at 1mbit, drive fast1 ($serial) of hgx01 at 2000000 bytes/s"
$muster lab break hgx02 shape 1mbit --network rail1
$muster lab break hgx01 slow-drive fast1 --rate 2000000
got=0
$muster accept --profile standard --yes --report "$work/slow" >"$work/slow.log" 2>&1 || got=$?
report=$work/slow/report.json
findings "$report" >"$work/slow.findings"
sed 's/^/  /' "$work/slow.findings"
check "that is not accepted (exit $got)" test "$got" = 3 -o "$got" = 5
# The shaped end is hgx02's. It is slow with both of the others, which are fast with each other: it alone is named.
check "rail 1 is named, with hgx02's end of it alone" \
  jq -e '[.nodes[] | select(.name == "hgx02") | .checks[] | select(.name == "rdma/located" and (.verdict == "fail" or .verdict == "degraded") and (.subject | startswith("rail 1, ")))]
         | length > 0 and all((.blame | length == 1 and all(startswith("link of hgx02 (") and contains("rail 1"))) and (.reason | contains("with hgx01") and contains("with store01")))' "$report"
check "no other node has this finding" jq -e '[.nodes[] | select(.name != "hgx02") | .checks[] | select(.name == "rdma/located")] | length == 0' "$report"
check "rail 0 is not" nowhere_in -E '\| rdma/.*rail 0' "$work/slow.findings"
check "the drive is named by its serial" sh -c "grep -E '^hgx01 \| drives/read_mbps \| (fail|degraded) \| ' '$work/slow.findings' | grep -q '$serial'"
# What was not measured of RDMA is said, and is no finding. Nor is it of a node behind its mandatory failure.
behind=""
for n in hgx01 hgx02; do if grep -q "^$n | [^|]* | fail | " "$work/slow.findings"; then behind+="|^$n \| [^|]* \| skipped \| "; fi; done
# What the innocent ends measured with it is explained by it.
check "nothing else is" nowhere_in -vE "^hgx02 \| rdma/.*rail 1|^(hgx01|store01) \| rdma/.*rail 1.*explained by: link of hgx02|^hgx01 \| drives/read_mbps .*$serial|^hgx0[12] \| rdma[^|]* \| skipped \| $behind" "$work/slow.findings"
for n in hgx01 hgx02; do check "$n is not accepted" test "$(jq -r --arg n $n '.nodes[] | select(.name == $n) | .verdict' "$report")" != accepted; done
for n in head01 login01 store01; do check "$n is accepted" test "$(jq -r --arg n $n '.nodes[] | select(.name == $n) | .verdict' "$report")" = accepted; done
$muster lab break hgx02 shape 1mbit --network rail1 --heal
$muster lab break hgx01 slow-drive fast1 --heal
# What was found holds until it is measured again: quick does not measure rails.
expect_exit 0 $muster accept --profile standard --yes --report "$work/mended"
check "five of five are accepted by standard again, hgx02 with its GPU too" accepted "$work/mended/report.json"
