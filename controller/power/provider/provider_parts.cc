#include "controller/power/provider/provider_parts.h"

#include "controller/trust/own_ssh_key.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr DurationMs kConnect = 20 * kSecond;

void keep_in_vault(Vault& vault, ProviderInstall::Hooks& hooks) {
  hooks.load = [&vault](const std::string& node) { return vault.get(install_record_name(node)); };
  hooks.save = [&vault](const std::string& node, const std::string& text, ProviderInstall::Done done) {
    vault.put(install_record_name(node), text, std::move(done));
  };
  hooks.erase = [&vault](const std::string& node) {
    vault.remove(install_record_name(node), [node](const Status& removed) {
      if (!removed.ok())
        log::error("an installation record could not be deleted",
                   {{"node", node}, {"error", removed.error().message}});
    });
  };
}

}  // namespace

std::unique_ptr<ProviderInstall> install_by_provider(const ProviderParts& parts) {
  ProviderInstall::Hooks hooks;
  keep_in_vault(parts.vault, hooks);
  PowerService& power = parts.power;
  BootService& boot = parts.boot;
  RealReactor& reactor = parts.reactor;
  hooks.provider = [&power](const std::string& node) { return power.provider(node); };
  hooks.addresses = [&spec = parts.spec](const std::string& node) {
    const auto current = spec.get();
    return current.ok() ? declared_addresses((*current)->spec, node) : DeclaredAddresses{};
  };
  hooks.known_boot = parts.known_boot;
  hooks.host_key = [](const std::string& at) { return learn_host_key(at, 22, kConnect); };
  hooks.connect = [](const SshTarget& target) { return ssh_connect(target, kConnect); };
  hooks.agent = [path = parts.agent_binary] { return Files("/").read(path); };
  hooks.offload = [&reactor](Reactor::Task work, Reactor::Task done) {
    reactor.offload(std::move(work), std::move(done));
  };
  hooks.power_on = [&power](const std::string& node, ProviderInstall::Done done) {
    power.power_on(NodeName(node), std::move(done));
  };
  hooks.leave_order = [&boot](const std::string& node, std::function<void(Result<Json>)> done) {
    boot.leave_order(NodeName(node), std::move(done));
  };
  hooks.note = parts.note;
  hooks.make_key = make_ssh_key;
  hooks.public_key = [](const std::string& key) { return public_ssh_key(key, "muster-install"); };
  auto install = std::make_unique<ProviderInstall>(reactor, std::move(hooks));
  power.installer(
      [made = install.get()](const std::string& node, const Json& order, PowerPort::Done done) {
        made->install(node, order, std::move(done));
      },
      [made = install.get()](const std::string& node) { made->forget(node); });
  return install;
}

void forget_installs(Vault& vault, Store& store, const Spec& spec) {
  const auto secrets = vault.list();
  if (!secrets.ok())
    return log::error("the stored secrets could not be read", {{"error", secrets.error().message}});
  std::vector<Write> gone;
  for (const auto& secret : *secrets) {
    const std::string node = node_of_install_record(secret.name);
    const NodeSpec* declared = node.empty() ? nullptr : spec.node(node);
    if (!node.empty() && (!declared || declared->power.install_image.empty()))
      gone.push_back(DeleteSecret{secret.name});
  }
  if (gone.empty()) return;
  store.write(std::move(gone), [](const Status& written) {
    if (!written.ok())
      log::error("installation records could not be deleted", {{"error", written.error().message}});
  });
}

void restore_servers(const Spec& spec, const OwnMachine& own, PowerTarget& target) {
  for (const NodeSpec& other : spec.nodes) {
    if (other.name == target.node || switched_by(other) != Switch::provider) continue;
    target.servers_of_others.emplace(other.power.address, other.name);
    if (!other.power.pin.empty()) target.servers_of_others.emplace(other.power.pin, other.name);
  }
  target.own_names = own.names;
  target.own_names.insert(controller_address(spec));
}

Result<PowerService::Where> declared_power(const Spec& spec, const NodeSpec& node, const OwnMachine& own,
                                           Vault& vault) {
  if (node.power.driver.empty())
    return fail(Code::invalid,
                node.name + " is declared without power control: muster cannot switch it on or off");
  PowerService::Where where;
  where.driver = node.power.driver;
  where.target.node = node.name;
  where.target.address = node.power.address;
  where.target.pin_sha256 = node.power.pin;
  where.target.program = node.power.program;
  where.target.cipher_suite = node.power.cipher_suite;
  where.target.as_operator = node.power.privilege == "operator";
  where.target.api = node.power.api;
  if (switched_by(node) == Switch::provider) restore_servers(spec, own, where.target);
  where.within = node.power.within;
  where.sol = node.power.sol;
  if (node.power.secret.empty()) return where;
  TRY(const auto login, vault.login(node.power.secret));
  where.target.user = login.user;
  where.target.password = login.password;
  return where;
}

}  // namespace muster
