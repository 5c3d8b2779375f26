// archive: a folder with exactly the content of a tar archive.
//
// The archive is unpacked in a private folder next to its destination, with a stamp file that contains its
// digest, and moved there as a whole: a crash leaves the old folder or the new one, or none, and the next
// attempt removes the rest. It is opened once: what is unpacked has that digest, whatever has the archive's
// name by then. The archive may be deleted afterwards; the check only reads the stamp.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"
#include "sys/open_names.h"
#include "sys/open_way.h"

namespace muster::steps {
namespace {

constexpr const char* kStamp = ".muster-archive";

struct WantedArchive {
  std::string source, sha256, into;
  int64_t strip = 0;
};
MUSTER_PARAMETERS(WantedArchive,
                  required(source,
                           "path of the archive on the node (see `download`); only root may write to it"),
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

std::string stamp_in(const StepContext& context, const WantedArchive& want) {
  return context.files.open_text(want.into + "/" + kStamp).value_or({}).text;
}

Result<CheckResult> check_archive(StepContext& context, const WantedArchive& want) {
  TRY(const FileState state, context.files.look(want.into));
  if (!state.exists) return differs(want.into + " does not exist");
  if (!state.directory) return differs(want.into + " is not a folder");
  const std::string have = stamp_in(context, want);
  if (have.empty()) return differs(want.into + " was not created by this step");
  return have == stamp_text(want)
             ? holds()
             : differs(want.into + " contains a different archive: " + have.substr(0, 71));
}

// Into `place`, in a folder that only root can enter.
Status unpack(StepContext& context, const WantedArchive& want, const OpenFd& source, const OpenWay& place) {
  TRY(const OpenWay inside, place.make_open(0755));
  // "-" would do for a compressed archive only if its compression were named.
  const auto unpacked =
      run_ok(context.process, {.argv = {"tar", "--extract", "--file", "/proc/self/fd/0", "--directory", ".",
                                        "--no-same-owner", fmt::format("--strip-components={}", want.strip)},
                               .deadline = 30 * kMinute,
                               .folder = inside.folder(),
                               .input_file = source.get()});
  if (!unpacked.ok()) return Error(unpacked.error()).with(want.source);
  if (!has_names(inside.folder()))
    return fail(Code::failed, want.source + " is empty after dropping 'strip' path components");
  TRY(const OpenWay stamp, inside.sibling(kStamp));
  return stamp.write([&](int fd) { return write_bytes(fd, stamp_text(want), want.into); }, 0644);
}

Status apply_archive(StepContext& context, const WantedArchive& want) {
  TRY(const FileState state, context.files.look(want.into));
  if (state.exists && stamp_in(context, want) == stamp_text(want)) return Ok{};
  const bool ours = context.files.exists(want.into + "/" + kStamp);
  if (state.exists && !ours && !(state.directory && context.files.list(want.into).empty()))
    return fail(Code::conflict, want.into + " contains files that this step did not put there");
  TRY(const OpenWay way, OpenWay::through(context.files.root(), want.source));
  TRY(const OpenFd source, way.open_file(OpenWay::Writers::ours));
  TRY(const std::string have, sha256_open(source.get(), want.source));
  if (have != want.sha256)
    return fail(Code::corrupt, fmt::format("{} has digest {}, not {}", want.source, have, want.sha256));
  TRY(const OpenWay target, OpenWay::to(context.files.root(), want.into, OpenWay::Missing::make));
  return target.in_private_folder("new", [&](const OpenWay& fresh) -> Status {
    TRY_(unpack(context, want, source, fresh));
    TRY(const OpenWay old, fresh.sibling("old"));
    if (state.exists) TRY_(target.move_to(old));
    const Status moved = fresh.move_to(target);
    if (!moved.ok() && state.exists) (void)old.move_to(target);
    return moved;
  });
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
