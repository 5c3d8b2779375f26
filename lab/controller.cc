#include "lab/controller.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/utf8.h"
#include "lab/apt_proxy.h"
#include "lab/child.h"
#include "lab/lab.h"
#include "lab/lab_network.h"
#include "lab/tsc.h"
#include "sys/http/http.h"
#include "sys/os.h"

namespace muster::lab {
namespace {

std::string find_musterd() {
  std::error_code error;
  if (const char* given = std::getenv("MUSTER_MUSTERD"))
    return std::filesystem::exists(given, error) ? given : "";
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {beside, beside / "../sbin", std::filesystem::path("/usr/sbin"),
                             std::filesystem::path("/usr/local/sbin")}) {
    const auto path = (folder / "musterd").lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return "";
}

std::string log_tail(const LabDir& dir) {
  const auto log = Files("/").read(dir.path("musterd.log")).value_or("(no log)");
  return std::string(last_bytes(log, 2000));
}

// Ok once any response arrives, whatever its content.
Status wait_for_answer(const LabDir& dir, const ChildId& child) {
  TRY(auto client, make_http_client({.base = "unix:" + dir.path("musterd.sock")}));
  for (DurationMs waited = 0; waited < 20 * kSecond && alive(child); waited += 100) {
    HttpRequest request;
    request.target = "/v1/secrets";
    if (client->request(request, 5 * kSecond).ok()) return Ok{};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return fail(Code::failed, "musterd did not start:\n" + log_tail(dir));
}

Status hand_over_secrets(const LabDir& dir, const LabSpec& spec) {
  TRY(auto value, Files("/").read(dir.secret()));
  while (!value.empty() && value.back() == '\n') value.pop_back();
  TRY(auto client, make_http_client({.base = "unix:" + dir.path("musterd.sock")}));
  for (const auto& name : spec.secrets) {
    HttpRequest request;
    request.method = "PUT";
    request.target = "/v1/secrets/" + name;
    request.body = value;
    TRY(auto response, client->request(request, 20 * kSecond));
    if (response.status >= 300)
      return fail(Code::failed, fmt::format("musterd rejected the secret '{}': {}", name, response.body));
  }
  return Ok{};
}

}  // namespace

std::vector<std::string> controller_arguments(const LabDir& dir, const LabSpec& spec,
                                              const std::string& musterd) {
  return {musterd,    "--lab",        "--state", dir.path("state"), "--socket", dir.path("musterd.sock"),
          "--listen", spec.controller};
}

std::map<std::string, std::string> controller_environment(const LabSpec& spec, bool has_proxy,
                                                          int64_t tsc_khz) {
  std::map<std::string, std::string> out = {
      {"MUSTER_KERNEL_OPTIONS", fmt::format("{} tsc_early_khz={}", kKernelOptions, tsc_khz)}};
  if (has_proxy) out["MUSTER_APT_PROXY"] = fmt::format("http://{}:{}", spec.controller, kAptProxyPort);
  return out;
}

Status start_controller(const LabDir& dir, const LabSpec& spec, const std::string& space) {
  const auto musterd = find_musterd();
  if (musterd.empty())
    return fail(Code::not_found,
                "musterd was not found: build or install it next to muster, or set $MUSTER_MUSTERD");
  Spawn daemon;
  daemon.argv = {"ip", "netns", "exec", space};
  const auto own = controller_arguments(dir, spec, musterd);
  daemon.argv.insert(daemon.argv.end(), own.begin(), own.end());
  daemon.log = dir.path("musterd.log");
  daemon.mark = dir.root();
  auto proxy = read_pid_file(dir.path("apt/lab.pid"));
  TRY(auto khz, tsc_khz(dir));
  daemon.env = controller_environment(spec, proxy && alive(*proxy), khz);
  TRY_(Files("/").make_directories(dir.path("state"), 0750));
  TRY(auto child, spawn(daemon));
  TRY_(write_pid_file(dir.path("musterd.pid"), child));
  TRY_(wait_for_answer(dir, child));
  return hand_over_secrets(dir, spec);
}

Status restart_controller(const LabDir& dir, bool kill) {
  TRY(auto space, recorded_namespace(dir));
  TRY(auto text, Files("/").read(dir.spec()));
  TRY(auto json, parse_json(text));
  TRY(auto spec, lab_spec_from_json(json));
  auto running = read_pid_file(dir.path("musterd.pid"));
  if (running) TRY_(terminate(*running, kill ? 0 : 10 * kSecond));
  return start_controller(dir, spec, space.name);
}

}  // namespace muster::lab
