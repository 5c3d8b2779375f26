// archive: a folder with exactly the content of a tar archive.
//
// The archive is unpacked next to its destination, with a stamp file that contains its digest, and moved
// there as a whole: a crash leaves the old folder or the new one. The archive may be deleted afterwards; the
// check only reads the stamp.
#include <filesystem>

#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kStamp = "/.muster-archive";

struct WantedArchive {
  std::string source, into, sha256;
  int64_t strip = 0;
};

Result<WantedArchive> wanted_archive(const Json& params) {
  WantedArchive out{text_of(params, "source"), text_of(params, "into"), "", int_of(params, "strip", 0)};
  for (const auto* path : {&out.source, &out.into})
    if (path->size() < 2 || (*path)[0] != '/' || path->back() == '/')
      return fail(Code::invalid, "archive: 'source' and 'into' must be absolute paths");
  if (out.into.find('/', 1) == std::string::npos)
    return fail(Code::invalid,
                "archive: 'into' must not be a top-level folder: the whole folder is replaced");
  if (out.strip < 0) return fail(Code::invalid, "archive: 'strip' must not be negative");
  TRY(out.sha256, digest_of(params, "sha256"));
  return out;
}

std::string stamp_text(const WantedArchive& want) {
  return fmt::format("{} strip {}\n", want.sha256, want.strip);
}

Result<CheckResult> check_archive(StepContext& context, const Json& params) {
  TRY(const WantedArchive want, wanted_archive(params));
  const FileState state = look(context.files, want.into);
  if (!state.exists) return differs(want.into + " does not exist");
  if (!state.directory) return differs(want.into + " is not a folder");
  const std::string have = context.files.read(want.into + kStamp).value_or("");
  if (have.empty()) return differs(want.into + " was not created by this step");
  return have == stamp_text(want)
             ? holds()
             : differs(want.into + " contains a different archive: " + have.substr(0, 71));
}

Status unpack(StepContext& context, const WantedArchive& want, const std::string& place) {
  std::error_code error;
  std::filesystem::remove_all(context.files.real(place), error);
  TRY_(context.files.make_directories(place));
  TRY(auto out, run_tool(context,
                         {"tar", "--extract", "--file", want.source, "--directory", place, "--no-same-owner",
                          fmt::format("--strip-components={}", want.strip)},
                         30 * kMinute));
  (void)out;
  if (context.files.list(place).empty())
    return fail(Code::failed, want.source + " is empty after dropping 'strip' path components");
  return context.files.write(place + kStamp, stamp_text(want));
}

Status apply_archive(StepContext& context, const Json& params) {
  TRY(const WantedArchive want, wanted_archive(params));
  const FileState state = look(context.files, want.into);
  if (state.exists && context.files.read(want.into + kStamp).value_or("") == stamp_text(want)) return Ok{};
  const bool ours = context.files.exists(want.into + kStamp);
  if (state.exists && !ours && !(state.directory && context.files.list(want.into).empty()))
    return fail(Code::conflict, want.into + " contains files that this step did not put there");
  TRY(const std::string have, sha256_file(context.files.real(want.source)));
  if (have != want.sha256)
    return fail(Code::corrupt, fmt::format("{} has digest {}, not {}", want.source, have, want.sha256));
  const std::string fresh = want.into + ".muster-new", old = want.into + ".muster-old";
  TRY_(unpack(context, want, fresh));
  namespace fs = std::filesystem;
  std::error_code error;
  fs::remove_all(context.files.real(old), error);
  if (state.exists) fs::rename(context.files.real(want.into), context.files.real(old), error);
  if (!error) fs::rename(context.files.real(fresh), context.files.real(want.into), error);
  if (error) return fail(Code::failed, want.into + ": " + error.message());
  fs::remove_all(context.files.real(old), error);
  return Ok{};
}

}  // namespace

StepModule archive_module() {
  StepModule m;
  m.name = "archive";
  m.help =
      "Unpacks a tar archive (any compression that tar supports) into its own folder. A different version "
      "replaces the whole folder; a folder with other files is not replaced.";
  m.parameters =
      Json::array({parameter("source", "string", true, "path of the archive on the node (see `download`)"),
                   parameter("sha256", "string", true, "digest of the archive, 64 hexadecimal digits"),
                   parameter("into", "string", true, "absolute path of the destination folder"),
                   parameter("strip", "int", false, "number of leading path components to drop", 0)});
  m.check = check_archive;
  m.apply = apply_archive;
  return m;
}

}  // namespace muster::steps
