#!/usr/bin/env bash
# the GPU image for real (on demand: 3 GB of packages): driver, CUDA, NCCL, Slurm, Apptainer baked; built again in seconds; a node boots it
# stands on: agent/steps/{accounts,not_applicable}* agent/steps/{packages,services,system} controller/engines/local_engine* controller/image controller/power/redfish*
# stands on: images/debian-13.yaml playbooks/apptainer.yaml playbooks/base.yaml playbooks/firewall.yaml playbooks/gpu.yaml playbooks/hpc.yaml
# stands on: playbooks/mpi.yaml playbooks/scheduler.yaml playbooks/ssh.yaml playbooks/storage-local.yaml
source "$(dirname "$0")/lib.sh"
# Slurm and Open MPI are installed with their playbooks; the node runs those that a machine of its own can pass.
baked="base, ssh, firewall, storage-local, mpi, scheduler, gpu, hpc, apptainer"
runs="base, ssh, firewall, storage-local, gpu, hpc, apptainer"
small_spec 1 's/recipe: debian-12, kernel: cloud/recipe: debian-13, kernel: full/' 's/size: 8 GiB/size: 28 GiB/' \
  "s/bake: \[.*\] }/bake: [ $baked ] }/; s/playbooks: \[.*\]/playbooks: [ $runs ]/" >"$work/cluster.yaml"
unset MUSTER_IMAGE_CACHE   # the first build is measured, and a second run of this test would find it made
lab_up
# Everything this test writes is on this file system: tree, layers, file system and frames, and the node's drive.
check "30 GB are free" test "$(df --output=avail -k "$work" | tail -n 1)" -gt 30000000

build() { $muster image build cpu --recipe debian-13 --bake "${baked//, /,}"; }   # what the spec says too
start=$SECONDS
build | tee "$work/build.log"
first=$((SECONDS - start))
start=$SECONDS
build | tee "$work/again.log"
second=$((SECONDS - start))
echo "  first build $first s, second $second s"
check "the second build finds nothing to do" grep -q 'image cpu: unchanged' "$work/again.log"
check "and takes less than a tenth of the first" test $((second * 10)) -lt "$first"
layers=$MUSTER_LAB_DIR/state/images/cpu/.layers
check "a layer each for gpu, hpc's neighbours and the recipe is kept, with its log" test "$(ls "$layers" | wc -l)" -ge 3
echo "  layers: $(du -sh "$layers"/* | cut -f 1 | tr '\n' ' ') $($muster image list | tail -n 1)"

$muster up "$work/cluster.yaml" --yes --report "$work/report" | tee "$work/up.log"
check "node01 is accepted" test "$(node_state node01)" = accepted
on() { node_ssh node01 "$@" | tr -d '\r'; }
jq -r '.nodes[0].steps[] | select(.name | startswith("gpu/")) | "  \(.name): \(.status) \(.message)"' "$work/report/report.json"
check "every step of gpu that needs a GPU says: not applicable, no GPU" \
  jq -e '[.nodes[0].steps[] | select(.name | startswith("gpu/"))] | length == 4 and all(.status == "not_applicable" and .message == "no GPU")' "$work/report/report.json"
check "no other step says so, and none failed" \
  jq -e '[.nodes[0].steps[] | select(.name | (startswith("gpu/") or startswith("apptainer/GPUs in")) | not)] | length >= 15 and all(.status == "already" or .status == "applied" or .status == "baked")' "$work/report/report.json"

release=$(on uname -r)
version() { on dpkg-query -W -f "'\${Version}'" "$1"; }
check "the driver is 550 ($(version nvidia-kernel-dkms))" grep -q '^550\.163\.01-' <<<"$(version nvidia-kernel-dkms)"
check "its module is that of the running kernel ($release)" test "$(on /sbin/modinfo -F version nvidia-current)" = 550.163.01
check "and was built for it" grep -q "^$release " <<<"$(on /sbin/modinfo -F vermagic nvidia-current)"
check "CUDA is 12.4" grep -q 'release 12.4' <<<"$(on nvcc --version)"
on sh -c "'printf \"__global__ void k(int* a) { *a = 1; }\nint main() { return 0; }\n\" > /tmp/k.cu && nvcc -arch=sm_90 -o /tmp/k /tmp/k.cu && /tmp/k'"
check "its compiler makes a program for an H100" on test -x /tmp/k
check "NCCL is 2.22 ($(version libnccl2))" grep -q '^2\.22\.3-' <<<"$(version libnccl2)"
check "the set is held" test "$(on apt-mark showhold | grep -cE '^(nvidia-kernel-dkms|libcuda1|libnvidia-ml1|nvidia-cuda-toolkit|libnccl2|apptainer)$')" = 6
for program in /usr/bin/mpirun /usr/sbin/slurmd /usr/bin/srun; do check "$program is there" on test -x "$program"; done
check "nouveau and nvidia are not loaded" fails_on node01 "grep -qE '^(nouveau|nvidia)' /proc/modules"
check "no unit failed" fails_on node01 "systemctl --failed --no-legend --plain | grep -q ."
check "no key that dkms made is shared through the image" on sh -c "'! ls /var/lib/dkms/mok.* 2>/dev/null'"

# Apptainer, as the account that has no right but its own: not even sudo.
on sudo useradd --create-home --shell /bin/sh plain
plain() { on sudo runuser -u plain -- sh -c "'export HOME=/home/plain; cd && $1'"; }
check "the user has no rights" fails_on node01 "sudo runuser -u plain -- sudo -n true 2>/dev/null"
check "a container runs" test "$(plain 'apptainer -s exec /usr/lib/muster/test-container cat /etc/container-name')" = muster-test
check "as the user, not as root" test "$(plain 'apptainer -s exec /usr/lib/muster/test-container id -u')" = "$(on id -u plain)"
check "whose root is the container's" test "$(plain 'apptainer -s exec /usr/lib/muster/test-container sh -c "[ -e /usr/bin/dpkg ] || echo none"')" = none
plain 'apptainer -s build c.sif /usr/lib/muster/test-container'
check "one file, made and run by the user, does too" test "$(plain 'apptainer -s exec c.sif cat /etc/container-name')" = muster-test
check "apptainer is the only package from unstable" test "$(on dpkg-query -W -f "'\${Package} \${Version}\n'" apptainer | wc -l)" = 1
