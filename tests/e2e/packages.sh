#!/usr/bin/env bash
# the .deb packages under a real systemd: in a guest, whose own controller brings up another machine; upgraded, removed
# stands on: CMakeLists.txt agent/* agent/image/boot_network* agent/storage/storage_state* agent/{boot,core,facts,joining,link,measuring,work} cli
# stands on: cmake/package.cmake cmake/version.cmake controller/* controller/image/service/image_service* controller/image/{image,transfer}*
# stands on: controller/options controller/ports/{run_ports,store}* controller/power/redfish* controller/rollout/service
# stands on: controller/{api,boot,bringup,current,executor,link,nodes,run,store,trust} docs/first-cluster.md playbooks/base.yaml playbooks/ssh.yaml
# stands on: schema scripts/package-lib.sh scripts/package.sh systemd
source "$(dirname "$0")/lib.sh"
# The same programs as of the commit before, one second older than these, for the upgrade; then the build folder is as it was. Only their
# version is compiled. Which commit these are of they say themselves: HEAD may have another one that changed no program.
programs() { cmake --build "${MUSTER_BUILD:-build}" --target muster musterd muster-agent muster-accept muster-accept-nvml muster-mpi-check; }
this=$("${MUSTER_BUILD:-build}"/muster --version | sed -nE 's/.*\.g([0-9a-f]{7,}).*/\1/p')
[[ -n $this ]] || die "the programs name no commit: build in a git work tree"
this=$(git log -1 --format='%ct %H' "$this")
before="$((${this%% *} - 1)) $(git rev-parse --verify -q "${this##* }~1" || echo 0000000000000000000000000000000000000000)"
{ MUSTER_COMMIT=$before programs && cpack --config "${MUSTER_BUILD:-build}/CPackConfig.cmake" -B "$work/before" && MUSTER_COMMIT=$this programs; } >"$work/cpack.log" 2>&1 ||
  { MUSTER_COMMIT=$this programs || true; cat "$work/cpack.log"; die "the packages of the commit before"; }
debs=$work/debs
# As docs/first-cluster.md says, but of the build that is there, and into a folder of the test's own.
line=$(page_commands "3. The controller" | grep -x 'scripts/package.sh') || die "docs/first-cluster.md does not say how the packages are made"
line="$line --of '${MUSTER_BUILD:-build}' '$debs'"
echo "  \$ $line"
eval "$line" >"$work/package.log" 2>&1 || { cat "$work/package.log"; die "package.sh"; }
deb() { echo "$debs"/"$1"_*.deb; }
version_of() { dpkg-deb -f "$1" Version; }
now=$(version_of "$(deb muster)") before=$(version_of "$work"/before/muster_*.deb)
echo "  $before, then $now"
check "the package names its commit" grep -qE '^0\.1\.0\+[0-9]{8}\.[0-9]{6}\.g[0-9a-f]{7}(\.dirty)?$' <<<"$now"
check "the programs in it, too" test "$(dpkg-deb --fsys-tarfile "$(deb muster)" | tar -xO ./usr/bin/muster >"$work/muster"; chmod +x "$work/muster"; "$work/muster" --version)" = "muster $now"
check "a later commit is a later version" dpkg --compare-versions "$before" lt "$now"
needs() { dpkg-deb -f "$(deb muster-controller)" "$1"; }
check "the controller needs dnsmasq and a network boot loader" sh -c "echo '$(needs Depends)' | grep dnsmasq-base | grep -q ipxe"
check "it does not need what only building an image takes" sh -c "! echo '$(needs Depends)' | grep -qE 'mmdebstrap|openmpi'"
check "that is recommended" sh -c "echo '$(needs Recommends)' | grep -q mmdebstrap"
held=$work/held
dpkg-deb -c "$(deb muster)" >"$held"
for file in bash-completion/completions/muster zsh/vendor-completions/_muster fish/vendor_completions.d/muster.fish man/man1/muster.1.gz \
  doc/muster/docs/operations.md; do
  check "the command's package has $file" grep -q "^-.* \./usr/share/$file\$" "$held"
done
check "its manual is that of its verbs" sh -c "dpkg-deb --fsys-tarfile '$(deb muster)' | tar -xO ./usr/share/man/man1/muster.1.gz | zcat | grep -q 'muster spec check'"
check "the controller's has musterd(8)" sh -c "dpkg-deb -c '$(deb muster-controller)' | grep -q 'man8/musterd.8.gz'"

# node01 becomes the head node of another cluster, with more memory and room; node02 stays bare.
cat >"$work/cluster.yaml" <<'YAML'
cluster: packages
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  controller: 10.20.0.1
  bmc:          { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 LAB_SSH_KEY lab" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ base, ssh ] }
nodes:
  - name: node[01-02]
    role: cpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ]
    image: cpu
    disks:
      os: { match: { serial: "LABOS*", count: 1 }, policy: format-if-blank }
roles:
  cpu: { playbooks: [ base, ssh ] }
acceptance: { profile: lab }
lab:
  memory_mib: 2048
  smp: 1
  drives:
    - { name: os, size: 12 GiB, serial_prefix: LABOS }
  nodes:
    node01: { memory_mib: 3072, smp: 2 }
YAML
$muster lab up "$work/cluster.yaml"
kernel_options=$(lab_kernel_options)
# One node of the spec: its name and MAC, and who is its controller.
spec_of() {
  sed -e "s/node\[01-02\]/node[$1-$1]/" -e "s/mac: .*/mac: [ \"52:54:00:20:00:$1\" ]/" -e "s/controller: [0-9.]*/controller: $2/" \
    -e '/^lab:/,$d' "$MUSTER_LAB_DIR/cluster.yaml"
}
spec_of 01 10.20.0.1 >"$work/first.yaml"
spec_of 02 10.20.0.11 >"$work/second.yaml"
$muster up "$work/first.yaml" --yes --report "$work/report" >"$work/first.log" || { cat "$work/first.log"; die "node01"; }
$muster image export cpu "$work/cpu.image"
digest=$($muster image list --json | jq -r '.images[] | select(.name == "cpu") | .digest')
expect_exit 4 $muster image export cpu "$work/cpu.image"

# The lab's controller goes: two DHCP servers on one network would answer the same machine.
serves_dhcp() { [[ $($muster lab exec -- ss -Hlun 'sport = :67') == *:67* ]]; }
check "the lab's controller serves DHCP" serves_dhcp
pid=$(jq -r .pid "$MUSTER_LAB_DIR/musterd.pid")
kill "$pid"
gone() { ! kill -0 "$pid" 2>/dev/null && ! serves_dhcp; }
check "the lab's controller ends, and nothing serves DHCP any more" wait_until 20 gone

# Runs a script as root in the guest; encoded, because two shells read it on the way.
guest() { node_ssh node01 "sudo bash -euc \"\$(echo $(base64 -w0 <<<"$1") | base64 -d)\"" </dev/null; }
into_guest() { node_ssh node01 sudo sh -c "'cat > $2'" <"$1"; }
guest 'mkdir -p /var/tmp/debs && ip route add 10.20.1.0/24 via 10.20.0.1'
# All packages of a folder here into the one there, in place of what was in it.
packages_into_guest() {
  local file
  guest 'rm -f /var/tmp/debs/*.deb'
  for file in "$1"/muster_*.deb "$1"/muster-controller_*.deb "$1"/muster-agent_*.deb; do into_guest "$file" "/var/tmp/debs/$(basename "$file")"; done
}
packages_into_guest "$work/before"
# As docs/first-cluster.md says, command by command; here a file makes apt ask nothing and take no recommended packages.
walked() {  # walked PATTERN [WHAT-COMES-BEHIND-IT]
  local line
  line=$(page_commands "3. The controller" | grep -E "$1") || die "docs/first-cluster.md does not say: $1"
  echo "  \$ $line"
  guest "cd /var/tmp/debs; export DEBIAN_FRONTEND=noninteractive; $line ${2:-}"
}
into_guest "$work/cpu.image" /root/cpu.image
into_guest "$work/second.yaml" /root/cluster.yaml
start=$SECONDS
guest 'echo "Acquire::http::Proxy \"http://10.20.0.1:3142\";" >/etc/apt/apt.conf.d/proxy
  echo "APT::Get::Assume-Yes 1; APT::Install-Recommends 0;" >/etc/apt/apt.conf.d/unasked
  apt-get -qq update' >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; die "apt-get update"; }
walked '^apt install ./muster_' >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; die "apt"; }
walked '^systemctl status musterd' | tee "$work/unit.log"
check "the page's status shows it running" grep -q 'active (running)' "$work/unit.log"
echo "  installing took $((SECONDS - start)) s"
check "only what is needed was installed" guest '! dpkg -s mmdebstrap >/dev/null 2>&1'
check "the unit is enabled, started, and was not restarted" \
  guest 'test "$(systemctl is-enabled musterd) $(systemctl is-active musterd) $(systemctl show -P NRestarts musterd)" = "enabled active 0"'
# As it is installed it is a controller of real servers, for which limits of virtual machines are none.
into_guest "$MUSTER_LAB_DIR/cluster.yaml" /root/lab.yaml
for file in lab.yaml cluster.yaml; do expect_exit 2 guest "muster up /root/$file --yes"; done
check "and it stored neither" guest '! muster spec show >/dev/null 2>&1'
# What the lab gives its own controller: its machines need it on a busy host, and what is measured on them the lab's limits.
into_guest <(printf '%s\n' "MUSTER_KERNEL_OPTIONS=$kernel_options" MUSTERD_OPTIONS=--lab) /root/lab.env
guest 'sed -i "/^MUSTERD_OPTIONS=/d" /etc/muster/musterd.env
  cat /root/lab.env >>/etc/muster/musterd.env'
guest 'systemctl stop musterd; systemctl start musterd; muster version' | tee "$work/version.log"
check "systemctl start returns when the controller answers" grep -q '^musterd ' "$work/version.log"
says_version() { guest 'muster version --json' | jq -e --arg v "$1" '.muster == $v and .controller.version == $v' >/dev/null; }
check "it says the version of its package" says_version "$before"
check "only root reads the state" guest 'test "$(stat -c %a%U /var/lib/muster)" = 700root'

start=$SECONDS
guest 'muster image import /root/cpu.image; rm /root/cpu.image'
echo "  the import took $((SECONDS - start)) s"
check "the image is the one that was exported" guest "muster image list --json | grep -q $digest"
into_guest <(tr -d '\n' <"$MUSTER_LAB_DIR/bmc-secret") /run/bmc
walked '^muster secret set bmc' '</run/bmc; rm /run/bmc'
start=$SECONDS
guest 'cd /root && muster up cluster.yaml --yes --report report' | tee "$work/second.log"
echo "  the bring-up from the guest took $((SECONDS - start)) s"
check "one of one accepted" grep -q "^1 of 1 nodes accepted" "$work/second.log"
check "node02 runs that image" sh -c "$muster lab ssh node02 -- cat /etc/muster/image.json | grep -q $digest"
check "a backup may go to root's home" guest 'muster backup /root/muster.db && test "$(stat -c %a /root/muster.db)" = 600'

# A later commit, with the page's own command: the database stays, the daemon is another process, node02 does not notice.
accepted() { guest 'muster status --json' | jq -e '.nodes[] | select(.name == "node02") | .state == "accepted"' >/dev/null; }
packages_into_guest "$debs"
guest 'systemctl show -P MainPID musterd' >"$work/pids"
walked '^apt install ./muster_' >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; die "apt, of the later commit"; }
guest 'systemctl show -P MainPID musterd' >>"$work/pids"
check "command and daemon are of the later commit" says_version "$now"
check "an upgrade restarts the daemon" test "$(sort -u "$work/pids" | grep -vc '^0$')" = 2
check "and keeps the database" accepted
packages_into_guest "$work/before"
if walked '^apt install ./muster_' >"$work/apt.log" 2>&1; then die "apt took an earlier version"; fi
check "apt does not go back to an earlier commit unasked" says_version "$now"
packages_into_guest "$debs"
guest 'muster up /root/cluster.yaml --yes --report /root/report2' | tee "$work/again.log"
check "DHCP and TFTP are not root's" guest 'test "$(ps -o user= -C dnsmasq | sort -u)" = dnsmasq'
check "systemd rates the unit of musterd at 6 or better" guest 'systemd-analyze security --no-pager --threshold=60 musterd >/dev/null'
check "a file in a socket's place stays" guest 'echo kept >/root/file; ! timeout 20 musterd --state /root/other --socket /root/file --no-dhcp --listen 127.0.0.1 2>/dev/null && grep -qx kept /root/file'
check "there is nothing to do" grep -q "nothing changed" "$work/again.log"
check "a unit that was disabled stays so" \
  guest 'systemctl -q disable musterd; dpkg -i /var/tmp/debs/muster-controller_*.deb >/dev/null; test "$(systemctl is-enabled musterd)" = disabled'

# The agent's package on a node that never joined: this one is made to look so (its image has a unit of its own).
guest 'systemctl -q disable --now muster-agent; rm /etc/systemd/system/muster-agent.service; mv /state/muster/agent.json /state/muster/kept
  dpkg -i /var/tmp/debs/muster-agent_*.deb >/dev/null'
agent_is() { guest "test \"\$(systemctl is-enabled muster-agent) \$(systemctl show -P ActiveState -P ConditionResult muster-agent | xargs)\" = '$1'"; }
check "the agent's unit waits on a node that never joined" agent_is "enabled inactive no"
guest 'mv /state/muster/kept /state/muster/agent.json; systemctl start muster-agent'
check "and runs on one that did" agent_is "enabled active yes"

guest 'dpkg -r muster-controller muster-agent >/dev/null'
check "after a removal there are no units" guest '! systemctl cat musterd.service muster-agent.service >/dev/null 2>&1'
check "and no links to them" guest '! find /etc/systemd -name "musterd*" -o -name "muster-agent*" | grep .'
check "and no processes" guest '! pgrep -x "musterd|dnsmasq|muster-agent"'
check "but the database" guest 'test -s /var/lib/muster/muster.db'
guest 'dpkg -P muster-controller 2>&1' | tee "$work/purge.log"
check "a purge says that the database is kept" grep -q "kept /var/lib/muster" "$work/purge.log"
guest 'test -s /var/lib/muster/muster.db; dpkg -i /var/tmp/debs/muster-controller_*.deb >/dev/null'
check "installed again, it goes on where it was" accepted
