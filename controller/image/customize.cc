// What muster adds to an image: first-boot units and the script that configures a fresh tree.
#include "controller/image/customize.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

// Mounts /state without waiting for udev: under emulation, and with many disks, a partition's device unit
// takes seconds to appear, and the agent and sshd wait for it. Shell built-ins only, but for mount.
constexpr const char* kMountState = R"sh(#!/bin/sh
# Mounts the one partition named muster-state of the disk that holds / (another disk may carry the same name).
set -eu
root=
while read -r _ _ dev _ at _; do
  if [ "$at" = / ]; then root=$dev; fi
done < /proc/self/mountinfo
part=$(readlink -f "/sys/dev/block/$root")
state=
for u in "${part%/*}"/*/uevent; do
  [ -e "$u" ] || continue
  name= label=
  while IFS='=' read -r key value; do
    case $key in DEVNAME) name=$value;; PARTNAME) label=$value;; esac
  done < "$u"
  [ "$label" = muster-state ] || continue
  if [ -n "$state" ]; then echo "muster: both /dev/$state and /dev/$name are named muster-state" >&2; exit 1; fi
  state=$name
done
if [ -n "$state" ]; then exec mount -t ext4 -o noatime,nodev "/dev/$state" /state; fi
echo "muster: no partition muster-state beside the root partition" >&2
exit 1
)sh";

constexpr const char* kMountStateUnit = R"([Unit]
Description=Mount /state, which survives re-imaging
DefaultDependencies=no
After=systemd-remount-fs.service
Before=local-fs.target umount.target
Conflicts=umount.target
ConditionKernelCommandLine=muster.slot

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/muster/mount-state

[Install]
WantedBy=local-fs.target
)";

constexpr const char* kHostKeys = R"(#!/bin/sh
# The host key lives in /state, so that a re-imaged node is still the same host to its users.
set -eu
dir=/etc/ssh
if grep -q ' /state ' /proc/self/mountinfo; then dir=/state/ssh; mkdir -p -m 0700 "$dir"; fi
key=$dir/ssh_host_ed25519_key
[ -s "$key" ] || { rm -f "$key" "$key.pub"; ssh-keygen -q -t ed25519 -N '' -C '' -f "$key"; }
[ "$dir" = /etc/ssh ] || { ln -sf "$key" /etc/ssh/; ln -sf "$key.pub" /etc/ssh/; }
)";

constexpr const char* kHostKeysUnit = R"([Unit]
Description=Host key of sshd
After=local-fs.target
Before=ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/muster/ssh-host-key

[Install]
WantedBy=ssh.service
)";

// Makes the machine's own keys for packages that do so only during installation: cleaning() removed those
// keys from the image. The first argument, for tests, replaces /.
constexpr const char* kOwnKeys = R"(#!/bin/sh
# Keys that each machine makes for itself, since an image has none.
set -eu
root=${1:-}
if command -v make-ssl-cert > /dev/null && { [ ! -s "$root/etc/ssl/private/ssl-cert-snakeoil.key" ] ||
     [ ! -s "$root/etc/ssl/certs/ssl-cert-snakeoil.pem" ]; }; then
  make-ssl-cert generate-default-snakeoil --force-overwrite
fi
)";

constexpr const char* kOwnKeysUnit = R"([Unit]
Description=Keys of this machine that packages make when they are installed
DefaultDependencies=no
After=local-fs.target systemd-tmpfiles-setup.service
Before=sysinit.target shutdown.target
Conflicts=shutdown.target
ConditionFileIsExecutable=/usr/sbin/make-ssl-cert

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/muster/own-keys

[Install]
WantedBy=sysinit.target
)";

constexpr const char* kSshd =
    R"(# Written into the image by muster. No login by password; only declared keys are ever installed.
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
)";

constexpr const char* kFstab =
    R"(# / comes from the kernel command line (A/B slots), /state from muster-state.service. The line of /boot/efi
# is written with the disk, by the partition's UUID.
)";

// systemd/muster-agent.service, baked in so that every slot has it; a test keeps their settings equal. The
// comments there are left out: another reason needs no new image. Nor does a new agent, since the program
// itself comes with the RAM system.
constexpr const char* kAgentUnit = R"([Unit]
Description=muster agent
After=network-online.target local-fs.target
Wants=network-online.target
ConditionPathExists=/state/muster/agent.json

[Service]
Type=exec
ExecStart=/usr/sbin/muster-agent run --config /state/muster/agent.json
Restart=always
RestartSec=2
# A node that runs out of memory must still be able to say so.
OOMScoreAdjust=-900
# Steps it runs (mounts, daemons) must outlive an agent restart.
KillMode=process

[Install]
WantedBy=multi-user.target
)";

// In a trial boot systemd runs this generator before any unit, and so before any unit that may fail. It
// creates a timer that boots the default system again, without agent, network or controller, unless the step
// module `slot` (agent/steps/system/slot.cc) has stopped the timer and created the file
// /run/muster-committed. ConditionPathExists keeps the stopped timer from being started again by another
// unit, until systemd reloads its units, which then no longer include the trial's. The first three arguments
// come from systemd; the fourth and fifth are for tests: the kernel command line, and that file.
constexpr const char* kTrial = R"sh(#!/bin/sh
# Booted with muster.trial=SECONDS: that long, and the system that stands boots again; in emergency mode at once.
set -euf
seconds=
read -r line < "${4:-/proc/cmdline}" || :
for word in $line; do case $word in muster.trial=*) seconds=${word#*=};; esac; done
[ -n "$seconds" ] || exit 0
case $seconds in *[!0-9]*|????????*) seconds=600;; esac
[ ! -e "${5:-/run/muster-committed}" ] || exit 0
# No restart may become a kexec or a soft reboot (systemd 255 and later): the loader would not run.
firmware='Environment=SYSTEMCTL_SKIP_AUTO_KEXEC=1 SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1'
unit() { printf '[Unit]\nDescription=%s\nDefaultDependencies=no\nConditionPathExists=!/run/muster-committed\n' "$1"; }
{ unit 'End of the trial of this system'
  printf 'IgnoreOnIsolate=yes\n[Timer]\nOnBootSec=%s\nAccuracySec=1s\n' "$seconds"; } > "$1/muster-trial.timer"
{ unit 'Back to the system that stands'
  printf 'FailureAction=reboot-force\n[Service]\nType=oneshot\n%s\nExecStart=/bin/systemctl --force reboot\n' "$firmware"
} > "$1/muster-trial.service"
mkdir -p "$1/sysinit.target.wants"
ln -sf ../muster-trial.timer "$1/sysinit.target.wants/muster-trial.timer"
for service in emergency rescue; do
  mkdir -p "$1/$service.service.d"
  printf '[Unit]\nFailureAction=reboot-force\n[Service]\n%s\nExecStartPre=\nExecStart=\nExecStart=/bin/systemctl --force reboot\n' \
    "$firmware" > "$1/$service.service.d/muster-trial.conf"
done
)sh";

std::string quoted(const std::string& s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_line(const std::vector<std::string>& argv) {
  std::string out = "chroot \"$1\"";
  for (const auto& a : argv) out += " " + quoted(a);
  return out + "\n";
}

// Removes the resolv.conf that mmdebstrap copies from the build host. The node gets its own
// (agent/image/seed.cc) or one from a daemon; one that the recipe provides is kept.
std::string resolver(const ImageRecipe& recipe) {
  for (const auto& file : recipe.files)
    if (file.path == "/etc/resolv.conf") return "";
  return "rm -f \"$1\"/etc/resolv.conf\n"
         "if chroot \"$1\" systemctl --quiet is-enabled systemd-resolved.service 2>/dev/null; then\n"
         "  ln -s ../run/systemd/resolve/stub-resolv.conf \"$1\"/etc/resolv.conf\nfi\n";
}

// Files that must be unique to a machine: made on the node, never part of an image, which is served over
// plain HTTP. The comment names the package that creates the file, and what creates it on the node.
constexpr const char* kOwnOfMachine[] = {
    "etc/ssh/ssh_host_*",       // openssh-server; muster-ssh-host-key.service
    "etc/hostname",             // mmdebstrap, the build host's; seeding
    "var/lib/dbus/machine-id",  // dbus, a copy of /etc/machine-id, which is emptied
    "etc/nvme/hostnqn",
    "etc/nvme/hostid",  // nvme-cli; seeding (agent/image/seed.cc)
    "etc/hostid",       // zfsutils-linux; seeding
    "etc/ssl/private/ssl-cert-snakeoil.key",
    "etc/ssl/certs/ssl-cert-snakeoil.pem",  // ssl-cert; muster-own-keys
    "etc/munge/munge.key",                  // munge; the playbook scheduler brings the cluster's
    "var/lib/dkms/mok.*",                   // dkms, to sign modules; no node needs it: no firmware trusts it
    "var/lib/shim-signed/mok/MOK.*",        // shim-signed, likewise
    "var/lib/systemd/random-seed",
    "var/lib/systemd/credential.secret",      // systemd; systemd, when it starts
    "var/lib/rabbitmq/.erlang.cookie",        // rabbitmq-server; Erlang, when it starts
    "var/lib/NetworkManager/secret_key",      // network-manager; itself, when it starts
    "etc/.resolv.conf.systemd-resolved.bak",  // systemd-resolved, the build host's resolv.conf; none
};

// Files that are emptied or replaced, and that each machine fills in; all other files above are removed.
constexpr const char* kFilledIn[] = {"etc/machine-id", "etc/iscsi/initiatorname.iscsi"};

std::string removing_identity() {
  std::string s = "rm -f";
  for (const char* path : kOwnOfMachine) s += std::string(" \"$1\"/") + path;
  return s +
         "\n: > \"$1\"/etc/machine-id\n"
         // Links to the certificate that are named by its hash.
         "for link in \"$1\"/etc/ssl/certs/*.[0-9]; do\n"
         "  if [ \"$(readlink \"$link\")\" = ssl-cert-snakeoil.pem ]; then rm -f \"$link\"; fi\ndone\n"
         // The daemon does not start without the file; with this setting it creates a name (open-iscsi,
         // startup-checks.sh) if seeding did not.
         "if [ -e \"$1\"/etc/iscsi/initiatorname.iscsi ]; then\n"
         "  echo GenerateName=yes > \"$1\"/etc/iscsi/initiatorname.iscsi\nfi\n";
}

std::string cleaning(const ImageRecipe& recipe) {
  return resolver(recipe) + "chroot \"$1\" passwd -q -l root\n" + removing_identity() +
         "rm -f \"$1\"/boot/System.map-* \"$1\"/boot/initrd* \"$1\"/initrd.img* \"$1\"/vmlinuz*\n"
         "rm -f \"$1\"/var/lib/dpkg/*-old \"$1\"/var/cache/debconf/*-old \"$1\"/var/log/*.log\n"
         // Otherwise systemd treats the first boot as an update and runs a dozen additional services.
         "touch \"$1\"/etc/.updated \"$1\"/var/.updated\n";
}

// Only units that exist and are enabled: a recipe also lists units of packages that only some playbooks have.
std::string disabling(const ImageRecipe& recipe) {
  if (recipe.disable.empty()) return "";
  std::string s = "for unit in";
  for (const auto& unit : recipe.disable) s += " " + quoted(unit);
  return s +
         "; do\n  if chroot \"$1\" systemctl --quiet is-enabled \"$unit\" 2>/dev/null; then\n"
         "    chroot \"$1\" systemctl --quiet disable \"$unit\"\n  fi\ndone\n";
}

constexpr const char* kScriptHead =
    "#!/bin/sh\n# Runs in the builder with the new tree as $1.\nset -eu\nexport LC_ALL=C.UTF-8\n";

}  // namespace

bool is_own_of_machine(const std::string& path) {
  const auto is = [&](const char* pattern) {
    return ::fnmatch((std::string("/") + pattern).c_str(), path.c_str(), FNM_PATHNAME) == 0;
  };
  return std::any_of(std::begin(kOwnOfMachine), std::end(kOwnOfMachine), is) ||
         std::any_of(std::begin(kFilledIn), std::end(kFilledIn), is);
}

std::vector<RecipeFile> builtin_files() {
  return {{"/usr/lib/muster/mount-state", kMountState, 0755},
          {"/etc/systemd/system/muster-state.service", kMountStateUnit},
          {"/usr/lib/muster/ssh-host-key", kHostKeys, 0755},
          {"/etc/systemd/system/muster-ssh-host-key.service", kHostKeysUnit},
          {"/usr/lib/muster/own-keys", kOwnKeys, 0755},
          {"/etc/systemd/system/muster-own-keys.service", kOwnKeysUnit},
          {"/etc/ssh/sshd_config.d/10-muster.conf", kSshd},
          {"/etc/systemd/system/muster-agent.service", kAgentUnit},
          {kTrialGenerator, kTrial, 0755},
          {"/etc/fstab", kFstab}};
}

std::string customize_script(const ImageRecipe& recipe, const std::string& overlay) {
  std::string s = kScriptHead;
  s += "mkdir -p \"$1/state\" \"$1/boot/efi\" \"$1/etc/systemd/system\"\n";
  for (size_t i = 0; i < recipe.files.size(); ++i)
    s += fmt::format("install -D -m {:04o} {} \"$1\"{}\n", recipe.files[i].mode,
                     quoted(fmt::format("{}/{}", overlay, i)), quoted(recipe.files[i].path));
  for (const auto& unit : recipe.mask)
    s += "ln -sf /dev/null \"$1\"" + quoted("/etc/systemd/system/" + unit) + "\n";
  std::vector<std::string> enable = {"systemctl",
                                     "--quiet",
                                     "enable",
                                     "muster-state.service",
                                     "muster-ssh-host-key.service",
                                     "muster-own-keys.service",
                                     "muster-agent.service"};
  enable.insert(enable.end(), recipe.enable.begin(), recipe.enable.end());
  s += command_line(enable);
  s += disabling(recipe);
  for (const auto& argv : recipe.run) s += command_line(argv);
  return s + cleaning(recipe);
}

std::string finish_script(const ImageRecipe& recipe, const std::vector<std::vector<std::string>>& units) {
  std::string s = kScriptHead + disabling(recipe);
  for (const auto& argv : units) s += command_line(argv);
  return s + cleaning(recipe);
}

}  // namespace muster
