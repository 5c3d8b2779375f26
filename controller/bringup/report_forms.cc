#include "controller/bringup/report_forms.h"

#include <utility>

#include "base/words.h"
#include "controller/report/report.h"

namespace muster {
namespace {

constexpr Words<ReportForm, 5> kForms = {{{ReportForm::html, "html"},
                                          {ReportForm::json, "json"},
                                          {ReportForm::junit, "junit"},
                                          {ReportForm::text, "text"},
                                          {ReportForm::flat, "flat"}}};

std::string rendered(ReportForm form, const Report& report) {
  switch (form) {
    case ReportForm::html:
      return render_html(report);
    case ReportForm::junit:
      return render_junit(report);
    case ReportForm::text:
      return render_text(report);
    case ReportForm::flat:
      return render_flat(report);
    case ReportForm::json:
      break;
  }
  return to_json_text(report);
}

}  // namespace

std::optional<ReportForm> report_form(std::string_view word) { return value_of(kForms, word); }

Result<std::string> report_in(ReportForm form, RunArchive& archive, const KnownOfRun& run) {
  if (form == ReportForm::json)
    if (auto text = signed_report(archive, run.row.id); text.ok()) return text;
  TRY(const auto report, report_of(archive, run));
  return rendered(form, report);
}

Result<std::map<std::string, std::string>> report_folder(RunArchive& archive, const KnownOfRun& run) {
  TRY(const auto report, report_of(archive, run));
  std::map<std::string, std::string> out = {{"report.html", rendered(ReportForm::html, report)},
                                            {"junit.xml", rendered(ReportForm::junit, report)},
                                            {"nodes.jsonl", rendered(ReportForm::flat, report)}};
  auto signed_text = signed_report(archive, run.row.id);
  out["report.json"] = signed_text.ok() ? std::move(signed_text).value() : rendered(ReportForm::json, report);
  return out;
}

}  // namespace muster
