// RedfishRefusal: the content of a refusal's body. Decided by message ids, never by their wording.
//
// The messages are in several places and spellings: iLO 4 has `MessageID` and a list of its own beside the
// error, others an object for the list. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace muster {

class RedfishRefusal {
 public:
  explicit RedfishRefusal(const Json& body);

  // The first message: "ActionParameterValueConflict: The host is powering down"; "" for none.
  std::string text() const;
  // It passes by itself: power-on self test, services that start, tables that are full for now.
  bool passes() const;
  // The path that the BMC names for the request instead; "".
  std::string moved_to() const;

 private:
  struct Message {
    std::string id, text;
    std::vector<std::string> args;
  };
  void add(const Json& list);

  std::vector<Message> messages_;
};

// "/redfish/v1/x" out of "/redfish/v1/x" or "https://10.20.1.11/redfish/v1/x".
std::string redfish_path(const std::string& uri);

}  // namespace muster
