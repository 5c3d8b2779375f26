#include "lab/fault.h"

#include <fmt/format.h>

#include "base/record.h"
#include "controller/spec/units.h"
#include "lab/lab_network.h"
#include "lab/lab_spec.h"

namespace muster::lab {

MUSTER_RECORD(Break, opt(node), opt(fault), opt(network_switch, "switch"), opt(seconds), opt(drive),
              opt(rate), opt(file_system), opt(network), opt(gpu), opt(count), opt(heal))

namespace {

constexpr int64_t kLongestPost = 24 * 60 * 60;  // seconds

Status take_seconds(Break& request, const std::string& what, const std::string& word) {
  if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 6)
    return fail(Code::invalid, what + " takes a number of seconds, not '" + word + "'");
  request.seconds = std::stoll(word);
  return Ok{};
}

// "12m", "12 min", "90s", "90".
Status take_duration(Break& request, const std::string& word) {
  auto span = parse_duration(word);
  if (!span || *span < kSecond || *span > kLongestPost * kSecond)
    return fail(Code::invalid,
                request.fault + " takes a duration such as 12m or 90s, at most 24 h, not '" + word + "'");
  request.seconds = *span / kSecond;
  return Ok{};
}

Status take_gpu(Break& request, const std::string& word) {
  if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 2)
    return fail(Code::invalid,
                request.fault + " takes the number of a simulated GPU (from 0), not '" + word + "'");
  request.gpu = std::stoll(word);
  return Ok{};
}

Status take_count(Break& request, const std::string& word) {
  const bool number =
      !word.empty() && word.size() <= 4 && word.find_first_not_of("0123456789") == std::string::npos;
  request.count = number ? std::stoll(word) : 0;
  if (request.count >= 1 && request.count <= kMostGiants) return Ok{};
  return fail(Code::invalid,
              fmt::format("{} takes a number from 1 to {}, not '{}'", request.fault, kMostGiants, word));
}

Status take_argument(Break& request, const std::string& word) {
  const auto& fault = request.fault;
  if (fault == "bmc-503" || fault == "net-cut" || fault == "api-throttled")
    return take_seconds(request, fault, word);
  if (fault == "post") return take_duration(request, word);
  if (fault == "gpu-xid") return take_gpu(request, word);
  if (fault == "port-errors") return take_count(request, word);
  if (fault == "shape")
    request.rate = word;
  else if (fault == "foreign-fs" || fault == "slow-drive" || fault == "extra-disk" || fault == "pcie-error")
    request.drive = word;
  else
    return fail(Code::invalid, fault + " takes no argument ('" + word + "')");
  return Ok{};
}

}  // namespace

const std::map<std::string, std::string>& fault_list() {
  static const std::map<std::string, std::string> faults = {
      {"bmc-503", "the BMC answers 503 for --seconds N (default 30)"},
      {"other-guid", "an IPMI BMC reports a different GUID, as if it had been replaced, until --heal"},
      {"never-powers-on", "the BMC accepts power-on but nothing happens, until --heal"},
      {"api-lost", "the provider's API carries out the next order, but its confirmation is lost"},
      {"api-locked",
       "the provider's staff is working on the machines, which reject all orders, until --heal"},
      {"api-throttled",
       "the next request to the provider's API is rejected (429, Retry-After: --seconds N, default 60)"},
      {"api-lies", "the provider reports a finished installation, but the disk is unchanged, until --heal"},
      {"kill", "cuts the power: the machine is off at once"},
      {"net-cut",
       "the machine's link drops all traffic for --seconds N (default 60); --network selects the link"},
      {"shape",
       "limits traffic to the machine to --rate R (tc syntax, such as 10mbit), until --heal; --network "
       "selects the link"},
      {"slow-drive", "limits --drive D to --rate N bytes per second, until --heal"},
      {"foreign-fs", "writes a file system (--fs ext4 or xfs) on --drive D; only while the machine is off"},
      {"extra-disk", "adds a drive like --drive D (same size and serial pattern) at the next power-on"},
      {"pcie-error",
       "the port above --drive D reports one corrected PCIe error, which the kernel counts; the system must "
       "be up"},
      {"port-errors",
       "sends this many frames (default 1) that are too long for the adapter, which counts them; "
       "--network selects one of the ports in the spec's lab.nodes.NODE.counting"},
      {"pull-cable", "one of the machine's links goes down, until --heal; --network selects the link"},
      {"post",
       "runs firmware tests of this length (12m, 90s; multiplied by the spec's lab.time_scale) at each "
       "power-on "
       "and reset, until --heal"},
      {"gpu-xid",
       "SIMULATED GPU number N (from 0) falls off the bus: Xid 79 in the kernel's log every other second, "
       "and "
       "the simulated driver loses it, until --heal or a restart; the system must be up"},
      {"crash-once",
       "causes one uncorrectable machine check in the next system that boots (RAM system or installed "
       "system)"},
      {"panic-first-boot", "the kernel of the next system that boots from disk panics (once)"},
  };
  return faults;
}

std::string shown_name(const Break& request) {
  if (request.gpu >= 0) return fmt::format("{} {}", request.fault, request.gpu);
  const bool fast = !request.network.empty() && request.network != kProvisioning;
  return fast ? request.fault + " " + request.network : request.fault;
}

Json to_json(const Break& b) { return record_json(b); }

Result<Break> break_from_json(const Json& json) { return read_record<Break>(json, "break"); }

Status take_words(Break& request, const std::vector<std::string>& words) {
  if (!request.network_switch.empty()) {
    if (words.size() > 1)
      return fail(Code::invalid, "--switch takes only SECONDS, without a machine or a fault");
    return words.empty() ? Status(Ok{}) : take_seconds(request, "--switch", words[0]);
  }
  if (words.size() < 2) return fail(Code::invalid, "machine and fault are missing (NODE FAULT [ARGUMENT])");
  if (words.size() > 3) return fail(Code::invalid, "unexpected argument '" + words[3] + "'");
  request.node = words[0];
  request.fault = words[1];
  if (words.size() == 3) TRY_(take_argument(request, words[2]));
  if (request.fault == "post" && !request.heal && request.seconds <= 0)
    return fail(Code::invalid, "post takes a duration such as 12m or 90s");
  if (request.fault == "gpu-xid" && request.gpu < 0)
    return fail(Code::invalid, "gpu-xid takes the number of a simulated GPU (from 0)");
  return Ok{};
}

}  // namespace muster::lab
