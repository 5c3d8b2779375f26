// muster doctor: what would stop the first `muster up` of a spec, before any power (docs/doctor.md).
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/json_at.h"
#include "base/plural.h"
#include "base/split.h"
#include "base/wrapped.h"
#include "cli/cli_context.h"
#include "cli/shown_preview.h"
#include "cli/spec_request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

constexpr size_t kDoctorWidth = 80;

void print_indented(const std::string& indent, const std::string& text) {
  for (const std::string& line : split_lines(text))
    for (const std::string& part : wrapped(indent + clean(line), kDoctorWidth)) fmt::print("{}\n", part);
}

std::string sign_of(const std::string& state) {
  if (state == "healthy") return "ok";
  return state == "findings" ? "FOUND" : "NOT LOOKED";
}

void print_examined(const Json& check) {
  constexpr size_t kSignWidth = 11;
  const std::string looked_at = clean_at(check, "looked_at");
  std::string sign = sign_of(text_at(check, "state"));
  const std::string title = clean_at(check, "title") + (looked_at.empty() ? "" : ": " + looked_at);
  for (const std::string& part : wrapped(title, kDoctorWidth - kSignWidth)) {
    fmt::print("{:<{}}{}\n", sign, kSignWidth, part);
    sign.clear();
  }
  for (const Json& finding : list_at(check, "findings")) {
    const std::string at = text_at(finding, "at");
    print_indented("  ", fmt::format("{}{}{} [{}]", at, at.empty() ? "" : ": ", text_at(finding, "what"),
                                     clean_at(check, "code")));
    print_indented("    ", "next: " + text_at(finding, "next"));
  }
  for (const Json& why : list_at(check, "not_looked"))
    if (why.is_string()) print_indented("  ", "not looked at: " + why.get<std::string>());
}

void print_examination(const Json& found) {
  for (const Json& warning : list_at(found, "warnings"))
    print_indented("", "warning: " + warning_line(warning));
  size_t findings = 0, left_out = 0;
  for (const Json& check : list_at(found, "checks")) {
    print_examined(check);
    findings += list_at(check, "findings").size();
    left_out += list_at(check, "not_looked").empty() ? 0 : 1;
  }
  fmt::print("{}{}\n", counted(findings, "finding"),
             left_out == 0 ? "" : fmt::format(", {} of the checks not or not completely made", left_out));
}

Exit exit_for_examination(const Json& found) {
  const std::string state = text_at(found, "state");
  if (state == "healthy") return kAccepted;
  return state == "findings" ? kPartial : kFailed;
}

void examine(Context& context, const std::string& path) {
  std::optional<std::string> spec = "";  // the stored one
  if (!path.empty()) spec = spec_to_send(context, path);
  if (!spec) return;
  if (!context.json) fmt::print(stderr, "looking at BMCs, networks, mirrors and the controller host\n");
  Api api(context);
  const auto found =
      api.post_text("/v1/doctor" + (path.empty() ? "" : "?file=" + url_encode(path)), std::move(*spec));
  if (!found.ok()) return complain_of_spec(context, api, found.error());
  context.exit = exit_for_examination(*found);
  show(context, *found, [&] { print_examination(*found); });
}

}  // namespace

void add_doctor(Verb& app, Context& context) {
  auto path = std::make_shared<std::string>();
  Verb& verb =
      app.add_verb("doctor", "show what would stop a first `muster up`; switches and changes nothing");
  verb.add_option("SPEC", path.get(), "a file, which is not stored; default: the stored spec");
  verb.footer(
      "Looks at BMC logins (one try each), other DHCP servers, package mirrors, disk space, clock, ports, "
      "certificates, the GPU program and packages, for at most 90 seconds. Each finding has the command that "
      "repairs it.\n"
      "Exit: 0 healthy, 3 findings, 1 no findings, but a check could not be made.");
  verb.example("muster doctor cluster.yaml").example("muster doctor --json");
  verb.runs([path, &context] { examine(context, *path); });
}

}  // namespace muster::cli
