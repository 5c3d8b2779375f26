// download: downloads a file from a URL and accepts it only with the correct digest.
#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

struct WantedDownload {
  std::string url, path, sha256;
  unsigned mode = 0644;
};

Result<WantedDownload> wanted_download(const Json& params) {
  WantedDownload out{text_of(params, "url"), text_of(params, "path"), "", 0644};
  if (out.path.empty() || out.path[0] != '/') return fail(Code::invalid, "download: 'path' must be absolute");
  const auto has_scheme = [&](const char* scheme) { return out.url.starts_with(scheme); };
  if (!has_scheme("https://") && !has_scheme("http://") && !has_scheme("file:/"))
    return fail(Code::invalid, "download: '" + out.url + "' is not an https, http or file URL");
  TRY(out.sha256, digest_of(params, "sha256"));
  TRY(out.mode, parse_mode(text_of(params, "mode", "0644")));
  return out;
}

Result<CheckResult> check_download(StepContext& context, const Json& params) {
  TRY(const WantedDownload want, wanted_download(params));
  const FileState state = look(context.files, want.path);
  if (!state.exists) return differs(want.path + " does not exist");
  if (!state.regular) return differs(want.path + " is not a regular file");
  TRY(const std::string have, sha256_file(context.files.real(want.path)));
  Diff diff;
  if (have != want.sha256) diff.add(fmt::format("{}: {} -> {}", want.path, have, want.sha256));
  if (const auto text = permission_diff(state, want.mode, -1, -1); !text.empty())
    diff.add(want.path + ": " + text);
  return diff.result();
}

Status apply_download(StepContext& context, const Json& params) {
  TRY(const WantedDownload want, wanted_download(params));
  const FileState state = look(context.files, want.path);
  if (state.exists && !state.regular) return fail(Code::conflict, want.path + " is not a regular file");
  if (state.regular && sha256_file(context.files.real(want.path)).value_or("") == want.sha256)
    return set_permissions(context.files, want.path, want.mode, -1, -1);
  return fetch(context, want.url, want.sha256, want.path, want.mode,
               int_of(params, "deadline_seconds", 1800) * kSecond);
}

}  // namespace

StepModule download_module() {
  StepModule m;
  m.name = "download";
  m.help =
      "Downloads one file with a known SHA-256. apt's downloader (with apt's proxies and trust) fetches it "
      "to a temporary file, which is moved to `path` once the digest is verified; a wrong or partial file "
      "never appears at `path`.";
  m.parameters =
      Json::array({parameter("url", "string", true, "https, http or file URL"),
                   parameter("path", "string", true, "absolute path of the destination"),
                   parameter("sha256", "string", true, "digest of the file, 64 hexadecimal digits"),
                   parameter("mode", "string", false, "octal mode of the file", "0644"),
                   parameter("deadline_seconds", "int", false, "timeout for the download", 1800)});
  m.check = check_download;
  m.apply = apply_download;
  return m;
}

}  // namespace muster::steps
