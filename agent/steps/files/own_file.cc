#include "agent/steps/files/own_file.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "base/digest.h"
#include "base/lower.h"
#include "sys/open_way.h"

namespace muster::steps {
namespace {

constexpr const char* kDebts = "/run/muster/owed/";

struct Download {
  const std::string &url, &sha256;
  unsigned mode;
  DurationMs deadline;
};

// To `part`, which apt is given as `name` (relative: in the folder of `part`), and to `target` when verified.
Status fetch_to(StepContext& context, const Download& want, const OpenWay& part, const std::string& name,
                const OpenWay& target) {
  // For a file: URL, apt would only make a symbolic link to the local file.
  const std::string source = want.url.starts_with("file:") ? "copy:" + want.url.substr(5) : want.url;
  Command apt{.argv = {"/usr/lib/apt/apt-helper", "-q", "download-file", source, name,
                       "SHA256:" + want.sha256.substr(7)},
              .deadline = want.deadline};
  const bool is_inside = name[0] != '/';
  if (is_inside) apt.folder = part.folder();
  TRY_(part.remove());
  const auto fetched = run_ok(context.process, apt);
  const auto got = fetched.ok() ? sha256_file(is_inside ? part.own_path() : context.files.real(name))
                                : Result<std::string>(fetched.error());
  if (got.ok() && *got == want.sha256) {
    TRY_(part.set_permissions(want.mode, {}));
    return part.move_to(target);
  }
  TRY_(part.remove());
  if (!got.ok()) return fail(got.error().code, got.error().message).with(want.url);
  return fail(Code::corrupt, fmt::format("{} has digest {}, not {}", want.url, *got, want.sha256));
}

}  // namespace

std::string first_difference(const std::string& have, const std::string& want) {
  const auto before = split_lines(have), after = split_lines(want);
  size_t i = 0;
  while (i < before.size() && i < after.size() && before[i] == after[i]) ++i;
  return fmt::format("line {}: '{}' -> '{}'", i + 1, i < before.size() ? before[i] : "",
                     i < after.size() ? after[i] : "");
}

std::string text_difference(const SecretMask& secrets, unsigned modes, const std::string& have,
                            const std::string& want) {
  if ((modes & 0004) == 0 || secrets.finds_in(have) || secrets.finds_in(want))
    return "content differs (not shown)";
  return first_difference(have, want);
}

unsigned mode_of_new(const SecretMask& secrets, const std::string& text) {
  return secrets.finds_value_in(text) ? 0600 : 0644;
}

bool differs_from(const Files& files, const OwnFile& want) {
  const FileState state = look(files, want.path);
  if (want.text.empty()) return state.exists;
  return !state.regular || state.mode != want.mode || files.read(want.path).value_or("") != want.text;
}

void add_difference(const Files& files, const OwnFile& want, Diff& diff) {
  if (!differs_from(files, want)) return;
  const FileState state = look(files, want.path);
  if (want.text.empty()) return diff.add(want.path + " exists");
  if (!state.exists) return diff.add(want.path + " does not exist");
  if (!state.regular) return diff.add(want.path + " is not a regular file");
  const std::string have = files.read(want.path).value_or("");
  if (have != want.text)
    return diff.add(want.path + " " + text_difference({}, state.mode & want.mode, have, want.text));
  diff.add(want.path + ": " + permission_diff(state, want.mode, -1, -1));
}

Status put(const Files& files, const OwnFile& want) {
  if (!differs_from(files, want)) return Ok{};
  if (look(files, want.path).directory) return fail(Code::conflict, want.path + " is a directory");
  if (want.text.empty()) return files.remove(want.path);
  return files.write(want.path, want.text, want.mode);
}

Result<FileText> text_or_none(const Files& files, const std::string& path) {
  auto found = files.open_text(path);
  if (found.ok() || found.error().code != Code::not_found) return found;
  TRY(const FileState state, files.look(path));
  if (!state.exists) return FileText();
  return fail(Code::conflict, path + " is a symbolic link to a file that does not exist");
}

Status replace_text(const Files& files, const std::string& path, const FileText& had, const std::string& text,
                    unsigned mode) {
  if (had.linked) return fail(Code::conflict, path + " is not a regular file");
  return files.write(path, text, had.state.exists ? had.state.mode : mode, {had.state.uid, had.state.gid});
}

Status check_name(const std::string& name, const char* module) {
  const bool good = !name.empty() && name.size() <= 64 && std::isalnum(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '.' || c == '_' || c == '-';
                    });
  if (good) return Ok{};
  return fail(Code::invalid,
              fmt::format("{}: '{}' is not a valid name (letters, digits, '.', '_', '-')", module, name));
}

bool has_pending_reload(const Files& files, const std::string& what) { return files.exists(kDebts + what); }
Status mark_pending(const Files& files, const std::string& what) { return files.write(kDebts + what, ""); }
Status clear_pending(const Files& files, const std::string& what) { return files.remove(kDebts + what); }

bool is_booted(const Files& files) { return files.is_directory("/run/systemd/system"); }

Status reload_units(StepContext& context) {
  if (!is_booted(context.files)) return Ok{};
  TRY_(run_tool(context, {"systemctl", "daemon-reload"}));
  return Ok{};
}

Status request_reboot(const Files& files, const std::string& who, const std::string& why) {
  if (!is_booted(files)) return Ok{};
  return files.write("/run/muster/reboot/" + who, why + "\n");
}

Result<std::string> digest_of(const std::string& text, const char* key) {
  const std::string hex = lower(text.starts_with("sha256:") ? text.substr(7) : text);
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(Code::invalid, fmt::format("'{}' must be 64 hexadecimal digits", key));
  return "sha256:" + hex;
}

Status check_source_url(const std::string& url, const char* module) {
  for (const char* scheme : {"https://", "http://", "file:/"})
    if (url.starts_with(scheme)) return Ok{};
  return fail(Code::invalid, fmt::format("{}: '{}' is not an https, http or file URL", module, url));
}

Status fetch(StepContext& context, const std::string& url, const std::string& sha256, const std::string& path,
             unsigned mode, DurationMs deadline) {
  const Download want{url, sha256, mode, deadline};
  TRY(const OpenWay target, OpenWay::to(context.files.root(), path, OpenWay::Missing::make));
  say(context, "fetching " + url);
  if (target.others_can_replace())
    return target.in_private_folder(
        "part", [&](const OpenWay& part) { return fetch_to(context, want, part, "part", target); });
  const std::string name = path + ".muster-part";
  TRY(const OpenWay part, OpenWay::to(context.files.root(), name));
  const Status fetched = fetch_to(context, want, part, name, target);
  TRY_(context.files.remove(name + ".FAILED"));  // apt keeps a download whose digest is wrong
  return fetched;
}

}  // namespace muster::steps
