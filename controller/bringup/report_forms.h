// The report of a run in its output formats. Thread: that of the archive.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "controller/bringup/conclude.h"
#include "controller/ports/store.h"

namespace muster {

enum class ReportForm { html, json, junit, text, flat };
std::optional<ReportForm> report_form(std::string_view word);

// Returns the report in that format; json: byte for byte as signed, if it was signed.
Result<std::string> report_in(ReportForm form, RunArchive& archive, const KnownOfRun& run);

// Returns the files of a report's folder: file name -> content.
Result<std::map<std::string, std::string>> report_folder(RunArchive& archive, const KnownOfRun& run);

}  // namespace muster
