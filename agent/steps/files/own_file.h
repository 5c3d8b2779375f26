// Small configuration files that belong to muster as a whole, and the pending effects after writing them.
//
// A file changes at once, its effect (a reload, a trigger) later: a crash in between must not look like
// success. So a module records the pending effect before it writes and clears it afterwards; a check with a
// pending effect fails. The records are in /run: a reboot brings these effects about anyway. Thread: plain
// functions over Files.
#pragma once

#include <string>

#include "agent/steps/step_modules.h"

namespace muster::steps {

// Empty text: must not exist.
struct OwnFile {
  std::string path, text;
  unsigned mode = 0644;
};
void add_difference(const Files& files, const OwnFile& want, Diff& diff);
bool differs_from(const Files& files, const OwnFile& want);
// Writes only what differs.
Status put(const Files& files, const OwnFile& want);

// Names become parts of file names: a letter or digit, then letters, digits, '.', '_' and '-'.
Status check_name(const std::string& name, const char* module);

bool has_pending_reload(const Files& files, const std::string& what);
Status mark_pending(const Files& files, const std::string& what);
Status clear_pending(const Files& files, const std::string& what);

// False in a chroot, a container or an image build: nothing in the running kernel or in systemd can be
// changed or read there (sd_booted(3)).
bool is_booted(const Files& files);

// `systemctl daemon-reload`, if there is a systemd.
Status reload_units(StepContext& context);

// Requests a reboot, for a change that takes effect only then. The `reboot` module does one for all requests.
Status request_reboot(const Files& files, const std::string& who, const std::string& why);

// Fetches `url` with apt's own downloader and puts it at `path` once its digest is verified. Never leaves a
// wrong or partial file there.
Status fetch(StepContext& context, const std::string& url, const std::string& sha256, const std::string& path,
             unsigned mode = 0644, DurationMs deadline = 30 * kMinute);
// "sha256:<hex>" or bare hex -> "sha256:<hex>"; invalid for anything else.
Result<std::string> digest_of(const Json& params, const char* key);

}  // namespace muster::steps
