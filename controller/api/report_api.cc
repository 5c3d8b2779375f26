// The report of a run, in the reader's form, and the key it is signed with.
#include <set>

#include "controller/api/from_archive.h"
#include "controller/api/handlers.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/conclude.h"
#include "controller/services.h"
#include "controller/trust/authority.h"

namespace muster::api {

namespace {

const std::set<std::string> kFormats = {"html", "json", "junit", "text", "flat"};

HttpResponse answer_of(std::string body, const char* type) {
  HttpResponse response = HttpResponse::text(200, std::move(body));
  response.headers["Content-Type"] = type;
  return response;
}

Result<HttpResponse> render(RunArchive& archive, const KnownOfRun& run, const std::string& format) {
  // Byte for byte as it was signed.
  if (format == "json")
    if (auto text = signed_report(archive, run.row.id); text.ok())
      return answer_of(std::move(text).value(), "application/json");
  TRY(const auto report, report_of(archive, run));
  if (format == "html") return answer_of(render_html(report), "text/html; charset=utf-8");
  if (format == "junit") return answer_of(render_junit(report), "application/xml");
  if (format == "text") return HttpResponse::text(200, render_text(report));
  if (format == "flat") return answer_of(render_flat(report), "application/jsonl");
  return answer_of(to_json_text(report), "application/json");
}

}  // namespace

void get_report(const CallPtr& call) {
  const std::string format = call->query("format", "json");
  if (!kFormats.count(format))
    return call->error(fail(Code::invalid, "format is one of html, json, junit, text, flat"));
  const auto row = call->services.store.run(std::strtoll(call->query("run", "0").c_str(), nullptr, 10));
  if (!row.ok()) return call->error(row.error());
  call->services.archive.answer(call, [run = known_of(call->services.bringup.executor(), *row),
                                       format](RunArchive& archive) { return render(archive, run, format); });
}

void get_report_key(const CallPtr& call) {
  call->text(200, call->services.authority.report_key().certificate_pem, "application/x-pem-file");
}

}  // namespace muster::api
