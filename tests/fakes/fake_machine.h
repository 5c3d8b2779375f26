// FakeMachine: a node for step modules. A folder as the root of its files, and a Process whose programs
// change those files and a small state the way the real ones would. It has state instead of expectations: a
// test asserts on what became of it.
//
// Knows: systemctl, systemd-run, useradd, usermod, groupadd, visudo, sshd, iptables and ip6tables with their
// -restore and -save, ufw-init (fake_firewall.h), mdadm, sfdisk (the real one), mkfs.xfs, mount, dpkg,
// dpkg-deb, apt-get, apt-mark, apt-helper, modprobe, rmmod, update-initramfs, udevadm, tar, ldconfig (its
// list is the file /ldconfig), nvidia-ctk (fake_toolkit.cc), mfs tools, exportfs, sinfo, scontrol, the
// versions of Slurm's daemons and MariaDB (files in /versions), true, false, touch, Ceph's programs with the
// rm, mv and chown they are used with (fake_ceph.cc), MooseFS' master (fake_moosefs.cc), ip, networkctl and
// dcb over its ports (fake_network.cc), storage of the site with stat, dd, cat and journalctl
// (fake_arrays.cc), sync, and cp -a of files. Any other program is not found. Thread: one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/core/step.h"
#include "sys/os.h"
#include "tests/fakes/fake_firewall.h"

namespace muster::tests {

// An image of MooseFS' metadata as versions 3 and 4 write it: only what muster looks at is true to life.
std::string moosefs_image(uint64_t version);

class FakeMachine : public Process {
 public:
  FakeMachine();
  ~FakeMachine() override;
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  Files files() const { return Files(root_); }
  StepContext context();
  void put(const std::string& path, const std::string& content) const;
  std::string get(const std::string& path) const { return files().read(path).value_or(""); }

  // Where on a member an array's data begins: none of the places that are looked at before a disk counts as
  // blank.
  static constexpr uint64_t kArrayData = 40 << 20;
  // A whole disk: kernel name, serial, size; blank.
  void add_disk(const std::string& name, const std::string& serial, uint64_t size = 512u << 20,
                const std::string& model = "LAB");
  // A disk with muster's partitions, as its table has them and the kernel shows them; nothing is in them.
  void add_system(const std::string& name, const std::string& serial);
  // The parameter entry an approved plan would have for it as it is now.
  Json approved(const std::string& serial, const std::string& policy = "format-if-blank") const;
  void write_disk(const std::string& name, uint64_t offset, const std::string& bytes) const;
  std::string disk_bytes(const std::string& name, uint64_t offset, size_t size) const;
  // What md does when a member dies, when it is taken out or put in, and when all it had to copy is copied.
  void fail_member(const std::string& name);
  void remove_member(const std::string& name);
  void add_member(const std::string& name);
  void in_step();
  void mount_entry(const std::string& name, const std::string& target, const std::string& fs,
                   const std::string& options = "");

  // Path -> content, mode, or link target of everything below the root, devices by digest.
  std::map<std::string, std::string> snapshot() const;

  Result<Output> run(const Command& command) override;
  // From this call on (counted from 0) no program answers any more; -1: never. The call after which the
  // answer is lost.
  int dies_at = -1, loses_reply_at = -1;
  // Program calls so far, arguments joined by blanks.
  std::vector<std::string> calls;
  bool called(const std::string& part) const;
  // These fail with exit code 1 while they are in here: first words of a call.
  std::set<std::string> broken;
  // How long these programs take: they are killed where that is longer than their deadline.
  std::map<std::string, DurationMs> takes = {};

  struct Unit {
    bool enabled = false, active = false, masked = false;
    bool passing = false;  // its processes are being ended: neither active nor gone
    std::string remembered =
        "";  // not empty: what systemd shows for its links until all units are loaded again
  };
  std::map<std::string, Unit> units;
  std::function<void()> on_mount = {};          // called each time before mount looks its source up
  std::function<void()> before_is_active = {};  // called each time before systemd reports what is active

  // "iptables" and "ip6tables" -> what the kernel has.
  std::map<std::string, FakeFirewall> firewall;

  // A network port: what the kernel has of it. `dcb`: its driver can do that.
  struct Port {
    bool up = false, cable = true, dcb = true, infiniband = false;
    int mtu = 1500;
    std::string mac, pci, addresses;                // with prefix, blanks between them
    std::map<std::string, std::string> dcb_tables;  // "prio-pfc 3" -> "on"
    Json routes = Json::array(), rules = Json::array();
  };
  std::map<std::string, Port> ports;
  // With its files below /sys and /proc/sys; a port of an RDMA device too where that has a name.
  void add_port(const std::string& name, const std::string& pci, const std::string& mac, bool cable = true,
                const std::string& rdma = "");
  // URL -> content, for apt-helper; a package that apt would remove for the next ones.
  std::map<std::string, std::string> web;
  // What `sshd -T` says; empty: what muster's drop-in says.
  std::string sshd_in_effect;
  std::string apt_removes;
  std::string apt_brings;  // "Inst ..." lines of a simulation
  // Package -> the versions that archives have; apt's lists show them once `apt-get update` ran.
  std::map<std::string, std::vector<std::string>> archive;
  bool lists_are_stale = false;

 private:
  Result<Output> execute(const Command& command);
  Output systemctl(const std::vector<std::string>& argv);
  Output packages(const std::vector<std::string>& argv);
  Output show_package(const std::string& word) const;
  Output read_sources(const std::vector<std::string>& argv) const;
  Output list_cdi_devices() const;
  Output system(const std::vector<std::string>& argv);
  Output unpack(const Command& command) const;
  void reexec();
  void mount_moosefs(const std::string& unit, bool there);
  Output mfsmaster(const std::vector<std::string>& argv);
  Output mdadm(const std::vector<std::string>& argv);
  void show_array(const std::string& level, const std::vector<std::string>& members);
  Output site(const Command& command);
  Result<Output> sfdisk(const Command& command);
  Output accounts(const std::vector<std::string>& argv);
  Output storage(const std::vector<std::string>& argv);
  std::string volume();
  Output maintain(const std::string& word);
  std::string maintenance_of(const std::string& server) const;
  std::string device_of(const std::string& source) const;
  Output slurm(const std::vector<std::string>& argv);
  Output ceph(const Command& command);
  Output ceph_tools(const Command& command);
  Output ceph_osd(const std::vector<std::string>& words, const std::string& input);
  void ceph_starts(const std::string& unit);
  Output exportfs(const std::vector<std::string>& argv);
  Output network(const std::vector<std::string>& argv, const Command& command);
  Output tables(const std::vector<std::string>& argv, const Command& command);
  Output ufw_init(const std::string& verb);
  Output ip(const std::vector<std::string>& argv);
  Output networkctl(const std::vector<std::string>& argv);
  void configure(const std::string& name, Port& port);
  Output dcb(const std::vector<std::string>& argv);
  void append(const std::string& path, const std::string& text) const;

  std::string root_;
  int next_device_ = 1;
  uint64_t loaded_version_ = 0;  // of the metadata of MooseFS' master
  bool reload_due_ = false;
  std::string exports_;
  std::map<std::string, std::string> attributes_;
  std::map<std::string, std::string> manager_;  // systemd's own settings
};

}  // namespace muster::tests
