#!/usr/bin/env bash
# quick, standard and burn as they are shipped, with the lab's limits, on machines that mount MooseFS, NFS and Ceph
# stands on: agent/checks agent/storage/{ceph,moosefs,nfs,parts,shared}*
# stands on: controller/engines/{ceph_engine,engine,local_engine,moosefs_engine,nfs_engine}* controller/plan/{acceptance_steps,simulated}*
# stands on: controller/power/redfish* controller/report controller/spec/drive_models* controller/spec/reader/{reader_acceptance,reader_lab}* hardware
# stands on: images/debian-13.yaml kernels/* kernels/{common,counters,cpu,drives,link,rdma,together,training} playbooks/acceptance/burn.yaml
# stands on: playbooks/acceptance/quick.yaml playbooks/acceptance/standard.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/mpi.yaml
# stands on: playbooks/ssh.yaml playbooks/storage-ceph.yaml playbooks/storage-local.yaml playbooks/storage-nfs.yaml playbooks/storage-shared.yaml
source "$(dirname "$0")/lib.sh"
playbooks="base, ssh, firewall, storage-local, storage-shared, storage-nfs, storage-ceph, mpi"
ceph_skips_benchmark
spec_from_quickstart \
  -e "s/recipe: debian-12/recipe: debian-13/; s/bake: \[.*\]/bake: [ $playbooks ]/; s/playbooks: \[.*\]/playbooks: [ $playbooks ]/" \
  -e 's/^      bulk: .*/&\n      home: { match: { serial: "LABHOME*", size: 1 GiB, count: 1 }, policy: format-if-blank }\n      store: { match: { serial: "LABSTORE*", size: 4 GiB, count: 1 }, policy: format-if-blank }/' \
  -e 's/^  shared: .*/&\n  home: { engine: nfs, server: node01, disks: home, mount: \/home\/shared }\n  objects: { engine: ceph, disks: store, copies: 2, mount: \/objects }/' \
  -e 's/^    - { name: bulk, .*/&\n    - { name: home, size: 1 GiB, serial_prefix: LABHOME }\n    - { name: store, size: 4 GiB, serial_prefix: LABSTORE }/' \
  -e 's/^cluster: .*/&\nplaybooks: [ own ]/; s/memory_mib: .*/memory_mib: 3072/; s/profile: lab }/profile: quick }/'
# Emulated processors and drives only have to work, and a file system must not be slower than its drives by orders of
# magnitude. The rest is the profiles' own.
cat >>"$work/cluster.yaml" <<'EOF'
  acceptance:
    time_scale: 0.002
    compare: false
    limits:
      dgemm/gflops: { min: 0.0001 }
      dgemm/slowest_core_ratio: {}
      memory/triad_mbps: { min: 5 }
      drives/read_mbps: { min: 0.5 }
      local storage/write_mbps: { of_raw_reads: 0.001, otherwise_min: 0.05 }
      local storage/read_mbps: { of_raw_reads: 0.001, otherwise_min: 0.05 }
      links/send_mbps: { min: 0.3 }
      links/receive_mbps: { min: 0.3 }
      links/rtt_ms: { max: 1000 }
      shared storage/write_mbps: { min: 0.1 }
      shared storage/read_mbps: { min: 0.1 }
      all-reduce/busbw_mbps: { min: 0.05 }
      all-reduce/latency_ms: {}
      all-reduce over mpi/busbw_mbps: { min: 0.05 }
    options:
      training load: { model: 32, heads: 2, sequence: 16, layers: 2 }
      shared storage: { size: 2 }
EOF
lab_up

# Each machine and each of the three file systems was measured, and said so.
measured() {  # measured REPORT PROFILE
  jq -e --arg p "$2" '.profile == $p and .simulated and ([.nodes[] | select(.verdict == "accepted")] | length) == 3
    and all(.nodes[]; ([.checks[] | select((.name | endswith("shared storage/write_mbps")) and .verdict == "pass") | .subject] | unique | length) == 3)
    and all(.nodes[]; any(.checks[]; (.name | endswith("dgemm/gflops")) and .verdict == "pass" and (.derivation | test("^the lab.s `min`"))))
    and any(.notes[]; contains("dgemm/gflops") and contains("multiplied by 0.002"))' "$1/report.json" >/dev/null
}
# The array was tested on all its drives at once, each of them was read by itself and beside the others of its kind, and no lane is lost.
drives_known() {  # drives_known REPORT
  jq -e 'all(.nodes[]; .checks as $c
    | ([$c[] | select(.name | endswith("drives/parallel_mbps")) | select(.verdict == "pass") | .subject]) as $raw
    | any($c[]; (.name | endswith("local storage/data")) and .verdict == "pass" and .evidence.detail.level == "raid0"
        and .evidence.detail.jobs > 1 and (.evidence.detail.drives | length) >= 2 and (.evidence.detail.drives - $raw) == [])
    and all($c[] | select(.name | endswith("pcie/lanes_lost")); .verdict != "fail"))' "$1/report.json" >/dev/null
}
# The array is held to what its drives have just read: a share of the sum, written out, and what the lab's spec says of it.
held_to_drives() {  # held_to_drives REPORT
  jq -e 'all(.nodes[]; .checks as $c
    | ([$c[] | select(.name | endswith("drives/parallel_mbps")) | {key: .subject, value: .measured}] | from_entries) as $raw
    | ([$c[] | select(.name | endswith("local storage/data")) | .evidence.detail.drives | map($raw[.]) | add] | add) as $sum
    | [$c[] | select((.name | endswith("local storage/write_mbps")) or (.name | endswith("local storage/read_mbps")))]
    | length == 2 and all(.verdict == "pass" and (.derivation | contains("lab: 0.001 x raw drives"))
        and (.expected - 0.001 * $sum | fabs) < 0.001 * .expected))
    and any(.notes[]; contains("local storage/read_mbps") and contains("of_raw_reads"))' "$1/report.json" >/dev/null
}
# What a report has of all this, to explain a failure.
figures() {  # figures REPORT
  jq -r '.notes[], (.nodes[] | .name as $n | .checks[] | select(.name | test("dgemm/gflops|parallel_mbps|lanes_lost|storage/(data|write_mbps|read_mbps)$"))
         | [$n, .name, .subject, .verdict, .measured_text, .derivation, .reason] | join(" | "))' "$1/report.json"
}
report_is() {  # report_is TEST REPORT [PROFILE]
  "$@" && return
  findings "$2/report.json" >&2
  figures "$2" >&2
  return 1
}
start=$SECONDS
told() { tail -n 40 "$1"; findings "$2/report.json" || true; }
$muster up "$work/cluster.yaml" --yes --report "$work/quick" >"$work/up.log" || { told "$work/up.log" "$work/quick"; die "bring-up"; }
echo "  bring-up with quick took $((SECONDS - start)) s"
check "accepted by quick" report_is measured "$work/quick" quick
check "local storage is known by its drives" report_is drives_known "$work/quick"
check "and held to them" report_is held_to_drives "$work/quick"
for profile in standard burn; do
  start=$SECONDS
  $muster accept --profile $profile --yes --report "$work/$profile" >"$work/$profile.log" || { told "$work/$profile.log" "$work/$profile"; die "$profile"; }
  echo "  $profile took $((SECONDS - start)) s"
  check "accepted by $profile" report_is measured "$work/$profile" $profile
  check "$profile holds local storage to its drives" report_is held_to_drives "$work/$profile"
done
