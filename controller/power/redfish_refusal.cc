#include "controller/power/redfish_refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/split.h"
#include "base/utf8.h"
#include "controller/power/bmc_json.h"

namespace muster {
namespace {

constexpr size_t kLongest = 300;  // bytes of a message that are shown

// Parts of message ids for temporary conditions. Dell: data sources (SYS518), the iDRAC (SWC0700) or its
// providers (RAC0508) are not ready yet; all sessions are in use (RAC0218).
constexpr const char* kPassing[] = {"SystemPOST",
                                    "InvalidOperationForSystemState",
                                    "ServiceTemporarilyUnavailable",
                                    "ResourceInUse",
                                    "ResourceInStandby",
                                    "ServiceInUnknownState",
                                    "MaximumSessions",
                                    "ServiceShuttingDown",
                                    "SessionLimitExceeded",
                                    "NotReady",
                                    "SYS518",
                                    "SWC0700",
                                    "RAC0508",
                                    "RAC0218"};
// AMI: the settings are in a different resource, which the message arguments name.
constexpr const char* kMoved = "OperationSupportedInFutureStateURI";

}  // namespace

std::string redfish_path(const std::string& uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return uri;
  const size_t slash = uri.find('/', scheme + 3);
  return slash == std::string::npos ? "/" : uri.substr(slash);
}

RedfishRefusal::RedfishRefusal(const Json& body) {
  const Json& error = json_at(body, {"error"});
  add(json_at(error, {"@Message.ExtendedInfo"}));
  add(json_at(body, {"@Message.ExtendedInfo"}));
  add(json_at(body, {"Messages"}));
  messages_.push_back({json_text(error, "code"), json_text(error, "message"), {}});
}

void RedfishRefusal::add(const Json& list) {
  const auto one = [this](const Json& json) {
    Message message{json_text(json, "MessageId"), json_text(json, "Message"), {}};
    if (message.id.empty()) message.id = json_text(json, "MessageID");
    for (const Json& arg : json_at(json, {"MessageArgs"}))
      if (arg.is_string()) message.args.push_back(arg.get<std::string>());
    if (!message.id.empty() || !message.text.empty()) messages_.push_back(std::move(message));
  };
  if (list.is_object()) one(list);
  if (list.is_array())
    for (const Json& json : list) one(json);
}

std::string RedfishRefusal::text() const {
  const Message& first = messages_.front();
  std::string text = first.text;
  if (text.empty()) text = fmt::format("{}", fmt::join(first.args, ", "));
  if (text.empty()) text = messages_.back().text;
  const std::string id = first.id.empty() ? messages_.back().id : first.id;
  return fmt::format("{}{}{}", id, id.empty() || text.empty() ? "" : ": ", first_bytes(text, kLongest));
}

bool RedfishRefusal::passes() const {
  return std::any_of(messages_.begin(), messages_.end(), [](const Message& message) {
    return std::any_of(std::begin(kPassing), std::end(kPassing),
                       [&](const char* part) { return has(message.id, part); });
  });
}

std::string RedfishRefusal::moved_to() const {
  for (const Message& message : messages_) {
    if (!has(message.id, kMoved)) continue;
    for (const std::string& arg : message.args)
      if (const std::string path = redfish_path(arg); path.starts_with("/redfish/")) return path;
  }
  return "";
}

}  // namespace muster
