#include "controller/hosts/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/cuda_driver.h"
#include "base/json_at.h"
#include "base/name_ranges.h"
#include "base/ports.h"
#include "base/record.h"
#include "base/wire.h"
#include "controller/report/gpu_archive.h"
#include "sys/locked_memory.h"

namespace muster {

MUSTER_RECORD(NotMeasured, what, hosts, why, remedy)

namespace {

constexpr const char* kGpus = "GPUs (products, memory, copies, NCCL, training)";
// The major versions of CUDA for which there are archives (scripts/build-gpu-package.sh).
const std::set<int>& archives() {
  static const std::set<int> all = {12, 13};
  return all;
}

// What the plan has for a host to do.
struct Uses {
  bool gpus = false, cublaslt = false, nccl = false, rdma = false, peers = false, root = false;
};

void add_step(const wire::Step& step, Uses& uses) {
  const std::string kernel = text_at(step.params, "kernel"), load = text_at(step.params, "load");
  const bool trains = kernel == "gpu-training" || load == "gpu-training";
  uses.gpus = uses.gpus || kernel.starts_with("gpu-") || trains || load == "nccl";
  uses.cublaslt = uses.cublaslt || trains || kernel == "gpu-gemm" || kernel == "gpu-sdc";
  uses.nccl = uses.nccl || trains || kernel == "gpu-nccl" || load == "nccl";
  uses.rdma = uses.rdma || step.module == "accept_rdma";
  uses.peers = uses.peers || step.module == "accept_links" || step.module.starts_with("accept_group");
  for (const auto& need : step.needs) uses.root = uses.root || need == "root";
}

std::map<std::string, Uses> uses_of(const Plan& plan) {
  std::map<std::string, Uses> out;
  for (const Action& action : plan.actions)
    for (const Json& json : action.params.value("steps", Json::array()))
      if (const auto step = wire::step_from_json(json); step.ok()) add_step(*step, out[action.node.str()]);
  return out;
}

// sudo may complain of something else first, as of a host name without an address, which differs by host.
std::string last_of_sudo(const std::string& why) {
  const size_t at = why.rfind("sudo: ");
  return at == std::string::npos ? why : why.substr(at);
}

class Forecast {
 public:
  explicit Forecast(const ForecastInput& in) : in_(in) {
    for (const auto& [cuda, path] : in.gpu.by_cuda) offered_.insert(cuda);
    for (const auto& one : in.rights)
      if (!one.root) plain_[one.host] = one.why_user;
  }

  void add(const ReachedHost& host, const Uses& uses) {
    const auto facts = host.text.facts();
    const auto tools = host.look.find("tools");
    const bool old = tools != host.look.end() && is_glibc_old(*tools);
    if (facts && uses.gpus && compute_gpus(*facts) > 0 && !has_simulated_gpus(*facts)) {
      if (old)
        put(host.name, kGpus, "muster-accept-gpu needs glibc 2.34 (of August 2021) there",
            "start a newer system there");
      else
        add_gpus(host.name, *facts, uses);
    }
    if (tools != host.look.end() && tools->is_object()) add_tools(host.name, *tools, uses);
    const auto locked = host.look.find("locked_memory_bytes");  // "unlimited", or a number
    if (uses.rdma && locked != host.look.end() && locked->is_number_integer())
      if (const std::string why = too_little_locked(locked->get<uint64_t>()); !why.empty())
        put(host.name, "RDMA", why + " there",
            "raise memlock in /etc/security/limits.conf there, or allow `sudo -n`");
    if (const auto plain = plain_.find(host.name); uses.root && plain != plain_.end())
      add_plain_user(host.name, last_of_sudo(plain->second));
  }
  std::vector<NotMeasured> take() {
    std::stable_partition(out_.begin(), out_.end(), [](const auto& one) { return one.what == kGpus; });
    return std::move(out_);
  }

 private:
  // `why`: sudo's words; empty with --user.
  void add_plain_user(const std::string& host, const std::string& why) {
    constexpr const char* kRoots = "what needs root (raw drives, kernel log, serial numbers)";
    if (why.empty())
      return put(host, kRoots, "the agent runs as a plain user there", "repeat without --user");
    put(host, kRoots, "the agent runs as a plain user there: " + why,
        "allow `sudo -n` there, or log in as root");
  }

  void add_gpus(const std::string& host, const HardwareFacts& facts, const Uses& uses) {
    const std::string driver = driver_of(facts);
    if (driver.empty())
      return put(host, kGpus, "NVIDIA's driver is not loaded there",
                 "`nvidia-smi` shows why there; install or load the driver");
    const std::set<int>& programs = offered_.empty() ? archives() : offered_;
    const int cuda = cuda_for(facts, programs);
    if (cuda == 0) return add_unfit(host, driver, *programs.begin());
    if (offered_.empty())
      return put(host, kGpus,
                 in_.gpu.wrong.empty() ? fmt::format("there is no {} on this machine", kGpuProgram)
                                       : in_.gpu.wrong.front(),
                 bring_gpu_program(cuda));
    if (in_.libs && uses.cublaslt && offered_.size() > 1 && !has_library(facts, cublaslt_of(cuda)))
      put(host, "perhaps products, silent corruption, training of GPUs",
          fmt::format("the folder of --libs is not searched before, and CUDA {} was chosen by the driver",
                      cuda),
          "if the folder has another CUDA's cuBLASLt, name the program for that CUDA with --gpu-program");
    if (in_.libs) return;
    add_library(host, facts, uses.cublaslt, cublaslt_of(cuda),
                "products, silent corruption, training of GPUs");
    add_library(host, facts, uses.nccl, kNcclLibrary, "NCCL and training of GPUs");
  }

  static bool is_glibc_old(const Json& tools) {
    return tools.is_object() && tools.contains("glibc_2_34") && !is_true_at(tools, "glibc_2_34");
  }

  // No program is for a CUDA that the driver supports. `needed`: of the oldest one here or, if there is none,
  // of the oldest archive.
  void add_unfit(const std::string& host, const std::string& driver, int needed) {
    const int supported = cuda_of_driver(driver);
    put(host, kGpus,
        fmt::format("{}{} is for CUDA {}, and driver {} supports CUDA {}", kGpuProgram,
                    offered_.empty() ? "" : " here", needed, driver,
                    supported > 0 ? std::to_string(supported) : "10 or older"),
        supported >= *archives().begin()
            ? bring_gpu_program(supported)
            : fmt::format("install driver {} or newer there", oldest_driver_for(needed)));
  }

  void add_library(const std::string& host, const HardwareFacts& facts, bool used, const std::string& name,
                   const char* what) {
    if (!used || has_library(facts, name)) return;
    std::string other;
    const std::string stem = name.substr(0, name.rfind('.') + 1);
    for (const auto& library : facts.gpu_libraries)
      if (library.name.starts_with(stem)) other = fmt::format("; {} does not fit", library.path);
    put(host, what, fmt::format("{} was not found there{}", name, other),
        "name the folder there that has it with --libs, or install it there");
  }

  void add_tools(const std::string& host, const Json& tools, const Uses& uses) {
    const auto lacks = [&](const char* tool) { return tools.contains(tool) && !is_true_at(tools, tool); };
    if (uses.rdma && is_glibc_old(tools) && lacks("perftest"))
      put(host, "RDMA", "the perftest that muster carries needs glibc 2.34 there",
          "install the package perftest there");
    else if (uses.rdma && lacks("libibverbs"))
      put(host, "RDMA", "libibverbs.so.1 was not found there",
          "install libibverbs and its providers there (with apt: ibverbs-providers, with dnf: libibverbs)");
    else if (uses.rdma && lacks("verbs_providers"))
      put(host, "RDMA", "libibverbs has no provider for its adapters there",
          "install its providers there (with apt: ibverbs-providers, with dnf: libibverbs)");
    else if (uses.rdma && lacks("perftest") && !in_.perftest)
      put(host, "RDMA", "perftest (ib_write_bw) is neither there nor beside this muster",
          "use the muster of the archive for running hosts, or install the package perftest there");
    const std::string firewall = text_at(tools, "firewall");
    if ((uses.peers || uses.rdma) && (firewall == "ufw" || firewall == "firewalld"))
      put(host, "links and loads of several hosts",
          fmt::format("the stored rules of {} drop TCP ports {} to {} there", firewall, kFirstMeasuringPort,
                      kLastMeasuringPort),
          firewall == "ufw"
              ? fmt::format("`ufw allow from NETWORK to any port {}:{} proto tcp` there", kFirstMeasuringPort,
                            kLastMeasuringPort)
              : fmt::format("`firewall-cmd --add-port={}-{}/tcp` there (not stored, so not foreseen)",
                            kFirstMeasuringPort, kLastMeasuringPort));
  }

  // Hosts with the same reason and remedy become one entry.
  void put(const std::string& host, const std::string& what, const std::string& why,
           const std::string& remedy) {
    for (auto& one : out_)
      if (one.what == what && one.why == why && one.remedy == remedy) {
        one.hosts.push_back(host);
        return;
      }
    out_.push_back({what, {host}, why, remedy});
  }

  const ForecastInput& in_;
  std::set<int> offered_;
  std::map<std::string, std::string> plain_;  // host -> HostRights::why_user
  std::vector<NotMeasured> out_;
};

}  // namespace

Json to_json(const NotMeasured& one) { return record_json(one); }

std::string to_text(const NotMeasured& one) {
  return fmt::format("not measured on {}: {}: {}; {}", names_in_ranges(one.hosts), one.what, one.why,
                     one.remedy);
}

std::vector<NotMeasured> forecast(const ForecastInput& input) {
  const auto uses = uses_of(input.plan);
  Forecast out(input);
  for (const auto& host : input.hosts)
    if (const auto found = uses.find(host.name); found != uses.end()) out.add(host, found->second);
  return out.take();
}

}  // namespace muster
