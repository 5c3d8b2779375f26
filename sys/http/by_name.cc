#include "sys/http/by_name.h"

#include "sys/os.h"

namespace muster {

// In a separate process, because the resolver may load plug-ins and hang.
Result<std::string> first_address(const std::string& host, DurationMs deadline) {
  Command command;
  command.argv = {"getent", "ahostsv4", host};
  command.deadline = deadline;
  const auto found = make_process()->run(command);
  if (!found.ok()) return fail(Code::unavailable, found.error().message);  // also a timeout
  const std::string address = found->out.substr(0, found->out.find_first_of(" \n"));
  if (found->ok() && !address.empty()) return address;
  return fail(Code::unavailable, "the name " + host + " does not resolve");
}

Result<std::string> system_roots() { return Files("/").read("/etc/ssl/certs/ca-certificates.crt"); }

}  // namespace muster
