# shellcheck shell=bash
# A machine of the lab that was not made by muster: Debian as mmdebstrap makes it, with what its owner installed and an address of its own.
# Written to its drive before it is switched on for the first time. A function owner_changes, if there is one, changes its root before that.
source scripts/chroot-lib.sh
site_packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,udev,dbus,iproute2,openssh-server,sudo,ufw,iptables,chrony,xfsprogs,mdadm,fio,ca-certificates
# Debian 12 as mmdebstrap makes it; kept for later calls of run.sh, which sets MUSTER_E2E_CACHE (passes/images.py).
debian_root() {  # debian_root FOLDER VARIANT PACKAGES
  local sources kept=
  sources=$(chroot_sources bookworm)
  [[ -n $sources ]] || { echo "the host's apt names no Debian repository of its own release" >&2; return 1; }
  [[ -z ${MUSTER_E2E_CACHE:-} ]] ||
    kept=$MUSTER_E2E_CACHE/made/debian-$(printf '%s\n' "$2" "$3" "$sources" "$(declare -f debian_root)" | sha256sum | cut -c 1-16)
  if [[ -n $kept && -d $kept ]]; then
    touch "$kept"   # it was used
    mkdir -p "$1" && tar -C "$1" -f "$kept/root.tar.zst" --zstd -xp --numeric-owner --xattrs --xattrs-include='*'
    return
  fi
  mmdebstrap --quiet --mode=root --variant="$2" --include="$3" bookworm "$1" - <<<"$sources" || return
  [[ -n $kept ]] || return 0
  mkdir -p "$kept.$$" && tar -C "$1" -f "$kept.$$/root.tar.zst" --zstd -c --numeric-owner --xattrs --xattrs-include='*' . || return
  mv -T "$kept.$$" "$kept" || [[ -d $kept ]]   # another test was faster
}
stock_root() {  # stock_root FOLDER ADDRESS MAC ROOT-PARTUUID
  debian_root "$1" important "$site_packages" || return
  printf 'stock\n' >"$1/etc/hostname"
  printf '127.0.0.1 localhost stock\n' >"$1/etc/hosts"
  printf 'PARTUUID=%s / ext4 defaults 0 1\n' "$4" >"$1/etc/fstab"
  printf '[Match]\nMACAddress=%s\n[Network]\nAddress=%s/24\nGateway=10.20.0.1\n' "$3" "$2" >"$1/etc/systemd/network/10-site.network"
  printf 'Acquire::http::Proxy "http://10.20.0.1:3142";\n' >"$1/etc/apt/apt.conf.d/00site"
  chroot "$1" sh -ec 'systemctl enable -q systemd-networkd ssh
    useradd -m -s /bin/bash ops; install -d -m 700 -o ops -g ops /home/ops/.ssh
    echo "ops ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/ops; chmod 440 /etc/sudoers.d/ops'
  install -m 600 "$MUSTER_LAB_DIR/ssh/id_ed25519.pub" "$1/home/ops/.ssh/authorized_keys"
  chroot "$1" chown ops:ops /home/ops/.ssh/authorized_keys
}
stock_machine() {  # stock_machine NODE ADDRESS MAC
  local root=$work/stock part disk first last esp kernel_options
  kernel_options=$(lab_kernel_options) || return
  part=$(cat /proc/sys/kernel/random/uuid)
  stock_root "$root" "$2" "$3" "$part" || return
  if declare -F owner_changes >/dev/null; then owner_changes "$root" "$2" "$3"; fi
  disk=$(find "$MUSTER_LAB_DIR/nodes/$1" -name 'os*.img')
  sgdisk -Z -n 1:2048:+256M -t 1:ef00 -n 2:0:0 -u "2:$part" "$disk" >/dev/null
  first=$(sgdisk -i 2 "$disk" | sed -n 's/^First sector: \([0-9]*\).*/\1/p')
  last=$(sgdisk -i 2 "$disk" | sed -n 's/^Last sector: \([0-9]*\).*/\1/p')
  esp=$disk@@1M
  mformat -i "$esp" -F -T 524288 ::
  mmd -i "$esp" ::/EFI ::/EFI/BOOT ::/loader ::/loader/entries
  mcopy -i "$esp" /usr/lib/systemd/boot/efi/systemd-bootx64.efi ::/EFI/BOOT/BOOTX64.EFI
  mcopy -i "$esp" "$root"/boot/vmlinuz-* ::/vmlinuz
  mcopy -i "$esp" "$root"/boot/initrd.img-* ::/initrd
  printf 'title Debian\nlinux /vmlinuz\ninitrd /initrd\noptions root=PARTUUID=%s ro console=ttyS0 %s\n' "$part" "$kernel_options" | mcopy -i "$esp" - ::/loader/entries/debian.conf
  mkfs.ext4 -q -F -d "$root" -E "offset=$((first * 512))" "$disk" "$(((last - first + 1) / 2))k"
  rm -rf --one-file-system "$root"
  $muster lab power "$1" on
}
