// What is wrong with what was looked at, check by check. Pure functions; nothing here knows how it was looked
// at.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/doctor/dhcp_offer.h"
#include "controller/doctor/doctor.h"

namespace muster::doctor {

// One login at a BMC, or why there was none.
struct BmcLogin {
  std::string node, secret;                                 // of the spec; secret: its name, "" without one
  std::string address = {};                                 // of the BMC; "" if it is not known
  bool looked = false;                                      // false: its turn did not come
  std::string not_looked = "no time was left for a login";  // why
  Status outcome = Ok{};
  bool usable = true;     // false: the node's power cannot be used as declared, see `outcome`
  bool rejected = false;  // user and password were
};
// Nodes with the same cause become one finding, whatever their names and addresses. `without`: nodes without
// a BMC.
Checked judge_bmcs(const std::vector<BmcLogin>& logins, size_t without);

struct DhcpSeen {
  std::string interface;
  std::vector<DhcpOffer> offers = {};
  std::set<std::string> own = {};  // every address of this machine
  bool server_here = false;        // another program of this machine serves DHCP, which gets no request of it
};
// An Error: the network could not be looked at; not_found: this machine is not in it. `ours`: musterd is to
// be the only server; false: nodes need another one.
Checked judge_dhcp(const Result<DhcpSeen>& seen, bool ours = true);

// By image: "" or what its mirror lacks; an Error: not looked at (controller/image/mirror_look.h). `built`:
// images that need no mirror now.
Checked judge_mirrors(const std::map<std::string, Result<std::string>>& images, size_t built);

struct DiskSpace {
  std::string folder;
  uint64_t free_bytes = 0;
  int images = 0, gpu_images = 0;  // to be built; those that bake a GPU driver apart
};
Checked judge_disk(const Result<DiskSpace>& space);

// True: kept by a time server.
Checked judge_clock(const Result<bool>& synchronized);

struct WantedPort {
  std::string protocol;  // "tcp", "udp"
  int port = 0;
  std::string address;  // on which it is opened
  std::string purpose;  // "DHCP"
};
// A socket that waits for others.
struct OpenPort {
  std::string protocol, address, device = {};  // "0.0.0.0"; "virbr0", "" for every one
  int port = 0;
  std::string program = {};  // "" if it is not known
  int pid = 0;
};
// Reads what `ss --no-header --listening --numeric --tcp --udp --processes` prints.
std::vector<OpenPort> read_open_ports(const std::string& text);
// `own`: processes of this controller; `interface`: that with the wanted addresses, "" if it is not known.
Checked judge_ports(const std::vector<WantedPort>& wanted, const Result<std::vector<OpenPort>>& open,
                    const std::set<int>& own, const std::string& interface);

// What GPU nodes of the spec need; 0: the spec does not say.
struct GpuWanted {
  std::string node;
  int cuda = 0;         // major version that their playbooks install
  int driver_cuda = 0;  // the newest that their driver supports
};
// `program`: the major version of CUDA that muster-accept-gpu was built with; not_found: there is none.
Checked judge_gpu_program(const std::vector<GpuWanted>& wanted, const Result<int>& program);

struct PackagesSeen {
  std::map<std::string, std::string> installed = {};  // name -> version
  std::map<std::string, std::string> needed = {};     // name -> what it is needed for
  std::string running;  // version of musterd if it runs from its package; "" otherwise
};
Checked judge_packages(const Result<PackagesSeen>& seen);

}  // namespace muster::doctor
