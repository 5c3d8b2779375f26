// Small configuration files that muster owns completely, and the effects still pending after one is written.
//
// A file changes at once, but its effect (a reload, a trigger) comes later: a crash in between must not look
// like success. So a module records the pending effect before it writes and clears it afterwards; a check
// fails while one is pending. The records are in /run, because a reboot has these effects, too. Thread
// safety: stateless functions.
#pragma once

#include <string>

#include "agent/steps/step_modules.h"

namespace muster::steps {

// A file that must have this text and mode. With an empty text it must not exist.
struct OwnFile {
  std::string path, text;
  unsigned mode = 0644;
};
// Describes the first line that differs.
std::string first_difference(const std::string& have, const std::string& want);
// Likewise, for a file whose texts may be secret: the line is not shown if some users may not read the file
// as it is or will be (`modes`: both, joined by `&`), or if a text has one of `secrets`, because the other
// text may have an earlier value of it.
std::string text_difference(const SecretMask& secrets, unsigned modes, const std::string& have,
                            const std::string& want);
// The mode of a file with this text whose declaration has none. A line that it has in common with a secret,
// as all certificates begin alike, makes it no secret.
unsigned mode_of_new(const SecretMask& secrets, const std::string& text);
void add_difference(const Files& files, const OwnFile& want, Diff& diff);  // adds the difference, if any
bool differs_from(const Files& files, const OwnFile& want);
// Writes or removes the file if it differs.
Status put(const Files& files, const OwnFile& want);

// The file at the path; one without text if there is none. For modules that change files of other programs.
Result<FileText> text_or_none(const Files& files, const std::string& path);
// Writes the new text under the mode and owner that the file had, a new file under `mode`. conflict: the path
// is a link to it.
Status replace_text(const Files& files, const std::string& path, const FileText& had, const std::string& text,
                    unsigned mode = 0644);

// Checks a name that becomes part of a file name: a letter or digit, then letters, digits, '.', '_' and '-'.
Status check_name(const std::string& name, const char* module);

bool has_pending_reload(const Files& files, const std::string& what);  // the records described above
Status mark_pending(const Files& files, const std::string& what);
Status clear_pending(const Files& files, const std::string& what);

// False in a chroot, a container or an image build: nothing in the running kernel or in systemd can be
// changed or read there (sd_booted(3)).
bool is_booted(const Files& files);

// Runs `systemctl daemon-reload`; does nothing without systemd.
Status reload_units(StepContext& context);

// Requests a reboot for a change that needs one. The `reboot` module restarts once for all requests.
Status request_reboot(const Files& files, const std::string& who, const std::string& why);

// invalid, for `module`: not an https, http or file URL.
Status check_source_url(const std::string& url, const char* module);
// Downloads `url` with apt's downloader and moves the file to `path` once its digest is verified. A wrong or
// partial file never appears there.
Status fetch(StepContext& context, const std::string& url, const std::string& sha256, const std::string& path,
             unsigned mode = 0644, DurationMs deadline = 30 * kMinute);
// Returns the digest in the parameter `key`, "sha256:<hex>" or bare hex, as "sha256:<hex>"; invalid for
// anything else.
Result<std::string> digest_of(const std::string& text, const char* key);

}  // namespace muster::steps
