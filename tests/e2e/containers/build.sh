#!/usr/bin/env bash
# Makes what stands in for the vendors' software of the playbook containers: build.sh FOLDER. In FOLDER then lie toolkit/ (an archive of the
# Container Toolkit's packages, with a newer version that must not be taken), toolkit.asc (its key), two packages of enroot, a source archive
# of pyxis, a package of Apptainer for Debian 12, and vars.yaml with the variables of the spec, where ARCHIVE stands for FOLDER's URL.
# SIMULATED: nothing here is a vendor's program. What each does is in the head of its script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
toolkit=1.18.1-1 newer=1.19.0-1 enroot=4.1.2-1 pyxis=0.24.0 apptainer=1.4.5
mkdir -p "$1/toolkit"
out=$(cd "$1" && pwd)
tree=$out/package.tree
pool=$out/toolkit stands_for="SIMULATED, stand-in of a test"
source "$here/../../../lab/stub-gpu/packages.sh"

# The four packages of one version, in the vendor's dependencies, and the units of the toolkit: its description of the devices is written
# when the driver's module changes, and when they start.
programs_of() {   # programs_of VERSION FILE PATH
  put 755 "$2" "$3"
  sed -i "s/STANDIN_VERSION/$1/" "$tree$3"
}
for version in $toolkit $newer; do
  package libnvidia-container1 $version
  put 755 toolkit/nvidia-container-cli.sh /usr/bin/nvidia-container-cli
  package libnvidia-container-tools $version "libnvidia-container1 (= $version)"
  programs_of ${version%-*} toolkit/nvidia-ctk.sh /usr/bin/nvidia-ctk
  unit nvidia-cdi-refresh '[Unit]\nDescription=Stand-in: refresh of the NVIDIA CDI specification file\nConditionPathExists=/usr/bin/nvidia-smi\nConditionPathExists=/usr/bin/nvidia-ctk\n\n[Service]\nType=oneshot\nEnvironment=NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml\nExecCondition=/usr/bin/grep -qE /nvidia.ko /lib/modules/%v/modules.dep\nExecStart=/usr/bin/nvidia-ctk cdi generate\n\n[Install]\nWantedBy=multi-user.target\n'
  unit nvidia-cdi-refresh.path '[Unit]\nDescription=Stand-in: when the modules of the kernel change\n\n[Path]\nPathChanged=/lib/modules/%v/modules.dep\n\n[Install]\nWantedBy=multi-user.target\n'
  package nvidia-container-toolkit-base $version
  package nvidia-container-toolkit $version "nvidia-container-toolkit-base (= $version), libnvidia-container-tools (= $version)"
done
archive "$out/toolkit.asc"

pool=$out
programs_of ${enroot%-*} enroot/enroot.sh /usr/bin/enroot
put 755 enroot/enroot-nsenter.sh /usr/bin/enroot-nsenter
put 755 enroot/enroot-mount.sh /usr/bin/enroot-mount
for program in enroot-mksquashovlfs enroot-aufs2ovlfs; do put 755 enroot/enroot-mount.sh /usr/bin/$program; done   # only their capabilities count here
for hook in 98-nvidia.sh 99-mellanox.sh; do put 755 enroot/$hook /etc/enroot/hooks.d/$hook; done
put 755 enroot/50-slurm-pmi.sh /usr/share/enroot/hooks.d/50-slurm-pmi.sh
mkdir -p "$tree/etc/enroot/mounts.d" "$tree/etc/enroot/environ.d" "$tree/DEBIAN"
printf '#ENROOT_RUNTIME_PATH ${XDG_RUNTIME_DIR}/enroot\n#ENROOT_MOUNT_HOME no\n' >"$tree/etc/enroot/enroot.conf"
printf '/etc/enroot/%s\n' enroot.conf hooks.d/98-nvidia.sh hooks.d/99-mellanox.sh >"$tree/DEBIAN/conffiles"
package enroot $enroot 'squashfs-tools, jq'
mkdir -p "$tree/usr/share/doc/enroot+caps" "$tree/DEBIAN"
printf '#!/bin/sh\nset -e\nsetcap cap_sys_admin+pe /usr/bin/enroot-mksquashovlfs\nsetcap cap_sys_admin,cap_mknod+pe /usr/bin/enroot-aufs2ovlfs\n' >"$tree/DEBIAN/postinst"
chmod 755 "$tree/DEBIAN/postinst"
package enroot+caps $enroot "enroot (= $enroot), libcap2-bin"

mkdir "$tree"
cp -r "$here/pyxis" "$tree/pyxis-$pyxis"
tar -C "$tree" -czf "$out/pyxis-$pyxis.tar.gz" "pyxis-$pyxis"
rm -rf "$tree"

programs_of $apptainer apptainer.sh /usr/bin/apptainer
package apptainer $apptainer squashfs-tools
rm -rf "$tree.gnupg"

digest() { sha256sum "$out/$1" | cut -d ' ' -f 1; }
file_of() {   # file_of VARIABLE FILE
  printf '  %s_url: ARCHIVE/%s\n  %s_sha256: "%s"\n' "$1" "$2" "$1" "$(digest "$2")"
}
{
  printf '  toolkit_repository: ARCHIVE/toolkit\n  toolkit_version: %s\n' $toolkit
  file_of toolkit_key toolkit.asc
  file_of enroot "enroot_${enroot}_amd64.deb"
  file_of enroot_caps "enroot+caps_${enroot}_amd64.deb"
  file_of pyxis "pyxis-$pyxis.tar.gz"
  file_of apptainer "apptainer_${apptainer}_amd64.deb"
} >"$out/vars.yaml"
