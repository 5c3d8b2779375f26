// download: downloads a file from a URL and accepts it only with the correct digest.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"
#include "sys/open_way.h"

namespace muster::steps {
namespace {

struct WantedDownload {
  std::string url, path, sha256, mode = "0644";
  int64_t deadline_seconds = 1800;
  unsigned mode_bits = 0;
};
MUSTER_PARAMETERS(WantedDownload, required(url, "https, http or file URL"),
                  required(path, "absolute path of the destination"),
                  required(sha256, "digest of the file, 64 hexadecimal digits"),
                  optional(mode, "octal mode of the file"),
                  optional(deadline_seconds, "timeout for the download"))

Status complete_download(const StepContext&, WantedDownload& want) {
  if (want.path.empty() || want.path[0] != '/')
    return fail(Code::invalid, "download: 'path' must be absolute");
  TRY_(check_source_url(want.url, "download"));
  TRY(want.sha256, digest_of(want.sha256, "sha256"));
  TRY(want.mode_bits, parse_mode(want.mode));
  return Ok{};
}

// Of one open, since in a folder of a user something else may lie there at the next look.
Result<std::string> digest_at(const Files& files, const std::string& path) {
  TRY(const OpenWay way, OpenWay::to(files.root(), path));
  TRY(const OpenFd file, way.open_file(OpenWay::Writers::any));
  return sha256_open(file.get(), path);
}

Result<CheckResult> check_download(StepContext& context, const WantedDownload& want) {
  const FileState state = look(context.files, want.path);
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.regular) return differs(want.path + " is not a regular file");
  TRY(const std::string have, digest_at(context.files, want.path));
  Diff diff;
  if (have != want.sha256) diff.add(fmt::format("{}: {} -> {}", want.path, have, want.sha256));
  if (const auto text = permission_diff(state, want.mode_bits, -1, -1); !text.empty())
    diff.add(want.path + ": " + text);
  return diff.result();
}

Status apply_download(StepContext& context, const WantedDownload& want) {
  const FileState state = look(context.files, want.path);
  if (state.exists && !state.regular) return fail(Code::conflict, want.path + " is not a regular file");
  if (state.regular && digest_at(context.files, want.path).value_or("") == want.sha256)
    return context.files.set_permissions(want.path, want.mode_bits);
  return fetch(context, want.url, want.sha256, want.path, want.mode_bits, want.deadline_seconds * kSecond);
}

}  // namespace

StepModule download_module() {
  return step_module<WantedDownload>({
      .name = "download",
      .help =
          "Downloads one file with a known SHA-256. apt's downloader (with apt's proxies and trust) fetches "
          "it to a temporary file, which is moved to `path` once the digest is verified; a wrong or partial "
          "file never appears at `path`.",
      .check = check_download,
      .apply = apply_download,
      .complete = complete_download,
  });
}

}  // namespace muster::steps
