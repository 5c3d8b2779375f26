#include "host/port_counters.h"

#include <cstdlib>

namespace muster {

std::optional<uint64_t> count_in(const Files& files, const std::string& path) {
  const std::string text = files.read_line(path);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::strtoull(text.c_str(), nullptr, 10);
}

std::map<std::string, uint64_t> read_port_counters(const Files& files, const std::string& folder,
                                                   std::span<const PortCounter> rows) {
  std::map<std::string, uint64_t> out;
  for (const PortCounter& row : rows)
    if (const auto count = count_in(files, folder + "/" + std::string(row.file)))
      out[std::string(row.file)] = *count;
  return out;
}

bool has_rdma_link(const std::string& state, const std::string& phys_state) {
  return phys_state.empty() ? state.find("DOWN") == std::string::npos
                            : phys_state.find("LinkUp") != std::string::npos;
}

bool has_rdma_link(const Files& files, const std::string& folder) {
  return has_rdma_link(files.read_line(folder + "/state"), files.read_line(folder + "/phys_state"));
}

// The file `carrier` cannot be read while the port is switched off.
bool has_network_link(const Files& files, const std::string& folder) {
  return files.read_line(folder + "/carrier") == "1";
}

}  // namespace muster
