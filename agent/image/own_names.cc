#include "agent/image/own_names.h"

#include <fmt/format.h>

#include "base/digest.h"

namespace muster {
namespace {

// Returns hexadecimal digits that are unique to the machine and the purpose. They do not reveal the machine
// id itself, which must stay confidential (machine-id(5)).
std::string digits_for(const std::string& purpose, const std::string& machine_id) {
  const std::string digest = sha256("muster " + purpose + " " + machine_id);
  return digest.substr(digest.find(':') + 1);
}

// Returns a UUID as in RFC 9562, version 8 (custom format).
std::string uuid_of(const std::string& hex) {
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                     hex.substr(17, 3), hex.substr(20, 12));
}

}  // namespace

Status write_own_names(const Files& root, const std::string& machine_id) {
  if (root.is_directory("/etc/nvme")) {
    // Both files must have the same UUID, otherwise targets see two hosts (linux-nvme/nvme-cli 2037).
    const std::string uuid = uuid_of(digits_for("nvme", machine_id));
    TRY_(root.write("/etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:" + uuid + "\n"));
    TRY_(root.write("/etc/nvme/hostid", uuid + "\n"));
  }
  if (root.is_directory("/etc/iscsi"))
    TRY_(root.write("/etc/iscsi/initiatorname.iscsi",
                    fmt::format("# Written by muster: unique, do not copy it to another machine.\n"
                                "InitiatorName=iqn.1993-08.org.debian:01:{}\n",
                                digits_for("iscsi", machine_id).substr(0, 12)),
                    0600));
  if (root.exists("/usr/sbin/zgenhostid") || root.exists("/sbin/zgenhostid")) {
    std::string id = "\1";  // 0 would mean unset
    const std::string hex = digits_for("hostid", machine_id);
    for (size_t i = 0; i < 3; ++i) id += static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    TRY_(root.write("/etc/hostid", id));
  }
  return Ok{};
}

}  // namespace muster
