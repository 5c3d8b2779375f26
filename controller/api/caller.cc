#include "controller/api/caller.h"

#include <fmt/format.h>
#include <pwd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/sudo_user.h"

namespace muster::api {
namespace {

constexpr size_t kLongestName = 255;
constexpr size_t kLongestWith = 100;
constexpr uint32_t kRoot = 0;

bool only_reads(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

// Printable ASCII without `but`, the rest as '?': so a name controls no terminal and looks like no other.
std::string plain(const std::string& text, size_t most, std::string_view but) {
  std::string out = text.substr(0, most);
  for (char& c : out)
    if (c < 0x20 || c > 0x7e || but.find(c) != std::string_view::npos) c = '?';
  return text.size() > most ? out + "..." : out;
}

// "anna (sudo), muster up" is no login.
std::string one_name(const std::string& name) { return plain(name, kLongestName, ",()"); }

std::string user_of(const Caller& caller) {
  if (!caller.uid) return "unknown";
  const std::string login =
      caller.login.empty() ? fmt::format("uid {}", *caller.uid) : one_name(caller.login);
  const std::string sudo_user = one_name(caller.sudo_user);
  return sudo_user.empty() || sudo_user == login ? login : sudo_user + " (sudo)";
}

}  // namespace

std::optional<uint32_t> user_to_name(const HttpRequest& request) {
  return only_reads(request) ? std::nullopt : request.peer_uid;
}

Caller caller_of(const HttpRequest& request, const std::function<std::string(uint32_t)>& name_of) {
  Caller caller;
  if (only_reads(request)) return caller;
  if (!request.peer_uid) {
    // Whether it is the right token is checked before anything is done (controller/api/api.cc).
    if (request.headers.count("Authorization")) caller.token = "operator token";
    caller.address = request.remote;
    return caller;
  }
  caller.uid = request.peer_uid;
  caller.login = name_of(*request.peer_uid);
  const auto sudo_user = request.headers.find(kSudoUserHeader);
  if (caller.uid == kRoot && sudo_user != request.headers.end()) caller.sudo_user = sudo_user->second;
  return caller;
}

std::string login_name(uint32_t uid) {
  constexpr size_t kLargestEntry = 1 << 20;
  for (size_t room = 1024; room <= kLargestEntry; room *= 4) {
    std::vector<char> texts(room);
    passwd entry = {};
    passwd* found = nullptr;
    const int error = ::getpwuid_r(uid, &entry, texts.data(), texts.size(), &found);
    if (error == ERANGE) continue;
    return error == 0 && found ? found->pw_name : "";
  }
  return "";
}

std::string text_of(const Caller& caller, const std::string& with) {
  const std::string who =
      caller.token.empty() ? user_of(caller) : fmt::format("{} from {}", caller.token, caller.address);
  return with.empty() ? who : fmt::format("{}, {}", who, plain(with, kLongestWith, ""));
}

}  // namespace muster::api
