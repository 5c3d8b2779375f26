// Caller: who sent a request that changes something, as it is recorded with what was changed.
//
// Through the Unix socket: the user of the process that connected to it, as the kernel reports it, whatever
// the request says. `muster` that sudo started sends the user who called sudo in a header; it counts only if
// that process is root's, who can act as any user anyway (docs/decisions/0053-who.md). Over TLS: the token
// that was shown, and the address. Names come from user databases and environments, and are untrusted: the
// text has them in printable ASCII, without commas and parentheses, cut after 255 characters. HTML still has
// to escape it. Thread safety: value type and stateless functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sys/http/http.h"

namespace muster::api {

struct Caller {
  std::optional<uint32_t> uid = {};  // through the Unix socket
  std::string login = {};            // that user's name; "" if the user database has none
  std::string sudo_user = {};        // who called sudo; only if `uid` is 0
  std::string token = {};            // over TLS: what the token is called
  std::string address = {};          // over TLS
};

// The user whose name caller_of() needs; none for GET and HEAD, which change nothing, and over TLS.
std::optional<uint32_t> user_to_name(const HttpRequest& request);

// `name_of`: the name of that user. Returns an empty caller for GET and HEAD.
Caller caller_of(const HttpRequest& request, const std::function<std::string(uint32_t)>& name_of);

// From the user database of this machine; "" if it has none. Blocks while a directory of the network does not
// answer: for the pool.
std::string login_name(uint32_t uid);

// "anna", "anna (sudo)", "uid 1001", "operator token from 10.20.0.9"; "unknown" for an empty caller. `with`:
// what the request says that it was made with, which is added: "anna (sudo), muster up".
std::string text_of(const Caller& caller, const std::string& with = "");

}  // namespace muster::api
