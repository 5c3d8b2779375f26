// RAM init: the part of muster-agent that runs as the first process of the RAM system, before and around the
// agent itself.
//
// Process 1 mounts the kernel's file systems, loads drivers, brings the boot interface up with its address,
// and then runs the agent in a child. It never exits and does not depend on the child: a child that ends is
// restarted after a pause. Dead-man timer: after ten minutes without contact with the controller, the machine
// is rebooted; its one-time boot override is used up, so it boots from its disk. A machine that handed over
// from its own system (muster.give_up=SECONDS, docs/decisions/0030) returns to that system only until it has
// joined: the join revokes that system's certificate, and its disk may be written from then on, so it then
// stays and waits for its controller. Thread: process 1 has one; ram_contact() may be called from any thread
// of the child. Never: writes to a disk, opens a shell, prints secrets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/image/boot_network.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/os.h"

namespace muster {

bool is_ram_init();

struct RamEnvironment {
  std::string cmdline;    // /proc/cmdline
  std::string interface;  // kernel name of the interface that is up; empty if none was found in time
  std::vector<std::string> problems = {};  // errors so far, for the agent's first log lines
};

struct RamOptions {
  DurationMs dead_man = 10 * kMinute;  // longest time without contact, at first counted from the start
  bool until_joined = false;           // the first contact turns the timer off
  DurationMs restart_pause = 2 * kSecond;
  DurationMs wait_for_link = 30 * kSecond;  // for an interface with muster.mac to appear
};

// Does not return. Runs `agent` in a child process with the environment, and logs its result.
[[noreturn]] void ram_main(std::function<int(const RamEnvironment&)> agent, RamOptions options = {});
// Called by the agent at each answer of the controller. Does nothing outside the RAM system.
void ram_contact();

// Adds the kernel command line's give-up time; ignores an invalid one.
RamOptions ram_options(const std::string& cmdline, RamOptions options);
// True if the machine must boot from its disk now. Before the first contact, `contact` equals `started`.
bool gives_up(const RamOptions& options, int64_t started, int64_t contact, int64_t now);

// Parts of ram_main(), for tests and for other early programs.
Status mount_kernel_file_systems();
// The kernel name of the interface with this MAC ("52:54:00:00:01:01"); not_found.
Result<std::string> interface_with_mac(const Files& files, const std::string& mac);
// Sets "10.20.0.11/24" on `interface`, and brings it up. IPv4, by ioctl: no program is run.
Status configure_ipv4(const std::string& interface, const std::string& cidr);

// The RAM system's network from its kernel command line (agent/image/boot_network.h): ports found by MAC,
// bonds, tags, addresses, routes. By sysfs and ioctl: no program is run.
//
// Creates the bond "mbond" from those ports of the network that are present; the ports are down and get no
// address. Returns its name. not_found if none is present. `load`: loads a kernel module by name.
Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load);
// Sets the address on `device`, which is a port or a bond, or on the VLAN that is created on it; returns the
// name of the device that has it.
Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load);

}  // namespace muster
