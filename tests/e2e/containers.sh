#!/usr/bin/env bash
# playbook containers, two nodes, SIMULATED GPUs: docker, podman, apptainer, then stand-ins of toolkit, enroot, pyxis; MPI; ports, registry, re-image, refusals
# Docker, podman, Apptainer, Slurm and its PMIx are real; the Container Toolkit, enroot and pyxis are the stand-ins of tests/e2e/containers, so of
# these only order, permissions, the ABI of Slurm and what the playbook does with them is shown, never the vendor's programs.
# stands on: agent/checks/accept* agent/steps/{gpu,packages,not_applicable*} agent/steps/files/{config,directory,line}*
# stands on: agent/steps/network/{nccl_conf,networks,rdma_ports}* agent/steps/services/{kept_directory,slurm,timer}*
# stands on: agent/steps/system/{kernel_module,reboot,slot,subordinate_ids}* controller/engines/local_engine* controller/image/layers*
# stands on: controller/image/service/bake* controller/power/redfish* controller/spec/variables* images/debian-13.yaml
# stands on: kernels/containers lab/stub-gpu playbooks/acceptance/lab.yaml playbooks/apptainer.yaml playbooks/base.yaml
# stands on: playbooks/containers.yaml playbooks/firewall.yaml playbooks/gpu-vendor.yaml playbooks/interconnect.yaml playbooks/mpi.yaml
# stands on: playbooks/networks.yaml playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml tests/e2e/containers
# beside the record: images/debian-12.yaml
# weakened by: CONTAINERS_STAGES CONTAINERS_KEPT
#
# CONTAINERS_STAGES: only these, of "engines network site vendors jobs acceptance refused in-place debian-12". CONTAINERS_KEPT=FOLDER: with the lab
# that MUSTER_E2E_KEEP left there. So one that failed in its jobs goes on with:
# CONTAINERS_KEPT=FOLDER CONTAINERS_STAGES="jobs acceptance refused in-place debian-12" MUSTER_E2E_KEEP=yes tests/e2e/containers.sh
kept_work=${CONTAINERS_KEPT:-}
source "$(dirname "$0")/lib.sh"
source tests/e2e/containers/registry.sh
for tool in gpg gcc dpkg-deb python3 openssl; do command -v $tool >/dev/null || die "there is no $tool here"; done
stages=${CONTAINERS_STAGES:-engines network site vendors jobs acceptance refused in-place debian-12}
declare -A minutes=([engines]=25 [network]=4 [site]=11 [vendors]=25 [jobs]=5 [acceptance]=3 [refused]=15 [in-place]=11 [debian-12]=7)   # two cores, without KVM

# ---- the spec: two nodes with GPUs, the first of which leads Slurm and is logged in to: a third machine without GPUs would cost a fifth of the time.
# apptainer comes behind containers, whose steps name the setting that forbids user namespaces.
gpu="base, ssh, firewall, networks, gpu-vendor, interconnect, storage-local, mpi, containers, apptainer, scheduler"
spec() {
  cat <<YAML
cluster: containers
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
  rails:        { count: 1, cidr: "10.100.{rail}.0/24", mtu: 9000 }
  proxy:        http://10.20.0.1:8097
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true, uid: 1001 }
images:
  all: { recipe: debian-13, kernel: full, bake: [ $gpu ] }
nodes:
  - name: gpu[01-02]
    role: compute
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ]
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    hardware: { cpus: 1, memory: ">= 1800 MiB", gpus: 2, gpu_model: "*H100*" }
    disks:
      os:   { match: { serial: "LABOS*",   size: 16 GiB, count: 1 }, policy: format-if-blank }
      fast: { match: { serial: "LABFAST*", size: 2 GiB,  count: 2 }, policy: format-if-blank }
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
roles:
  compute: { playbooks: [ $gpu ] }
# Below 1024, where the nodes may not reach each other unless a rule says so: gpu01 may reach gpu02, and not the other way round.
firewall:
  - { from: 10.20.0.11, port: 81, proto: tcp, roles: [ compute ], comment: published by a container }
acceptance: { profile: lab }   # quick has 60 s for all engines, less than emulated processors need
limits: { netboot: 15 min, boot: 15 min, trial: 45 min, drain_timeout: 15 min }
lab:
  memory_mib: 2048
  smp: 1
  profile: dgx-h100
  rails: 1
  gpus: 2
  gpu_model: NVIDIA H100 80GB HBM3
  drives:
    - { name: os,   size: 16 GiB, serial_prefix: LABOS }
    - { name: fast, size: 2 GiB,  serial_prefix: LABFAST, count: 2 }
vars:
  soft_roce: "yes"
  docker_bridge: 10.201.0.1/24
  docker_mirrors: http://10.20.0.1:8098
  registry_secret: registry
YAML
}
www=$work/www
export no_proxy="${no_proxy:+$no_proxy,}10.20.0.1"   # the lab's package proxy knows the mirrors of the host only
served() { sed "s#ARCHIVE#http://10.20.0.1:8099#; ${1:-}" "$www/vars.yaml"; }   # served [SED-COMMAND]

on() { node_ssh "$@" | tr -d '\r'; }
onto() { node_ssh "$1" sudo sh -c "'mkdir -p $(dirname "$2"); cat >$2; chmod $3 $2'"; }   # onto NODE PATH MODE, from the standard input
# A command succeeds and prints this, and nothing else.
prints() {   # prints TEXT COMMAND...
  local want=$1 got
  shift
  got=$("$@") && [[ $got == "$want" ]] || { echo "  '$got' instead of '$want': $*" >&2; return 1; }
}

# ---- what the spec cannot say is refused before anything is built
begin() {
  spec >"$work/cluster.yaml"
  lab/stub-gpu/build.sh "$www" >"$work/stub.log" 2>&1 || { cat "$work/stub.log"; die "the driver's stand-ins"; }
  served >>"$work/cluster.yaml"
  tests/e2e/containers/build.sh "$www" >"$work/stub.log" 2>&1 || { cat "$work/stub.log"; die "the stand-ins of the container software"; }
  registry_files "$work/registry"
  lab_up   # from now on LAB_SSH_KEY is its key
  served /apptainer/d | cat "$work/cluster.yaml" - >"$work/vendors.yaml"
  echo '  container_cache_gib: "1"' >>"$work/vendors.yaml"
  check "the spec without the vendors' software is right" $muster spec check "$work/cluster.yaml"
  check "and with it" $muster spec check "$work/vendors.yaml"
  invalid "a file without its digest" '/enroot_sha256:/d' 'vars.enroot_'
  invalid "a digest without its file" '/pyxis_url:/d' 'vars.pyxis_'
  invalid "pyxis without enroot" '/enroot_/d' vars.pyxis_url
  invalid "a second Apptainer" '$a\  apptainer_url: http://10.20.0.1:8099/a.deb\n  apptainer_sha256: "0"' vars.apptainer_url
  invalid "a misspelt variable" 's/  toolkit_version:/  toolkit_versoin:/' 'vars.toolkit_versoin'
  invalid "a bridge without its network" 's/docker_bridge: .*/docker_bridge: 10.201.0.1/' vars.docker_bridge
  invalid "a bridge over a rail" 's#docker_bridge: .*#docker_bridge: 10.100.0.1/16#' 'vars.docker_bridge: 10.100.0.0/16 overlaps 10.100.0.0/24 of rail 0'
  invalid "a cache limit that is no number" 's/container_cache_gib: .*/container_cache_gib: 1 TiB/' vars.container_cache_gib
  invalid "containers before the GPUs' driver" 's/gpu-vendor, \(.*\)containers, /containers, gpu-vendor, \1/' roles.compute.playbooks
  invalid "Slurm before the containers" 's/containers, apptainer, scheduler/scheduler, containers, apptainer/' roles.compute.playbooks
  $muster secret set registry <"$work/registry/login"
}
invalid() {   # what sed-expression words
  local got=0
  sed "$2" "$work/vendors.yaml" >"$work/invalid.yaml"
  $muster spec check "$work/invalid.yaml" >"$work/invalid.log" 2>&1 || got=$?
  check "$1 is refused by spec check" test "$got" = 2
  check "at its place" grep -qF "$3" "$work/invalid.log"
}

# ---- what the stages have in common
names="gpu01 gpu02"
accepted() { [[ $(jq -r '[.nodes[] | select(.verdict == "accepted") | .name] | sort | join(" ")' "$1") == "$names" ]]; }
# No unit of a node failed; else they are printed.
all_units_well() { prints "" on "$1" systemctl --failed --no-legend --plain; }
image_now() { $muster image list --json | jq -r '.images[] | select(.name == "all") | .digest'; }
both_again() {   # both_again SPEC
  $muster up "$1" --yes --report "$work/report-again" >"$work/again.log" 2>&1 || { tail -n 40 "$work/again.log"; die "both nodes again"; }
  local n
  for n in gpu01 gpu02; do check "$n is accepted again" test "$(node_state $n)" = accepted; done
}
# Carries out the steps of both nodes again. Each has to fail, with its words in the reason.
both_refuse() {   # both_refuse WHAT-ON-GPU01 WORDS-OF-GPU01 WHAT-ON-GPU02 WORDS-OF-GPU02
  local digest
  digest=$($muster plan --force gpu01,gpu02 --json | jq -r .digest)
  if $muster approve "$digest" >"$work/refused.log" 2>&1; then die "$1, and $3: nothing failed"; fi
  $muster status --json | jq -r '.nodes[] | "  \(.name): \(.reason)"'
  check "$1: refused by name" node_is gpu01 "((.reason // \"\") | test(\"$2\"))"
  check "$3: refused by name" node_is gpu02 "((.reason // \"\") | test(\"$4\"))"
}
# A web server in a container, whose port is published.
publish() {   # publish NODE
  on "$1" sudo docker rm -f published >/dev/null 2>&1 || true
  on "$1" sudo docker run -d --name published -p 81:8081 -v /etc/hostname:/www/index.html:ro e2e:1 /bin/busybox httpd -f -p 8081 -h /www >/dev/null
}
page() {   # page FROM ADDRESS: the first word of the page, or how it ended: 124, no answer
  on "$1" "timeout 10 bash -c 'exec 3<>/dev/tcp/$2/81 && printf \"GET /index.html HTTP/1.0\\r\\n\\r\\n\" >&3 && tail -n 1 <&3' 2>/dev/null || echo \$?"
}
# What a container of each engine sees. The image is made of what the node has: no registry.
prepare() {   # prepare NODE
  on "$1" sudo touch /scratch/of-the-node
  onto "$1" /scratch/seen.sh 755 <tests/e2e/containers/seen.sh
  on "$1" sh -c "'tar -C / -c bin/busybox >/scratch/e2e.tar; podman image exists e2e:1 || podman import -q /scratch/e2e.tar e2e:1'" >/dev/null
  on "$1" sudo sh -c "'docker image inspect e2e:1 >/dev/null 2>&1 || docker import /scratch/e2e.tar e2e:1'" >/dev/null
}
seen="/bin/busybox sh /scratch/seen.sh"
in_docker() { on "$1" sudo docker run --rm --network none --device nvidia.com/gpu=all --device /dev/infiniband/uverbs0 -v /scratch:/scratch e2e:1 "$seen"; }
in_podman() { on "$1" podman run --rm --network none --device nvidia.com/gpu=all --device /dev/infiniband/uverbs0 -v /scratch:/scratch e2e:1 "$seen"; }
in_apptainer() { on "$1" apptainer -s exec --nv --no-home --bind /scratch /usr/lib/muster/test-container "$seen"; }
in_enroot() { on "$1" enroot start -e NVIDIA_VISIBLE_DEVICES=all -e MELLANOX_VISIBLE_DEVICES=all -m /scratch /scratch/e2e.sqsh "$seen"; }
sees_all() {   # sees_all NODE ENGINE...
  local node=$1 engine
  shift
  for engine in "$@"; do
    check "$node: a container of $engine has both GPUs, the driver's libraries, RDMA and /scratch" \
      prints "gpus=2 libraries=2 rdma=1 scratch=yes" "in_$engine" "$node"
  done
}

# ---- Debian's engines, without a variable of a vendor
left_out() {   # left_out REPORT WORD: a step of the playbook that says so
  jq -e --arg w "$2" '[.nodes[].steps[] | select(.name | startswith("containers/"))
                       | select(.status == "not_applicable" and (.message | contains($w)))] | length > 0' "$1" >/dev/null
}
stage_engines() {
  $muster up "$work/cluster.yaml" --yes --report "$work/report" >"$work/up.log" 2>&1 ||
    { tail -n 60 "$work/up.log"; findings "$work/report/report.json" || true; die "bring-up"; }
  local report=$work/report/report.json n secret word
  check "two of two are accepted" accepted "$report"
  for word in toolkit_version enroot_url pyxis_url container_cache_gib; do check "what is left out names $word" left_out "$report" $word; done
  check "no step failed" jq -e '[.nodes[].steps[] | select(.name | startswith("containers/"))] | length > 0 and all(.status != "failed")' "$report"
  secret=$(printf ops:open-sesame | base64)
  check "the login of the registry is in no log, plan or report" nowhere_in "$secret" "$MUSTER_LAB_DIR"/musterd.log "$work/report" "$work/up.log"

  for n in gpu01 gpu02; do
    prepare $n
    sees_all $n docker podman apptainer
    check "$n: what they read is muster's file" on $n test -s /etc/cdi/nvidia.json
    check "$n: the user has no docker, and needs none" fails_on $n "docker ps >/dev/null 2>&1"
    check "$n: one GPU by its name" test "$(on $n podman run --rm --network none --device nvidia.com/gpu=1 e2e:1 /bin/busybox ls /dev | grep -c '^nvidia[0-9]')" = 1
    check "$n: without a request, none" test "$(on $n podman run --rm --network none e2e:1 /bin/busybox ls /dev | grep -c nvidia)" = 0
    check "$n: the user has one range of each kind" test "$(on $n cat /etc/subuid /etc/subgid | grep -c '^ops:[0-9]*:65536$')" = 2
    check "$n: Docker's data lies on the local disks" test "$(on $n sudo docker info --format "'{{.DockerRootDir}}'")" = /scratch/containers/docker
    check "$n: and the user's" test "$(on $n podman info --format "'{{.Store.GraphRoot}}'")" = /scratch/containers/podman/1001
    check "$n: where he alone is" test "$(on $n stat -c "'%a %U'" /scratch/containers/podman/1001)" = "700 ops"
    check "$n: Docker reads the device list" grep -q /etc/cdi <<<"$(on $n sudo docker info --format "'{{json .CDISpecDirs}}'")"
    check "$n: logs of containers are bounded" on $n sudo grep -q max-size /etc/docker/daemon.json
  done
  check "the ranges are the same on both nodes" test "$(on gpu01 grep ^ops: /etc/subuid)" = "$(on gpu02 grep ^ops: /etc/subuid)"
  on gpu01 cat /etc/cdi/nvidia.json >"$work/cdi.json"
  check "muster's file has each GPU, all, and the libraries" \
    jq -e '([.devices[].name] == ["0", "1", "all"]) and ([.containerEdits.mounts[].hostPath] | any(endswith("/libcuda.so.1")))' "$work/cdi.json"
  for n in $names; do check "$n: no unit failed" all_units_well $n; done
}

# ---- the network: a published port goes through ufw; images come through the proxy, with root's login, and from the mirror
requested() { grep -q "$1" "$work/registry/log"; }
denied() { grep -c ' 401$' "$work/registry/log" || true; }
stage_network() {
  local n
  for n in gpu01 gpu02; do publish $n; done
  registry_begins "$work/registry" 10.20.0.1 "$muster" lab exec --   # until "with the registry away": the rest of the test needs none
  check "gpu01, which a rule lets in, reads the page of gpu02's container" wait_until 60 prints gpu02 page gpu01 10.20.0.12
  check "gpu01's own answers on gpu01" wait_until 60 prints gpu01 page gpu01 10.20.0.11
  check "and gpu02, which no rule lets in, gets no answer" prints 124 page gpu02 10.20.0.11
  check "Docker has no rules of its own" fails_on gpu01 "sudo iptables -S | grep -q DOCKER"
  check "and the node is no router" test "$(on gpu01 cat /proc/sys/net/ipv4/ip_forward)" = 0

  onto gpu01 /etc/docker/certs.d/registry.example/ca.crt 644 <"$work/registry/cert.pem"
  check "root pulls through the proxy, with the login of the vault" on gpu01 sudo docker pull -q registry.example/site/tool:1
  check "and runs it" test "$(on gpu01 sudo docker run --rm --network none registry.example/site/tool:1)" = pulled
  check "by the proxy" requested '^CONNECT registry.example:443 200'
  local before
  before=$(denied)
  check "the user is refused" fails_on gpu01 "podman pull -q registry.example/site/tool:1"
  check "by the registry, since he has no login" test "$(denied)" -gt "$before"
  check "and cannot read root's" fails_on gpu01 "cat /root/.docker/config.json 2>/dev/null"
  check "which only root can" test "$(on gpu01 sudo stat -c "'%a %U'" /root/.docker/config.json)" = "600 root"
  check "an image of the public registry comes from the mirror" on gpu01 sudo docker pull -q e2e-mirror:1
  check "which has the request" requested 'v2/library/e2e-mirror/'
  kill "$registry"
  wait "$registry" 2>/dev/null || true
  check "with the registry away a pull fails, and says where" \
    on gpu01 "if sudo docker pull registry.example/site/other:1 >/tmp/away 2>&1; then exit 1; else grep -qE 'registry.example|8097' /tmp/away; fi"
  check "and leaves nothing half there" fails_on gpu01 "sudo docker image inspect registry.example/site/other:1 >/dev/null 2>&1"
}

# ---- what a site did itself: a file of its own for the GPUs that lacks one, a Docker set otherwise. Both nodes at once.
files() { on gpu01 sudo sha256sum /etc/cdi/nvidia.yaml; on gpu02 sudo sha256sum /etc/docker/daemon.json; }
unchanged() { files | diff - "$work/files"; }
stage_site() {
  onto gpu01 /etc/cdi/nvidia.yaml 644 <<'YAML'
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits: { deviceNodes: [ { path: /dev/nvidia0 } ] }
  - name: all
    containerEdits: { deviceNodes: [ { path: /dev/nvidia0 } ] }
YAML
  on gpu02 sudo sh -c "'[ -e /root/daemon.json ] || cp -p /etc/docker/daemon.json /root/daemon.json; sed -i \"s/\\\"iptables\\\": *false/\\\"iptables\\\": true/\" /etc/docker/daemon.json'"
  check "the site's Docker opens the firewall" on gpu02 sudo grep -q "'\"iptables\": *true'" /etc/docker/daemon.json
  files >"$work/files"
  both_refuse "an own file that lacks a GPU" '/etc/cdi/nvidia.yaml' "a Docker that sets up rules" 'iptables'
  check "neither file was changed" unchanged
  on gpu01 sudo rm /etc/cdi/nvidia.yaml
  # A setting of the site's that is in no one's way stays.
  on gpu02 sudo sh -c "'sed \"0,/{/s//{ \\\"max-concurrent-downloads\\\": 2,/\" /root/daemon.json >/etc/docker/daemon.json'"
  both_again "$work/cluster.yaml"
  check "muster's file for the GPUs is there again" on gpu01 test -s /etc/cdi/nvidia.json
  check "the site's own setting stayed" on gpu02 sudo grep -q "'\"max-concurrent-downloads\": *2'" /etc/docker/daemon.json
  sees_all gpu01 docker podman
  sees_all gpu02 docker
}

# ---- the vendors' software: a wrong digest installs nothing; then it is in a new image, to which both nodes change in place
# One of the three kinds of downloads, since each takes minutes and all of them go the same way (fetch() in agent/steps/files/own_file.cc).
refused() {   # variable words
  sed "s/\($1_sha256: \"\)..../\10000/" "$work/vendors.yaml" >"$work/wrong.yaml"
  local rc=0 before
  before=$(image_now)
  $muster up "$work/wrong.yaml" --yes >"$work/wrong.log" 2>&1 || rc=$?
  check "a wrong digest of $1 is refused" test $rc -ne 0
  tail -n 3 "$work/wrong.log" | cut -c 1-300
  check "and named" grep -qF "$2" "$work/wrong.log"
  check "no image came of it" test "$(image_now)" = "$before"
}
version() { on "$1" dpkg-query -W -f "'\${Version}'" "$2"; }
ready() {   # ready NODE: what is on a node with GPUs, whichever way it came there
  local n=$1 p
  for p in nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1; do
    check "$n: $p is the declared version, and held" \
      test "$(version "$n" $p) $(on "$n" apt-mark showhold | grep -cx $p)" = "1.18.1-1 1"
  done
  for p in enroot enroot+caps; do check "$n: $p is installed" test "$(version "$n" $p)" = 4.1.2-1; done
  check "$n: the capabilities that enroot+caps gave in the image are there" \
    grep -q 'cap_sys_admin,cap_mknod' <<<"$(on "$n" /usr/sbin/getcap /usr/bin/enroot-aufs2ovlfs)"
  check "$n: muster's file gave way" fails_on "$n" "test -e /etc/cdi/nvidia.json"
  check "$n: the toolkit has written its own" on "$n" sudo test -s /run/cdi/nvidia.yaml
  check "$n: and will again at the next change" test "$(on "$n" systemctl is-enabled nvidia-cdi-refresh.service nvidia-cdi-refresh.path | tr '\n' ' ')" = "enabled enabled "
  check "$n: the toolkit lists each GPU by number and by UUID, and all" test "$(on "$n" "nvidia-ctk cdi list 2>/dev/null" | grep -c '^nvidia.com/gpu=')" = 5
  check "$n: enroot's folders are for everybody" test "$(on "$n" stat -c %a /scratch/containers/enroot /scratch/containers/podman /run/enroot | sort -u)" = 1777
  check "$n: and the user's is his" test "$(on "$n" stat -c "'%a %U'" /scratch/containers/enroot/1001)" = "700 ops"
  check "$n: the images of a node have a limit" on "$n" systemctl is-active --quiet muster-container-cache.timer
  onto "$n" /tmp/make.sh 755 <<'SH'
set -e
rm -rf /scratch/e2e /scratch/mpi
mkdir -p /scratch/e2e/bin /scratch/mpi/usr
cp /bin/busybox /scratch/e2e/bin/ && ln -s busybox /scratch/e2e/bin/sh
for i in bin sbin lib lib64; do ln -s usr/$i /scratch/mpi/$i; done
for i in e2e mpi; do mkdir -p /scratch/$i/etc /scratch/$i/scratch; mksquashfs /scratch/$i /scratch/$i.sqsh -noappend -quiet -no-progress; done
SH
  on "$n" sudo sh /tmp/make.sh >/dev/null
  prepare "$n"
  sees_all "$n" docker podman apptainer enroot
  check "$n: enroot's containers are the user's" test "$(on "$n" enroot start /scratch/e2e.sqsh /bin/busybox id -u)" = 1001
}
stage_vendors() {
  local n
  refused enroot_caps enroot+caps_4.1.2-1_amd64.deb
  $muster up "$work/vendors.yaml" --reimage --yes --report "$work/vendors" >"$work/up.log" 2>&1 ||
    { tail -n 60 "$work/up.log"; findings "$work/vendors/report.json" || true; die "the vendors' software"; }
  check "two of two are accepted" accepted "$work/vendors/report.json"
  for n in gpu01 gpu02; do ready $n; done
  for n in $names; do check "$n: no unit failed" all_units_well $n; done
}

# ---- jobs in containers: on each node with GPUs, on both with MPI, and within what the job was given
job() {   # job SRUN-OPTION...: what its container has
  on gpu01 srun --chdir=/ --container-image=/scratch/e2e.sqsh --container-mounts=/scratch:/scratch "$@" /bin/busybox sh /scratch/seen.sh
}
in_a_job() (   # in_a_job ENGINE NODE: its container, begun by a job that has one GPU
  on() { node_ssh gpu01 srun -N1 -n1 -w "$1" --chdir=/ --gres=gpu:h100:1 "${@:2}" | tr -d '\r'; }
  "in_$1" "$2"
)
in_job() { on gpu01 srun -N1 -n1 -w gpu02 --chdir=/ "$@"; }
stage_jobs() {
  local n engine
  for n in gpu01 gpu02; do
    check "srun on $n has the option" on $n "srun --help | grep -q -- --container-image"
    check "$n: a job in a container has the node's devices" \
      prints "gpus=2 libraries=2 rdma=1 scratch=yes" job -N1 -n1 -w $n --gres=gpu:h100:2
    check "$n: and no more than the job was given" \
      prints "gpus=1 libraries=2 rdma=1 scratch=yes" job -N1 -n1 -w $n --gres=gpu:h100:1
  done
  for engine in podman apptainer; do
    check "a container that a job starts itself with $engine has the job's GPU and no other" \
      prints "gpus=1 libraries=2 rdma=1 scratch=yes" in_a_job $engine gpu02
  done
  check "it is in the job's cgroup" \
    grep -q '/job_[0-9]' <<<"$(in_job podman run --rm --network none --cgroupns host e2e:1 /bin/busybox cat /proc/self/cgroup)"
  check "a job has the runtime folder of the session on gpu01, on its own node" \
    prints /run/user/1001 in_job sh -c "'test -O \$XDG_RUNTIME_DIR && echo \$XDG_RUNTIME_DIR'"
  check "without a container a job is as it was" prints gpu02 in_job cat /etc/hostname
  # Both nodes have a bridge with the same addresses, and a container on it: a library that took it would wait for ever.
  for n in gpu01 gpu02; do publish $n; done
  # TCP: soft-RoCE, which Open MPI might take, is not what this is about. /tmp: Slurm's PMIx names folders of the job's there.
  on gpu01 sudo runuser -u mpi -- env HOME=/home/mpi OMPI_MCA_pml=ob1 OMPI_MCA_btl=^openib,uct,ofi,usnic srun --mpi=pmix -N2 -n2 -w gpu01,gpu02 --time=10 --chdir=/ --container-image=/scratch/mpi.sqsh \
    --container-mounts=/usr:/usr,/etc:/etc,/tmp:/tmp,/scratch:/scratch /usr/lib/muster/muster-mpi-check --seconds 1 --max-bytes 65536 >"$work/mpi.json" || { cat "$work/mpi.json"; die "MPI in containers"; }
  check "an all-reduce in containers of two nodes, over PMIx, every element verified" \
    sh -c "jq -e '.outcome == \"measured\" and .metrics.ranks.value == 2' '$work/mpi.json' >/dev/null"
  check "a published port still passes ufw" wait_until 60 prints gpu02 page gpu01 10.20.0.12
  check "from where it lets it, and not from elsewhere" prints 124 page gpu02 10.20.0.11
}

# ---- acceptance: each engine, in the report of the stage vendors, and two that see too few
engines_pass() {   # engines_pass NODE REPORT
  jq -e --arg n "$1" '[.nodes[] | select(.name == $n) | .checks[] | select(.name == "containers/gpus_missing" and .verdict == "pass") | .subject]
                      | sort == ["apptainer", "docker", "enroot", "podman"]' "$2" >/dev/null
}
stage_acceptance() {
  local n engine got=0 report=$work/few/report.json
  for n in gpu01 gpu02; do check "$n: four engines give containers all GPUs" engines_pass $n "$work/vendors/report.json"; done
  on gpu01 sudo sed -i "'/name: \"all\"/,/^containerEdits/{/nvidia1\$/d}'" /run/cdi/nvidia.yaml
  $muster accept --profile lab --limit gpu01 --yes --report "$work/few" >"$work/few.log" 2>&1 || got=$?
  findings "$report" | sed 's/^/  /'
  check "a file that lacks a GPU is found (exit $got: no node of it is left)" test "$got $(node_state gpu01)" = "1 quarantined"
  for engine in docker podman; do
    check "$engine and the GPU are named" jq -e --arg e $engine \
      '[.nodes[].checks[] | select(.name == "containers/gpus_missing" and .subject == $e)
        | select(.verdict == "fail") | .reason + (.blame | join(" "))] | length == 1 and all(contains("/dev/nvidia1"))' "$report"
  done
  check "why names both" sh -c "$muster why gpu01 | tr '\n' ' ' | grep -q 'nvidia1.*docker\|docker.*nvidia1'"
  on gpu01 sudo systemctl restart nvidia-cdi-refresh.service   # gpu01 is accepted again at the end of the next stage
}

# ---- what a kernel, a full /run and another Slurm do: each is named
stage_refused() {
  on gpu01 sudo sysctl -q -w kernel.unprivileged_userns_clone=0
  on gpu02 sudo sysctl -q -w user.max_user_namespaces=0
  check "the user has no namespaces" fails_on gpu01 "unshare --user true 2>/dev/null"
  both_refuse "user namespaces for root only" 'kernel.unprivileged_userns_clone' "no user namespaces" 'user.max_user_namespaces'
  on gpu01 sudo sysctl -q -w kernel.unprivileged_userns_clone=1
  on gpu02 sudo sysctl -q -w user.max_user_namespaces=15000
  check "a job runs on gpu02" in_job --immediate=120 true
  # As an image for another Slurm has it: the plug-in with that number in it, and its stamp.
  onto gpu02 /tmp/other.sh 755 <<'SH'
set -e
cd /usr/lib/slurm
[ -e /root/spank_pyxis.so ] || cp -p spank_pyxis.so spank_pyxis.stamp /root/
rm -rf /tmp/other
cp -r /usr/src/muster/pyxis /tmp/other
printf '#include <slurm/slurm_version.h>\n#undef SLURM_VERSION_NUMBER\n#define SLURM_VERSION_NUMBER 0x170b0a\n' >/tmp/other/other.h
make -C /tmp/other clean
make -C /tmp/other CPPFLAGS="-include other.h"
install -m 644 /tmp/other/spank_pyxis.so .
sed -i 's/^\(slurm[^ ]*\) [^ ]*/\1 23.11.10/' spank_pyxis.stamp
grep -q '^slurm[^ ]* 23.11.10 ' spank_pyxis.stamp
SH
  on gpu02 sudo sh /tmp/other.sh >"$work/other.log" 2>&1 || { cat "$work/other.log"; die "a plug-in for another Slurm"; }
  check "Slurm itself does not take that plug-in" fails_on gpu01 "timeout 150 srun -N1 -n1 -w gpu02 --chdir=/ --immediate=60 true 2>/dev/null"
  check "for its version" on gpu02 sudo grep -qi incompatible /var/log/slurm/slurmd.log
  # Slurm may have left the job, or drained the node for it.
  on gpu01 "scancel --user=ops; sudo scontrol update nodename=gpu02 state=resume 2>/dev/null || true"
  # 8 MiB stay free, so that the node itself still works.
  on gpu01 "sudo fallocate -l \$((\$(df --output=avail -k /run | tail -n 1) - 8192))K /run/full && df -k /run | tail -n 1"
  both_refuse "a /run without room" '/run' "a pyxis for another Slurm" '23.11.10'
  on gpu01 sudo rm /run/full
  check "and jobs without a container run there" in_job --immediate=120 true
  on gpu02 sudo cp -p /root/spank_pyxis.so /root/spank_pyxis.stamp /usr/lib/slurm/
  both_again "$work/vendors.yaml"
  check "both have started a container through Slurm" \
    jq -e '[.nodes[].steps[] | select(.name == "scheduler/container through srun")] | length == 2 and all(.status == "already" or .status == "applied")' "$work/report-again/report.json"
}

# ---- in place, and everything is there again
boot_id() { on "$1" cat /proc/sys/kernel/random/boot_id; }
stage_in_place() {
  local boot
  boot=$(boot_id gpu01)
  on gpu02 sudo touch /etc/drifted
  $muster plan --kind reimage --limit gpu02 | tee "$work/plan.log"
  check "the plan says that it goes in place" grep -q 'in place' "$work/plan.log"
  $muster reimage gpu02 --yes --report "$work/in-place" >"$work/up.log" 2>&1 || { tail -n 60 "$work/up.log"; die "re-image"; }
  check "gpu02 is accepted" test "$(node_state gpu02)" = accepted
  check "it is another system" fails_on gpu02 "test -e /etc/drifted"
  check "gpu01 was not restarted" test "$(boot_id gpu01)" = "$boot"
  check "Docker's images on the local disks are as they were" on gpu02 sudo docker image inspect e2e:1 >/dev/null
  ready gpu02
  check "and so is the range of the user" test "$(on gpu01 grep ^ops: /etc/subuid)" = "$(on gpu02 grep ^ops: /etc/subuid)"
  check "a job in a container runs there" \
    prints "gpus=2 libraries=2 rdma=1 scratch=yes" job -N1 -n1 -w gpu02 --gres=gpu:h100:2
  expect_exit 0 $muster up "$work/vendors.yaml" --yes >"$work/last.log"
  check "and up says that nothing changed" grep -q "already accepted, nothing changed" "$work/last.log"
}

# ---- Debian 12: Apptainer from its project's package, and the plug-in compiled against another Slurm. The image only: the plan is not approved.
twelve() {
  cat <<YAML
cluster: containers
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc:          { cidr: 10.20.1.0/24 }
users:
$(grep '^  ops:' "$work/cluster.yaml")
images:
  twelve: { recipe: debian-12, kernel: cloud, bake: [ base, ssh, containers ] }
nodes:
  - name: gpu01
    role: plain
    mac: "52:54:00:20:00:01"
    power: { driver: redfish, address: 10.20.1.11, secret: bmc }
    disks: { os: { match: { serial: "LABOS*", size: 16 GiB, count: 1 }, policy: format-if-blank } }
roles:
  plain: { playbooks: [ base, ssh, containers ] }
vars:
YAML
  served | grep -E '^  (apptainer|enroot|pyxis)_'
}
stage_debian_12() {
  twelve >"$work/twelve.yaml"
  # Yes to the preview, so that the image is built; no to the plan.
  python3 -c 'import os, pty, subprocess, sys
mine, theirs = pty.openpty()
os.write(mine, b"y\nn\n")
sys.exit(subprocess.call(sys.argv[1:], stdin=theirs))' "$muster" up "$work/twelve.yaml" >"$work/twelve.log" 2>&1 || true
  local record=$MUSTER_LAB_DIR/state/images/twelve/current/build.json p
  [[ -s $record ]] || { tail -n 40 "$work/twelve.log"; die "an image of Debian 12"; }
  jq -r '.packages | to_entries[] | "\(.key) \(.value)"' "$record" >"$work/twelve.packages"
  for p in 'apptainer 1\.4\.5' 'enroot 4\.1\.2-1' 'docker\.io 20\.10\.' 'slurmd 22\.05\.' 'libslurm-dev 22\.05\.'; do
    check "its packages: ${p//\\/}" grep -q "^$p" "$work/twelve.packages"
  done
}

[[ -n $kept_work ]] || begin
$muster lab exec -- python3 -m http.server -d "$www" -b 10.20.0.1 8099 >"$work/http.log" 2>&1 &
for stage in $stages; do
  echo "--- $stage (about ${minutes[$stage]} min; after $SECONDS s)"
  "stage_${stage//-/_}"
done
