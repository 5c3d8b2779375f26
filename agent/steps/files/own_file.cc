#include "agent/steps/files/own_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "base/digest.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

constexpr const char* kDebts = "/run/muster/owed/";

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
  return secrets.finds_in(text) ? 0600 : 0644;
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
  TRY_(files.write(want.path, want.text, want.mode));
  return set_permissions(files, want.path, want.mode, -1, -1);
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
  // For a file: URL, apt would only make a symbolic link to the local file.
  const std::string source = url.starts_with("file:") ? "copy:" + url.substr(5) : url;
  const std::string part = path + ".muster-part";
  TRY_(context.files.make_directories(path.substr(0, std::max<size_t>(path.rfind('/'), 1))));
  TRY_(context.files.remove(part));
  say(context, "fetching " + url);
  auto fetched = run_tool(
      context, {"/usr/lib/apt/apt-helper", "-q", "download-file", source, part, "SHA256:" + sha256.substr(7)},
      deadline);
  const std::string real = context.files.real(part);
  const auto got = fetched.ok() ? sha256_file(real) : Result<std::string>(fetched.error());
  TRY_(context.files.remove(part + ".FAILED"));  // apt keeps a download whose digest is wrong
  if (!got.ok() || *got != sha256) {
    TRY_(context.files.remove(part));
    if (!got.ok()) return fail(got.error().code, got.error().message).with(url);
    return fail(Code::corrupt, fmt::format("{} has digest {}, not {}", url, *got, sha256));
  }
  TRY_(set_permissions(context.files, part, mode, -1, -1));
  std::error_code error;
  std::filesystem::rename(real, context.files.real(path), error);
  if (error) return fail(Code::failed, path + ": " + error.message());
  return Ok{};
}

}  // namespace muster::steps
