#include "controller/doctor/judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/name_ranges.h"
#include "base/plural.h"
#include "base/scan.h"
#include "base/split.h"

namespace muster::doctor {
namespace {

constexpr const char* kNoAddress = "0.0.0.0";  // of an offer that only names what to boot

Checked not_looked(Check check, const Error& why) { return {.check = check, .not_looked = {why.message}}; }

// Findings in the order of their first node, each with all nodes of which it is true.
class OfNodes {
 public:
  // `cause`: what is wrong, without what differs between nodes; it is shown where there are several.
  void add(const std::string& node, const std::string& what, const std::string& cause,
           const std::string& next) {
    const auto same = [&](const Group& one) { return one.cause == cause && one.next == next; };
    auto found = std::find_if(all_.begin(), all_.end(), same);
    if (found == all_.end()) {
      all_.push_back({{}, what, cause, next});
      found = std::prev(all_.end());
    }
    found->nodes.push_back(node);
  }
  void add(const std::string& node, const std::string& what, const std::string& next) {
    add(node, what, what, next);
  }
  std::vector<Finding> findings() const {
    std::vector<Finding> out;
    for (const Group& one : all_)
      out.push_back({names_in_ranges(one.nodes), one.nodes.size() == 1 ? one.what : one.cause, one.next});
    return out;
  }

 private:
  struct Group {
    std::vector<std::string> nodes;
    std::string what, cause, next;
  };
  std::vector<Group> all_;
};

// The text with another one in place of a name or address, but not of the begin of a longer one.
std::string with_instead(std::string text, const std::string& name, const std::string& instead) {
  const auto in_name = [&](size_t at) {
    return at < text.size() && (is_alphanumeric(text[at]) || text[at] == '-');
  };
  for (size_t at = 0; !name.empty() && (at = text.find(name, at)) != std::string::npos;) {
    const size_t end = at + name.size();
    const bool whole = (at == 0 || !in_name(at - 1)) && !in_name(end) &&
                       !(end < text.size() && text[end] == '.' && in_name(end + 1));
    if (whole) text.replace(at, name.size(), instead);
    at += whole ? instead.size() : name.size();
  }
  return text;
}

// A silent switch is one cause, not one for each BMC behind it.
std::string cause_of(const BmcLogin& one, const std::string& message) {
  std::string out = with_instead(message, one.node, "the node");
  for (const std::string& address : {one.address, one.address.substr(0, one.address.find(':'))}) {
    if (address.empty()) continue;
    out = with_instead(out, "BMC " + address, "the BMC");
    out = with_instead(out, address, "its address");
  }
  return out;
}

void add_login(const BmcLogin& one, OfNodes& found) {
  if (one.rejected)
    return found.add(
        one.node,
        fmt::format("the BMC rejects the user and password of secret '{}'; it was tried once", one.secret),
        "muster secret set " + one.secret);
  const Error& error = one.outcome.error();
  const bool of_secret = error.code == Code::not_found || error.code == Code::invalid;
  const bool unset = !one.usable && of_secret && !one.secret.empty();
  found.add(one.node, error.message, cause_of(one, error.message),
            unset ? "muster secret set " + one.secret
                  : "correct the cabling or `power` in the spec, then again: muster doctor SPEC");
}

// In the source tree of this version. Without --here it is built with the default.
std::string build_gpu_program(int cuda) {
  constexpr int kDefault = 12;
  const std::string here =
      cuda > 0 && cuda != kDefault ? fmt::format(" --here, on a machine with CUDA {},", cuda) : "";
  return fmt::format(
      "scripts/build-gpu-package.sh{} then: apt install ./build-packages/muster-accept-gpu_*.deb",
      here.empty() ? "," : here);
}

}  // namespace

Checked judge_bmcs(const std::vector<BmcLogin>& logins, size_t without) {
  Checked out{.check = Check::bmc_login, .looked_at = counted(logins.size(), "BMC")};
  if (without > 0) out.looked_at += fmt::format("; {} without one", counted(without, "node"));
  OfNodes found;
  std::map<std::string, std::vector<std::string>> not_reached;  // by reason
  for (const BmcLogin& one : logins) {
    if (!one.looked)
      not_reached[one.not_looked].push_back(one.node);
    else if (!one.outcome.ok())
      add_login(one, found);
  }
  out.findings = found.findings();
  for (const auto& [why, nodes] : not_reached)
    out.not_looked.push_back(fmt::format("{}: {}", names_in_ranges(nodes), why));
  return out;
}

Checked judge_dhcp(const Result<DhcpSeen>& seen, bool ours) {
  if (!seen.ok() && seen.error().code == Code::not_found)
    return {.check = Check::dhcp_rival,
            .findings = {{"", seen.error().message,
                          "correct `network.controller` in the spec (musterd's --listen where it has one), "
                          "or give the address to the port in the nodes' network: ip address show"}}};
  if (!seen.ok()) return not_looked(Check::dhcp_rival, seen.error());
  Checked out{.check = Check::dhcp_rival, .looked_at = seen->interface};
  if (!ours) {
    const bool answers = std::any_of(seen->offers.begin(), seen->offers.end(),
                                     [](const DhcpOffer& offer) { return offer.address != kNoAddress; });
    if (!answers && !seen->server_here)
      out.findings.push_back(
          {"",
           fmt::format("no DHCP server answers on {}, and musterd has --no-dhcp; one that answers only the "
                       "MAC addresses it knows would not",
                       seen->interface),
           "start the network's DHCP server; or remove --no-dhcp, then: systemctl restart musterd"});
    return out;
  }
  std::set<std::string> named;
  for (const DhcpOffer& offer : seen->offers) {
    if (seen->own.count(offer.server) || !named.insert(offer.server).second) continue;
    const std::string what =
        offer.address == kNoAddress ? "offers what to boot" : "offers the address " + offer.address;
    out.findings.push_back(
        {offer.server, fmt::format("another DHCP server on {} {}", seen->interface, what),
         fmt::format("switch off its DHCP in this network; its MAC address, by which a switch knows its "
                     "port: ping -c 1 {0}; ip neighbor show {0}",
                     offer.server)});
  }
  return out;
}

Checked judge_mirrors(const std::map<std::string, Result<std::string>>& images, size_t built) {
  Checked out{.check = Check::mirror_incomplete,
              .looked_at = fmt::format("{} to be built, {} built", counted(images.size(), "image"), built)};
  for (const auto& [image, lacks] : images) {
    if (!lacks.ok())
      out.not_looked.push_back(image + ": " + lacks.error().message);
    else if (!lacks->empty())
      out.findings.push_back(
          {image, *lacks,
           fmt::format("correct the mirror, `network.apt` of the spec or the recipe, then: "
                       "muster image build {}",
                       image)});
  }
  return out;
}

// An image's tree, file system and frames exist at the same time while it is built.
Checked judge_disk(const Result<DiskSpace>& space) {
  constexpr uint64_t kGiB = uint64_t{1} << 30, kItself = 2, kImage = 6, kGpuImage = 30;
  if (!space.ok()) return not_looked(Check::disk_space, space.error());
  const uint64_t free = space->free_bytes / kGiB;
  const uint64_t needed = kItself + static_cast<uint64_t>(space->images) * kImage +
                          static_cast<uint64_t>(space->gpu_images) * kGpuImage;
  Checked out{.check = Check::disk_space, .looked_at = fmt::format("{}: {} GiB free", space->folder, free)};
  if (free < needed)
    out.findings.push_back(
        {space->folder,
         fmt::format("{} GiB are free, and {} GiB are needed for the database and {} that are not built yet",
                     free, needed, counted(static_cast<size_t>(space->images + space->gpu_images), "image")),
         fmt::format("make room or mount a larger file system there; what is large: du -xh -d 2 {}",
                     space->folder)});
  return out;
}

Checked judge_clock(const Result<bool>& synchronized) {
  if (!synchronized.ok()) return not_looked(Check::clock, synchronized.error());
  Checked out{.check = Check::clock, .looked_at = "kept by a time server"};
  if (!*synchronized) {
    out.looked_at = "this machine's";
    out.findings.push_back({"", "no time server keeps this machine's clock, from which nodes get theirs",
                            "apt install chrony; then wait for: timedatectl show -p NTPSynchronized"});
  }
  return out;
}

std::vector<OpenPort> read_open_ports(const std::string& text) {
  std::vector<OpenPort> out;
  for (const std::string& line : split_lines(text)) {
    // udp UNCONN 0 0 0.0.0.0%eth1:67 0.0.0.0:* users:(("dnsmasq",pid=812,fd=4))
    const std::vector<std::string> words = split_words(line);
    if (words.size() < 6) continue;
    const std::string& local = words[4];
    const size_t colon = local.rfind(':');
    if (colon == std::string::npos) continue;
    OpenPort one{.protocol = words[0], .address = local.substr(0, colon)};
    one.port = std::atoi(local.c_str() + colon + 1);
    if (const size_t percent = one.address.find('%'); percent != std::string::npos) {
      one.device = trim(one.address.substr(percent + 1), "]");
      one.address.erase(percent);
    }
    one.address = trim(one.address, "[]");
    if (const size_t name = line.find("((\""); name != std::string::npos)
      one.program = line.substr(name + 3, line.find('"', name + 3) - name - 3);
    if (const size_t pid = line.find("pid="); pid != std::string::npos)
      one.pid = std::atoi(line.c_str() + pid + 4);
    out.push_back(std::move(one));
  }
  return out;
}

Checked judge_ports(const std::vector<WantedPort>& wanted, const Result<std::vector<OpenPort>>& open,
                    const std::set<int>& own, const std::string& interface) {
  if (!open.ok()) return not_looked(Check::port_in_use, open.error());
  static const std::set<std::string> kEvery = {"0.0.0.0", "*", "::", ""};
  Checked out{.check = Check::port_in_use, .looked_at = counted(wanted.size(), "port")};
  for (const WantedPort& port : wanted)
    for (const OpenPort& other : *open) {
      const bool same = other.protocol == port.protocol && other.port == port.port && !own.count(other.pid);
      const bool meets = kEvery.count(other.address) || other.address == port.address;
      // Bound to another network's port, as the one that libvirt starts for its bridge.
      const bool elsewhere = !other.device.empty() && !interface.empty() && other.device != interface;
      if (!same || !meets || elsewhere) continue;
      out.findings.push_back(
          {fmt::format("{}/{}", port.port, port.protocol),
           fmt::format("{} needs this port, and {} has it", port.purpose,
                       other.program.empty() ? "another program"
                                             : fmt::format("{} (process {})", other.program, other.pid)),
           other.pid > 0 ? fmt::format("stop the service that systemctl status {} names, then: systemctl "
                                       "restart musterd",
                                       other.pid)
                         : "ss -lntup; stop what has it, then: systemctl restart musterd"});
      break;
    }
  return out;
}

Checked judge_gpu_program(const std::vector<GpuWanted>& wanted, const Result<int>& program) {
  Checked out{.check = Check::gpu_program, .looked_at = counted(wanted.size(), "GPU node")};
  if (wanted.empty()) return out;
  OfNodes found;
  for (const GpuWanted& one : wanted) {
    const std::string next = build_gpu_program(one.cuda > 0 ? one.cuda : one.driver_cuda);
    if (!program.ok())
      found.add(one.node,
                program.error().code == Code::not_found
                    ? "there is no muster-accept-gpu here: without it no node with GPUs is accepted"
                    : program.error().message,
                next);
    else if (one.cuda > 0 && one.cuda != *program)
      found.add(one.node,
                fmt::format("muster-accept-gpu is built with CUDA {}, and the spec installs CUDA {}",
                            *program, one.cuda),
                next);
    else if (one.driver_cuda > 0 && one.driver_cuda < *program)
      found.add(
          one.node,
          fmt::format("muster-accept-gpu is built with CUDA {}, and the spec's driver supports CUDA {} at "
                      "most",
                      *program, one.driver_cuda),
          next);
  }
  out.findings = found.findings();
  return out;
}

Checked judge_packages(const Result<PackagesSeen>& seen) {
  if (!seen.ok()) return not_looked(Check::package_version, seen.error());
  Checked out{.check = Check::package_version, .looked_at = counted(seen->needed.size(), "package")};
  for (const auto& [name, purpose] : seen->needed)
    if (!seen->installed.count(name))
      out.findings.push_back({name, "it is not installed; needed for " + purpose, "apt install " + name});
  const auto version = [&](const std::string& name) {
    const auto found = seen->installed.find(name);
    return found == seen->installed.end() ? std::string() : found->second;
  };
  const std::string controller = version("muster-controller"), gpu = version("muster-accept-gpu");
  if (controller.empty() || seen->running.empty()) return out;
  out.looked_at += ", muster " + seen->running;
  if (controller != seen->running)
    out.findings.push_back({"muster-controller",
                            fmt::format("{} is installed, and musterd runs {}", controller, seen->running),
                            "systemctl restart musterd"});
  // Its version is that of muster, with its CUDA behind it.
  if (!gpu.empty() && !gpu.starts_with(controller))
    out.findings.push_back({"muster-accept-gpu",
                            fmt::format("its version {} is not that of muster, {}", gpu, controller),
                            build_gpu_program(0)});
  return out;
}

}  // namespace muster::doctor
