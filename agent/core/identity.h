// Identity: the stored identity of an agent, of its controller, and of the running system.
//
// In one folder: /run/muster in the RAM system (dies with the boot), /state/muster on an installed system
// (survives re-images; /var/lib/muster if /state is not a mount point, on adopted machines). Files in it:
//   agent.json       AgentConfig, 0600
//   agent.key        P-256 private key, 0600; never leaves the node
//   agent.pem        certificate the controller signed for it at join
//   ca.pem           the controller's CA, pinned by its SHA-256 when it was fetched
//   journal          finished orders (agent/work/file_journal.h)
// The image writer (agent/image) copies agent.json, agent.key, agent.pem and ca.pem from the RAM system's
// folder into the new system's state partition, so that the installed agent needs no new token. The identity
// of the running root file system comes from the root slot itself, not from the shared state: the image
// writer leaves
//   /etc/muster/image.json   {"name": "debian-12", "digest": "sha256:...", "slot": "a"}
// in every slot it writes. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

inline constexpr const char* kRamIdentity = "/run/muster";
inline constexpr const char* kInstalledIdentity = "/state/muster";
inline constexpr const char* kAdoptedIdentity = "/var/lib/muster";
inline constexpr const char* kImageRecord = "/etc/muster/image.json";

struct AgentConfig {
  std::string node;
  std::string url;     // "https://10.20.0.1:7443"
  std::string ca_pin;  // "sha256:<hex>" of the CA certificate
  wire::Mode mode = wire::Mode::installed;
};
Result<AgentConfig> read_config(const Files& files, const std::string& folder);
Status write_config(const Files& files, const std::string& folder, const AgentConfig& config);

struct Credentials {
  std::string key_pem, certificate_pem, ca_pem;
};
// not_found if any of the three files is missing: the agent must join first.
Result<Credentials> read_credentials(const Files& files, const std::string& folder);
Status write_credentials(const Files& files, const std::string& folder, const Credentials& credentials);

struct ImageRecord {
  std::string name, digest, slot;  // all empty if muster did not write the root file system
};
ImageRecord read_image_record(const Files& files);
Status write_image_record(const Files& files,
                          const ImageRecord& record);  // `files` is rooted at the new root slot

// Parameters of the RAM system: muster.url, muster.pin, muster.token, muster.node, muster.ip, muster.mac.
struct BootParameters {
  std::string url, pin, token, node, ip, mac;
};
Result<BootParameters> parse_kernel_command_line(const std::string& text);

}  // namespace muster
