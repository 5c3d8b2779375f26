// archive: a folder with exactly the content of a tar archive.
//
// The archive is unpacked next to its destination, with a stamp file that contains its digest, and moved
// there as a whole: a crash leaves the old folder or the new one. The archive may be deleted afterwards; the
// check only reads the stamp.
#include <filesystem>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kStamp = "/.muster-archive";

struct WantedArchive {
  std::string source, sha256, into;
  int64_t strip = 0;
};
MUSTER_PARAMETERS(WantedArchive, required(source, "path of the archive on the node (see `download`)"),
                  required(sha256, "digest of the archive, 64 hexadecimal digits"),
                  required(into, "absolute path of the destination folder"),
                  optional(strip, "number of leading path components to drop"))

Status complete_archive(const StepContext&, WantedArchive& want) {
  for (const auto* path : {&want.source, &want.into})
    if (path->size() < 2 || (*path)[0] != '/' || path->back() == '/')
      return fail(Code::invalid, "archive: 'source' and 'into' must be absolute paths");
  if (want.into.find('/', 1) == std::string::npos)
    return fail(Code::invalid,
                "archive: 'into' must not be a top-level folder: the whole folder is replaced");
  if (want.strip < 0) return fail(Code::invalid, "archive: 'strip' must not be negative");
  TRY(want.sha256, digest_of(want.sha256, "sha256"));
  return Ok{};
}

std::string stamp_text(const WantedArchive& want) {
  return fmt::format("{} strip {}\n", want.sha256, want.strip);
}

Result<CheckResult> check_archive(StepContext& context, const WantedArchive& want) {
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

Status apply_archive(StepContext& context, const WantedArchive& want) {
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
  return step_module<WantedArchive>({
      .name = "archive",
      .help = "Unpacks a tar archive (any compression that tar supports) into its own folder. A different "
              "version replaces the whole folder; a folder with other files is not replaced.",
      .check = check_archive,
      .apply = apply_archive,
      .complete = complete_archive,
  });
}

}  // namespace muster::steps
