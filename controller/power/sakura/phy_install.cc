#include "controller/power/sakura/phy_install.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_at.h"
#include "controller/power/sakura/sakura_phy.h"

namespace muster {
namespace {

// Maximum age of the list of servers, short enough that it shows an installation that was just accepted.
constexpr DurationMs kServerListAge = 15 * kSecond;

class PhyInstall : public Reinstall {
 public:
  PhyInstall(PowerTarget target, std::shared_ptr<PhyAccount> account)
      : target_(std::move(target)), account_(std::move(account)) {}

  Result<Ready> prepare(const std::string& image, DurationMs deadline) override;
  Status begin(const Order& order, DurationMs deadline) override;
  Result<Look> look(const std::string& server, DurationMs deadline) override;

 private:
  Error about(Error error, const std::string& what) const {
    return std::move(error).with(fmt::format("{} (server {}), {}", target_.node, target_.address, what));
  }
  // `name`: the recorded server; "" if none is recorded yet.
  Result<PhyServer> unlocked(const std::string& name, DurationMs deadline) {
    const PhyQuery query{true, 0, deadline};
    TRY(PhyServer server, name.empty() ? phy_server_of(target_, *account_, query) : only(name, query));
    if (const auto lock = phy_lock(server)) return fail(lock->code, lock->words);
    return server;
  }
  // Returns the server that the node's address leads to, if it is the recorded one.
  Result<PhyServer> only(const std::string& server, const PhyQuery& query) {
    TRY(PhyServer found, phy_server_of(target_, *account_, query));
    if (found.id == server) return found;
    return fail(
        Code::denied,
        fmt::format("the node's installation was started on server {}, but '{}' leads to server {}: nothing "
                    "was done; `muster node rm {}` removes the record of that installation",
                    server, target_.address, found.id, target_.node));
  }
  Result<Json> image_named(const PhyServer& server, const std::string& image, DurationMs deadline);

  PowerTarget target_;
  std::shared_ptr<PhyAccount> account_;
};

Result<Json> PhyInstall::image_named(const PhyServer& server, const std::string& image, DurationMs deadline) {
  TRY(const Json answer, account_->get(server.id, "os_images/", {true, 0, deadline}));
  const Json images = answer.is_object() ? answer.value("os_images", Json()) : Json();
  std::string known;
  for (const Json& one : images.is_array() ? images : Json::array()) {
    const std::string id = text_at(one, "os_image_id");
    if (id == image) return one;
    known += (known.empty() ? "" : ", ") + id;
  }
  return fail(Code::invalid,
              fmt::format("there is no image '{}' for this server (power.install.image); available: {}",
                          image, known.empty() ? "none" : known.substr(0, 400)));
}

Result<Reinstall::Ready> PhyInstall::prepare(const std::string& image, DurationMs deadline) {
  const char* what = "checking whether the server can be reinstalled";
  auto server = unlocked("", deadline);
  if (!server.ok()) return about(std::move(server).error(), what);
  auto found = image_named(*server, image, deadline);
  if (!found.ok()) return about(std::move(found).error(), what);
  if (!is_true_at(*found, "public_key_authentication"))
    return about(fail(Code::invalid, fmt::format("image '{}' accepts no SSH keys, so muster could not log in "
                                                 "to it: choose another one (power.install.image)",
                                                 image)),
                 what);
  Ready ready;
  ready.server = server->id;
  ready.address = server->address;
  ready.user = text_at(*found, "superuser_name");
  if (ready.user.empty()) ready.user = "root";
  ready.needs_password = is_true_at(*found, "require_password");
  return ready;
}

// Sends all five fields: the published API description requires only one of them, its copy in the client
// libraries all five. Manual partitioning at a console is not possible.
Status PhyInstall::begin(const Order& order, DurationMs deadline) {
  const char* what = "reinstalling the operating system";
  if (!order.permit)
    return about(fail(Code::invalid, "internal error: the order has no cancellation permit"), what);
  if (order.server.empty())
    return about(fail(Code::invalid, "no server is recorded for this installation"), what);
  const auto server = unlocked(order.server, deadline);
  if (!server.ok()) return about(server.error(), what);
  const Json body = {{"os_image_id", order.image},
                     {"password", order.password},
                     {"manual_partition", false},
                     {"ssh_public_keys", {order.public_key}},
                     {"allow_password_login", false}};
  const Status begun = account_->post(server->id, "os_install/", body, deadline,
                                      [permit = order.permit] { return permit->take(); });
  if (begun.ok()) return Ok{};
  return about(begun.error(), what);
}

Result<Reinstall::Look> PhyInstall::look(const std::string& name, DurationMs deadline) {
  const auto server = only(name, {false, kServerListAge, deadline});
  if (!server.ok()) return about(server.error(), "reading the state of the installation");
  if (server->lock == "os_install") return Look::installing;
  const auto lock = phy_lock(*server);
  if (!lock) return Look::idle;
  if (lock->code == Code::denied) return about(fail(lock->code, lock->words), "installing it");
  return Look::busy;
}

}  // namespace

std::unique_ptr<Reinstall> make_phy_install(PowerTarget target, std::shared_ptr<PhyAccount> account) {
  return std::make_unique<PhyInstall>(std::move(target), std::move(account));
}

}  // namespace muster
