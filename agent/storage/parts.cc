#include "agent/storage/parts.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <chrono>
#include <thread>

#include "agent/steps/files/file_modules.h"
#include "agent/steps/services/service_module.h"

namespace muster::steps {

Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts) {
  Diff diff;
  for (const auto& part : parts) {
    TRY(const CheckResult one, part.module.check(context, part.params));
    if (one.holds == Holds::no) diff.add(one.diff);
  }
  return diff.result();
}

Status apply_parts(StepContext& context, const std::vector<Part>& parts) {
  for (const auto& part : parts) {
    TRY(const CheckResult before, part.module.check(context, part.params));
    if (before.holds != Holds::no) continue;
    TRY_(part.module.apply(context, part.params));
  }
  return Ok{};
}

Part file_part(const std::string& path, const std::string& content, const std::string& mode) {
  return {file_module(), {{"path", path}, {"content", content}, {"mode", mode}}};
}

Part service_part(const std::string& unit, const std::vector<std::string>& restart_for) {
  return {service_module(), {{"names", {unit}}, {"enabled", true}, {"restart_for", restart_for}}};
}

Status wait_for_storage(StepContext& context, int64_t seconds,
                        const std::function<Result<std::string>()>& lacking) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::string said;
  for (;;) {
    const auto now = lacking();
    if (now.ok() && now->empty()) return Ok{};
    const std::string text = now.ok() ? *now : now.error().message;
    if (text != said) say(context, said = text);
    if (is_cancelled(context)) return fail(Code::cancelled, text);
    if (std::chrono::steady_clock::now() >= until) return fail(Code::failed, text);
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

std::vector<Part> open_top(const std::string& path) {
  return {{directory_module(), {{"path", path}, {"mode", "1777"}, {"owner", kNobody}, {"group", kNoGroup}}},
          {directory_module(),
           {{"path", path + "/.muster"}, {"mode", "0755"}, {"owner", kNobody}, {"group", kNoGroup}}}};
}

Result<std::vector<std::string>> client_addresses(const std::vector<StorageClient>& clients,
                                                  const std::string& module) {
  std::vector<std::string> out;
  for (const auto& [address] : clients) {
    unsigned char binary[sizeof(in6_addr)];
    const bool host =
        inet_pton(AF_INET, address.c_str(), binary) == 1 || inet_pton(AF_INET6, address.c_str(), binary) == 1;
    if (!host || address == "0.0.0.0" || address == "::")
      return fail(Code::invalid, module + ": '" + address + "' is not a valid node address");
    out.push_back(address);
  }
  return out;
}

}  // namespace muster::steps
