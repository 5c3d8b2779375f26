// line: sets or removes one line of a text file, found by its beginning; the rest of the file stays.
#include "agent/core/parameters.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedLine {
  std::string path, line, prefix, ensure = "present";
  bool absent = false;
};
MUSTER_PARAMETERS(WantedLine, required(path, "absolute path"), optional(line, "the whole line", kMayBeSecret),
                  optional(prefix, "beginning of the lines to replace or remove"),
                  optional(ensure, "present | absent"))

Status complete_line(const StepContext&, WantedLine& want) {
  want.absent = want.ensure == "absent";
  if (!want.path.starts_with('/')) return fail(Code::invalid, "line: 'path' must be absolute");
  if (want.line.empty() && want.prefix.empty())
    return fail(Code::invalid, "line: 'line' or 'prefix' is required");
  if (has(want.line, "\n")) return fail(Code::invalid, "line: 'line' must be a single line");
  if (!want.absent && want.line.empty()) return fail(Code::invalid, "line: 'line' is required");
  if (!want.line.empty() && !want.line.starts_with(want.prefix))
    return fail(Code::invalid, "line: 'line' does not begin with 'prefix', so every run would add it again");
  return Ok{};
}

bool matches(const WantedLine& want, const std::string& line) {
  return want.prefix.empty() ? line == want.line : line.starts_with(want.prefix);
}

// Returns the wanted text of the file. The first match is replaced in place, further ones are removed.
std::string edited(const WantedLine& want, const std::string& text) {
  std::string out;
  bool placed = want.absent;
  for (const auto& line : split_lines(text)) {
    if (!matches(want, line)) {
      out += line + "\n";
    } else if (!placed) {
      out += want.line + "\n";
      placed = true;
    }
  }
  if (!placed) out += want.line + "\n";
  return out;
}

Result<CheckResult> check_line(StepContext& context, const WantedLine& want) {
  TRY(const FileText have, text_or_none(context.files, want.path));
  if (want.absent && have.text.empty()) return holds();
  if (edited(want, have.text) == have.text) return holds();
  return differs(want.path + (want.absent
                                  ? ": remove '" + (want.prefix.empty() ? want.line : want.prefix) + "'"
                                  : ": '" + want.line + "' is missing"));
}

Status apply_line(StepContext& context, const WantedLine& want) {
  TRY(const FileText have, text_or_none(context.files, want.path));
  const std::string text = edited(want, have.text);
  if (text == have.text) return Ok{};
  return replace_text(context.files, want.path, have, text, mode_of_new(context.secrets, text));
}

}  // namespace

StepModule line_module() {
  return step_module<WantedLine>({
      .name = "line",
      .help = "Sets or removes one line of a text file, found by `prefix`, or by the whole line if there is "
              "no `prefix`. Other lines are not changed. Intended for files without a drop-in folder. A new "
              "file with a secret has mode 0600.",
      .check = check_line,
      .apply = apply_line,
      .complete = complete_line,
  });
}

}  // namespace muster::steps
