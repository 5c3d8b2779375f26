// NVIDIA's Container Toolkit on a FakeMachine: `nvidia-ctk cdi list`, over the files of /etc/cdi and /run/cdi
// as the Container Device Interface reads them. Of two files in one folder that define a device, neither
// counts.
#include <regex>
#include <set>

#include "tests/fakes/fake_machine.h"

namespace muster::tests {
namespace {

// Of devices of the kind nvidia.com/gpu.
std::set<std::string> device_names(const std::string& text) {
  static const std::regex of_gpus(R"re(\bkind"?:\s*"?nvidia\.com/gpu\b)re");
  static const std::regex name(R"re(\bname"?:\s*"?([^"\s,}]+))re");
  std::set<std::string> out;
  if (!std::regex_search(text, of_gpus)) return out;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) out.insert(it->str(1));
  return out;
}

}  // namespace

Output FakeMachine::list_cdi_devices() const {
  std::set<std::string> known, doubled;
  for (const std::string folder : {"/etc/cdi/", "/run/cdi/"}) {
    std::set<std::string> here;
    for (const auto& file : files().list(folder)) {
      if (!file.ends_with(".yaml") && !file.ends_with(".json")) continue;
      for (const auto& device : device_names(get(folder + file)))
        if (!here.insert(device).second) doubled.insert(device);
    }
    known.insert(here.begin(), here.end());
  }
  std::string out;
  for (const auto& device : known)
    if (doubled.count(device) == 0) out += "nvidia.com/gpu=" + device + "\n";
  return {0, out, ""};
}

}  // namespace muster::tests
