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

// json: byte for byte as signed, if the report was signed.
Result<std::string> report_in(ReportForm form, RunArchive& archive, const KnownOfRun& run);

// File name -> content.
Result<std::map<std::string, std::string>> report_folder(RunArchive& archive, const KnownOfRun& run);

}  // namespace muster
