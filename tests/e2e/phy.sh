#!/usr/bin/env bash
# two rented machines behind a provider's API: blank to accepted through the provider's own Debian; installed once, whatever is lost or killed
# stands on: agent/boot/{kexec,ram_init}* agent/image/boot_network* cli/{power_test,power_verb}*
# stands on: controller/boot/service/{boot_service,kexec_order}* controller/engines/local_engine*
# stands on: controller/ports/{power,reinstall,run_ports}* controller/power/service/power_service* controller/power/{logins,waiter,wrap}*
# stands on: controller/power/{describe,provider,sakura} controller/spec/address* controller/spec/reader/reader_nodes* controller/trust/vault*
# stands on: controller/{executor,run,ssh} lab/{phy_api,rack_provider}* playbooks/base.yaml playbooks/firewall.yaml playbooks/ssh.yaml
# stands on: playbooks/storage-local.yaml tests/e2e/hosts
source "$(dirname "$0")/lib.sh"
source tests/e2e/hosts/stock.sh
for tool in mmdebstrap sfdisk mkfs.vfat mcopy mke2fs debugfs; do command -v "$tool" >/dev/null || die "$tool is missing: scripts/deps.sh lab"; done

# What the provider installs: a stock Debian that starts by UEFI, with an SSH server that makes its host keys at its first boot, and
# none of muster's. make_stock FOLDER: FOLDER/debian12-x86_64.raw and .json, as lab/rack_provider.cc reads them.
make_stock() {
  local out=$1 name=debian12-x86_64 root=$work/stock sectors=$((1500 * 2048)) start=$((130 * 2048)) part=0b1e5e1d-0000-4000-8000-000000000012 kernel_options
  kernel_options=$(lab_kernel_options)
  mkdir -p "$out" "$root" "$work/esp/EFI/BOOT" "$work/esp/loader/entries"
  debian_root "$root" minbase systemd,systemd-sysv,udev,dbus,kmod,iproute2,procps,openssh-server,linux-image-cloud-amd64
  rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/resolv.conf" "$root/etc/hostname"
  : >"$root/etc/machine-id"
  echo stock >"$root/etc/hostname"
  mkdir -p "$root/etc/systemd/system/ssh.service.d"
  printf '[Service]\nExecStartPre=\nExecStartPre=/usr/bin/ssh-keygen -A\nExecStartPre=/usr/sbin/sshd -t\n' >"$root/etc/systemd/system/ssh.service.d/keys.conf"
  printf '[Match]\nName=en* eth*\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/dhcp.network"
  ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
  ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
  cp /usr/lib/systemd/boot/efi/systemd-bootx64.efi "$work/esp/EFI/BOOT/BOOTX64.EFI"
  cp "$root"/boot/vmlinuz-* "$work/esp/vmlinuz"
  cp "$root"/boot/initrd.img-* "$work/esp/initrd" 2>/dev/null || true
  printf 'default stock\ntimeout 0\n' >"$work/esp/loader/loader.conf"
  {
    printf 'title stock\nlinux /vmlinuz\n'
    [[ ! -e $work/esp/initrd ]] || echo 'initrd /initrd'
    echo "options root=PARTUUID=$part rw console=ttyS0 $kernel_options"
  } >"$work/esp/loader/entries/stock.conf"
  rm -rf "${root:?}"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
  truncate -s $((sectors * 512)) "$out/$name.raw"
  printf 'label: gpt\nstart=2048, size=%d, type=U\nstart=%d, size=%d, type=L, uuid=%s\n' \
    $((start - 2048)) "$start" $((sectors - start - 2048)) "$part" | sfdisk -q "$out/$name.raw"
  truncate -s $(((start - 2048) * 512)) "$work/esp.img"
  mkfs.vfat -F 32 -n STOCK "$work/esp.img" >/dev/null
  mcopy -s -i "$work/esp.img" "$work/esp/EFI" "$work/esp/loader" "$work/esp/vmlinuz" ::/
  [[ ! -e $work/esp/initrd ]] || mcopy -i "$work/esp.img" "$work/esp/initrd" ::/
  truncate -s $(((sectors - start - 2048) * 512)) "$work/root.img"
  mke2fs -q -t ext4 -d "$root" "$work/root.img"
  dd if="$work/esp.img" of="$out/$name.raw" bs=1M seek=1 conv=notrunc,sparse status=none
  dd if="$work/root.img" of="$out/$name.raw" bs=1M seek=$((start / 2048)) conv=notrunc,sparse status=none
  printf '{"name": "Debian 12", "user": "root", "root_offset": %d}\n' $((start * 512)) >"$out/$name.json"
  rm -rf "$root" "$work/esp" "$work/esp.img" "$work/root.img"
}

# The disk with the provider's system is not blank, and is to be written over: `format`.
small_spec 2 '/LABOS/s/format-if-blank/format/' \
  's/power: .*/power: { driver: sakura-phy, address: "11310000000{n}", secret: sakura, api: "10.20.1.250:443", install: { image: debian12-x86_64, os: debian-12 } }/' \
  >"$work/cluster.yaml"
grep -q 'driver: sakura-phy' "$work/cluster.yaml" || die "the quickstart's driver was not replaced"
grep 'LABOS\*' "$work/cluster.yaml" | grep -q 'policy: format }' || die "the policy of the OS disk was not replaced"
lab_up
echo "  making the provider's Debian"
make_stock "$MUSTER_LAB_DIR/provider"
touch "$MUSTER_LAB_DIR/bmc.log"  # it is made by the first order
for bmc in 10.20.1.11 10.20.1.12; do check "no machine has a BMC: $bmc" nobody_listens "https://$bmc/redfish/v1"; done
asked() { grep -c "provider POST .*/servers/$1/os_install/ 204\|provider POST .*/servers/$1/os_install/ 500" "$MUSTER_LAB_DIR/bmc.log" || true; }
installed() { grep -c " $1 installed debian12-x86_64" "$MUSTER_LAB_DIR/bmc.log" || true; }
id() { echo "11310000000${1#node0}"; }

echo "  what a plan says"
got=0
$muster up "$work/cluster.yaml" --report "$work/report" </dev/null >"$work/plan" 2>&1 || got=$?
check "without approval nothing is done" test "$got" -ne 0 -a "$(asked "$(id node01)")" = 0
for node in node01 node02; do check "the plan says that everything is lost on $node" grep -q "^  $node: all data on all of its disks" "$work/plan"; done

echo "  the answer to one installation is lost, and the controller is killed while it runs"
$muster lab break node01 api-lost
start=$SECONDS
up_begins
one_was_asked() { test "$(($(asked "$(id node01)") + $(asked "$(id node02)")))" -ge 1; }
during_up "the provider got a request" one_was_asked
$muster lab restart-controller --kill
both_run() { test "$(installed node01)" -ge 1 -a "$(installed node02)" -ge 1; }
during_up "the provider has installed both" both_run
$muster lab restart-controller --kill
up_ends 0
echo "  bring-up took $((SECONDS - start)) s"
check "both are accepted" test "$(node_state node01) $(node_state node02)" = "accepted accepted"
for n in node01 node02; do
  check "$n was requested once, and installed once" test "$(asked "$(id $n)") $(installed $n)" = "1 1"
  check "$n is muster's system, not the provider's" node_is "$n" '.mode == "installed"'
  check "$n: its firmware started the provider's system and muster's; the RAM system came by kexec" test "$(firmware_boots $n)" = 2
done
$muster secret list >"$work/secrets"
check "the secrets are listed" test -s "$work/secrets"
check "no record of an installation, and no key, is left" test "$(grep -c install-node "$work/secrets" || true)" = 0
secret=$(cat "$MUSTER_LAB_DIR/bmc-secret")
check "the account's secret is in no log" nowhere_in "${secret##*:}" "$MUSTER_LAB_DIR"/*.log "$work/report" "$work/up.log"
check "nor is a private key" nowhere_in 'PRIVATE KEY' "$MUSTER_LAB_DIR"/*.log "$work/report" "$work/up.log"
check "their servers are pinned" test "$(grep -c '"server:1131000000' "$MUSTER_LAB_DIR/state/bmc-pins.json")" = 2

echo "  power by hand"
# Orders that the API carried out, whatever it answered; with 409 it refused one, because the server was locked.
orders() { grep -c "provider POST .*/servers/$(id "$1")/power_control/ \(204\|500\)" "$MUSTER_LAB_DIR/bmc.log" || true; }
check "state" sh -c "$muster power state node01 | grep -qx 'node01: on'"
before=$(orders node01)
$muster lab break node01 api-lost
expect_exit 0 $muster power off node01 --yes
check "an order whose answer was lost was given once" test "$(orders node01)" = $((before + 1))
check "a test of the driver passes" sh -c "$muster power test node01 --json >'$work/test.json' && jq -e '.passed and .driver.driver == \"sakura-phy\"' '$work/test.json'"
expect_exit 0 $muster power on node01
answers() { node_is node01 '.mode == "installed"' && node_ssh node01 true 2>/dev/null; }
check "node01 is up again" wait_until 300 answers

echo "  people of the provider at the machines"
$muster lab break node02 api-locked
before=$(orders node02)
got=0; $muster power off node02 --yes >"$work/locked" 2>&1 || got=$?
check "an order is refused (exit 4)" test "$got" = 4
check "and says what to do" grep -q "ask the provider" "$work/locked"
check "none was given" test "$(orders node02)" = "$before"
check "it was sent at most once" test "$(grep -c "provider POST .*/servers/$(id node02)/power_control/ 409" "$MUSTER_LAB_DIR/bmc.log")" -le 1
$muster lab break node02 api-locked --heal

echo "  a re-image goes through the system that runs, and the provider is not asked"
before=$(firmware_boots node01)
$muster reimage node01 --through-ram --yes --report "$work/report" >"$work/up.log" 2>&1 || { cat "$work/up.log" >&2; die "reimage"; }
check "node01 is accepted" test "$(node_state node01)" = accepted
check "by kexec" test "$(journal "select count(*) from event where node = 'node01' and kind = 'started' and json like '%/node01/netboot#1-kexec%'")" = 1
check "its firmware started the new system only" test "$(($(firmware_boots node01) - before))" = 1
check "still asked for once" test "$(asked "$(id node01)")" = 1
