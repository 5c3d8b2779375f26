// Files that machines fetch while they boot. Plain HTTP: only the one-time token in an armed node's script is
// secret, and clients check everything by digest (docs/threat-model.md).
#include <sstream>
#include <vector>

#include "controller/api/files.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/boot/boot.h"
#include "controller/boot/service/boot_service.h"
#include "controller/image/service/image_service.h"

namespace muster::api {

void boot_chain(const CallPtr& call) { call->text(200, kBootChain); }

void boot_script(const CallPtr& call) {
  const std::string name = call->arg("script");
  const std::string suffix = ".ipxe";
  if (name.size() <= suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return call->error(fail(Code::not_found, "no such script"));
  call->services.boot.script_for(
      name.substr(0, name.size() - suffix.size()),
      [call](Result<std::string> script) {
        if (!script.ok()) return call->error(script.error());
        call->text(200, *script);
      },
      call->request.remote);
}

// /ram/IMAGE/vmlinuz and /ram/IMAGE/initrd
void boot_ram_file(const CallPtr& call) {
  const std::string path = call->arg("path");
  const auto slash = path.find('/');
  const std::string image = path.substr(0, slash),
                    file = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (file != "vmlinuz" && file != "initrd") return call->error(fail(Code::not_found, "no such file"));
  send_below(call, call->services.options.state + "/images", image + "/current/ram-" + file);
}

// /images/NAME/DIGEST/FILE
void boot_image_file(const CallPtr& call) {
  const std::string path = call->arg("path");
  std::vector<std::string> parts;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '/');) parts.push_back(part);
  if (parts.size() != 3 || !call->services.images.publishes(parts[0], parts[1], parts[2]))
    return call->error(fail(Code::not_found, "no such file"));
  send_below(call, call->services.options.state + "/images", path);
}

// /programs/SHA256, in hexadecimal: programs for a system that is written while jobs run (wire::SlotJob)
void boot_program(const CallPtr& call) {
  const std::string path = call->services.images.programs().path_of(call->arg("digest"));
  if (path.empty()) return call->error(fail(Code::not_found, "no such program"));
  send_file(call, path);
}

}  // namespace muster::api
