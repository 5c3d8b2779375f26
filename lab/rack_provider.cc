// The part of Rack for machines behind a provider's API (lab/phy_api.h): the API's server, and the
// installation of a system. The provider's systems are in DIR/provider: NAME.raw, a disk with a system that
// starts by UEFI, and NAME.json, {"name", "user", "root_offset"}: where its root file system (ext4) begins,
// for the keys of `user`. Created by tests/e2e/phy.sh.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json_dump.h"
#include "lab/lab_network.h"
#include "lab/rack.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/pki.h"

namespace muster::lab {
namespace {

std::string folder_of(const LabDir& dir) { return dir.path("provider"); }

Result<Json> description(const LabDir& dir, const std::string& image) {
  TRY(const std::string text, Files("/").read(folder_of(dir) + "/" + image + ".json"));
  return parse_json(text);
}

std::vector<PhyImage> images_in(const LabDir& dir) {
  std::vector<PhyImage> out;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(dir), missing)) {
    if (entry.path().extension() != ".raw") continue;
    const std::string id = entry.path().stem();
    const auto known = description(dir, id);
    if (!known.ok() || !known->is_object()) continue;
    out.push_back({id, known->value("name", id), known->value("user", "root"), true, true});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

// Returns a machine's 12-digit id: that of the spec, or one made from its number if the spec has a nickname.
std::string id_of(const LabNode& node) {
  const bool digits = node.server.find_first_not_of("0123456789") == std::string::npos;
  return digits ? node.server : fmt::format("1131{:08}", node.number);
}

std::string home_of(const std::string& user) { return user == "root" ? "/root" : "/home/" + user; }

}  // namespace

Status Rack::open_provider() {
  Files files("/");
  TRY(std::string secret, files.read(options_.dir.secret()));
  while (!secret.empty() && secret.back() == '\n') secret.pop_back();
  const size_t colon = secret.find(':');
  const std::string& api = spec_.provider_api;
  const std::string address = api.substr(0, api.find(':'));
  provider_ = std::make_unique<PhyApi>(
      secret.substr(0, colon), colon == std::string::npos ? "" : secret.substr(colon + 1),
      [dir = options_.dir] { return images_in(dir); }, wall_clock);
  TRY(const auto maker, pki::make_ca("provider of " + spec_.cluster, 3650));
  TRY(const auto certificate, pki::issue(maker, {.common_name = "provider",
                                                 .organization = "muster lab",
                                                 .addresses = {address},
                                                 .server = true,
                                                 .days = 3650}));
  HttpServerOptions http;
  http.address = address;
  http.port = static_cast<uint16_t>(
      api.find(':') == std::string::npos ? 443 : std::strtol(api.c_str() + api.find(':') + 1, nullptr, 10));
  http.tls = true;
  http.tls_options.certificate_pem = certificate.certificate_pem;
  http.tls_options.key_pem = certificate.key_pem;
  http.max_body = 64 << 10;
  auto server = start_http_server(http, [this](HttpRequest request, ResponderPtr responder) {
    auto response = provider_->handle(request);
    // Logs requests that change something, without the keys and the password of an installation.
    if (request.method != "GET")
      log_order("provider",
                fmt::format("{} {} {} {}", request.method, request.path, response.status,
                            request.path.find("os_install") == std::string::npos ? request.body.substr(0, 300)
                                                                                 : "-"));
    responder->respond(std::move(response));
  });
  if (!server) return std::move(server).error().with("the provider's API");
  provider_server_ = std::move(*server);
  return Ok{};
}

void Rack::put_behind_provider(const LabNode& node, Slot& slot) {
  PhyMachine machine;
  machine.id = id_of(node);
  machine.nickname = node.server == machine.id ? node.name : node.server;
  machine.address = node.address;
  machine.machine = slot.machine.get();
  machine.install = [this, node, metal = slot.machine.get()](const std::string& image,
                                                             const std::vector<std::string>& keys) {
    metal->settle();  // the machine must be off while its disk is written
    const std::string problem = install_system(node, image, keys);
    log_order(node.name, problem.empty() ? "installed " + image : "NOT installed: " + problem);
    return problem;
  };
  provider_->add(std::move(machine));
}

// A provider's installation may change the other disks; this one does not.
std::string Rack::install_system(const LabNode& node, const std::string& image,
                                 const std::vector<std::string>& keys) {
  const auto os = std::find_if(node.drives.begin(), node.drives.end(), [](auto& d) { return d.boot; });
  const auto known = description(options_.dir, image);
  if (os == node.drives.end() || !known.ok() || !known->is_object())
    return "the image does not exist, or the machine has no disk";
  const std::string drive = drive_file(options_.dir, node, *os);
  const std::string raw = folder_of(options_.dir) + "/" + image + ".raw";
  const std::string list = folder_of(options_.dir) + "/" + node.name + ".keys";
  const std::string user = known->value("user", "root"), home = home_of(user) + "/.ssh";
  std::string text;
  for (const std::string& key : keys) text += key + "\n";
  if (const auto written = Files("/").write(list, text, 0600); !written) return written.error().message;
  const std::string root = fmt::format("{}?offset={}", drive, known->value("root_offset", int64_t{0}));
  const auto in_root = [&](const std::string& command) { return Argv{"debugfs", "-w", "-R", command, root}; };
  const auto done = run_all(process_, {{"cp", "--sparse=always", raw, drive},
                                       {"truncate", "-s", std::to_string(os->size_bytes), drive},
                                       in_root("mkdir " + home),
                                       in_root("set_inode_field " + home + " mode 040700"),
                                       in_root("rm " + home + "/authorized_keys"),
                                       in_root("write " + list + " " + home + "/authorized_keys"),
                                       in_root("set_inode_field " + home + "/authorized_keys mode 0100600")});
  if (!done) return done.error().message;
  // debugfs always exits with 0, even on errors.
  Command look;
  look.argv = {"debugfs", "-R", "cat " + home + "/authorized_keys", root};
  const auto back = process_.run(look);
  return back.ok() && back->out == text ? "" : "the keys were not written to the root file system";
}

Result<std::string> Rack::break_provider(const Break& request) {
  if (!provider_) return fail(Code::invalid, "this lab has no provider (power driver sakura-phy)");
  std::string words = "the provider works normally";
  provider_->change([&](PhyManners& m) {
    if (request.fault == "api-locked") m.locked_by_people = !request.heal;
    if (request.fault == "api-lies") m.installs_nothing = !request.heal;
    if (request.fault == "api-lost") m.lost_answers = request.heal ? 0 : 1;
    if (request.fault == "api-throttled") {
      m.throttled = request.heal ? 0 : 1;
      m.retry_after = (request.seconds > 0 ? request.seconds : 60) * kSecond;
    }
  });
  if (!request.heal) words = fault_list().at(request.fault);
  return words;
}

}  // namespace muster::lab
