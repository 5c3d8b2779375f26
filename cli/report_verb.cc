// muster report: prints or writes the report of a run, prints its key, and verifies a signed report.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/time.h"
#include "cli/carry_out.h"
#include "cli/local_time.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/verify_report.h"
#include "controller/report/signature.h"
#include "sys/clock.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

struct ReportFlags {
  std::string dir, format = "text", file, key, since;
  int64_t run = 0;
  ExpectedReport expected;
};

void show_report(Context& context, const ReportFlags& flags) {
  if (!flags.dir.empty()) {
    const auto folder = write_report(context, flags.run, flags.dir);
    if (!folder.ok()) return complain(context, folder.error());
    return show(context, {{"report", *folder}}, [&] { fmt::print("{}/report.html\n", *folder); });
  }
  const std::string format = context.json ? "json" : flags.format;
  const auto text = Api(context).text(fmt::format("/v1/report?run={}&format={}", flags.run, format));
  if (!text.ok()) return complain(context, text.error());
  fmt::print("{}", *text);
}

void show_key(Context& context) {
  const auto pem = Api(context).text("/v1/report/key");
  if (!pem.ok()) return complain(context, pem.error());
  const auto line = key_line(*pem);
  if (!line.ok()) return complain(context, line.error());
  show(context, {{"pem", *pem}, {"fingerprint", key_fingerprint(*line)}}, [&] { fmt::print("{}", *pem); });
}

// Reads the key to trust: from a file, else from the controller.
Result<std::string> trusted_key(const Context& context, const std::string& file) {
  if (file.empty()) {
    const auto pem = Api(context).text("/v1/report/key");
    if (!pem.ok())
      return fail(Code::invalid,
                  "no key to verify with: pass --key FILE (`muster report key` prints the key), or run this "
                  "command where the controller is reachable");
    return key_line(*pem);
  }
  TRY(const auto pem, Files().read(file));
  return key_line(pem);
}

struct Outcome {
  const char* word;
  int exit;
};
Outcome outcome_of(Verified::Verdict verdict) {
  switch (verdict) {
    case Verified::Verdict::valid:
      return {"valid", kAccepted};
    case Verified::Verdict::other_key:
      return {"other-key", kOtherKey};
    case Verified::Verdict::other_report:
      return {"other-report", kRefused};
    case Verified::Verdict::changed:
      break;
  }
  return {"changed", kFailed};
}

std::string identity_line(const ReportIdentity& is, DurationMs age) {
  return fmt::format("cluster {}, run {} ({}), ended {}, {} ago", clean(is.cluster), is.run, clean(is.kind),
                     local_time(is.ended), to_human(std::max<DurationMs>(age, 0)));
}

Json verdict_json(const Verified& found, const Outcome& outcome, const std::string& trusted, DurationMs age) {
  Json out = {{"verdict", outcome.word},
              {"reason", found.words},
              {"digest", found.report.digest},
              {"trusted_key", key_fingerprint(trusted)},
              {"exit", outcome.exit}};
  if (found.verdict == Verified::Verdict::changed) return out;  // whatever it says of itself
  const ReportIdentity& is = found.identity;
  out.update({{"cluster", is.cluster},
              {"run", is.run},
              {"kind", is.kind},
              {"started_ms", is.started},
              {"ended_ms", is.ended},
              {"age_ms", age}});
  return out;
}

// `now`: of this machine, by which ages are counted.
void verify_report(Context& context, const ReportFlags& flags, TimeMs now) {
  ExpectedReport expected = flags.expected;
  if (!flags.since.empty()) {
    const auto since = parse_since(flags.since, now);
    if (!since.ok()) return complain(context, since.error());
    expected.since = *since;
  }
  const auto text = Files().read(std::filesystem::absolute(flags.file).string());
  if (!text.ok()) return complain(context, fail(Code::invalid, text.error().message));
  const auto trusted =
      trusted_key(context, flags.key.empty() ? "" : std::filesystem::absolute(flags.key).string());
  if (!trusted.ok()) return complain(context, fail(Code::invalid, trusted.error().message));
  const Verified found = verify_report_text(*text, *trusted, expected);
  const Outcome outcome = outcome_of(found.verdict);
  context.exit = outcome.exit;
  const DurationMs age = now - found.identity.ended;
  show(context, verdict_json(found, outcome, *trusted, age), [&] {
    if (outcome.exit == kAccepted)
      fmt::print("valid: {}, signed by {}\n", found.report.digest, key_fingerprint(*trusted));
    else
      fmt::print("{}: {}\n", outcome.word, clean(found.words));
    if (found.verdict != Verified::Verdict::changed) fmt::print("{}\n", identity_line(found.identity, age));
  });
}

}  // namespace

void add_report(Verb& app, Context& context) {
  auto flags = std::make_shared<ReportFlags>();
  Verb& verb = app.add_verb("report", "show or write the acceptance report of a run");
  verb.add_option("--run", &flags->run, "number of the run; default: the newest");
  verb.add_option("--format", &flags->format,
                  "text, html, json (signed), junit, flat (one line of JSON per node)")
      .one_of({"text", "html", "json", "junit", "flat"})
      .shows_default();
  verb.add_option("--dir", &flags->dir,
                  "write report.html, report.json, junit.xml and nodes.jsonl into this folder");
  verb.example("muster report").example("muster report --run 3 --format html > acceptance.html");
  verb.example("muster report verify report.json --key report.pub");
  verb.runs([flags, &context] { show_report(context, *flags); });
  verb.add_verb("key", "print the public key that reports are signed with")
      .example("muster report key > report.pub")
      .runs([&context] { show_key(context); });
  add_report_import(verb, context);
  Verb& verify = verb.add_verb(
      "verify", "check that a report file is unchanged since it was signed, and show which report it is");
  verify.add_option("FILE", &flags->file, "report.json").required();
  verify.add_option("--key", &flags->key, "public key to trust; default: the controller's");
  verify.add_option("--cluster", &flags->expected.cluster, "expect the report of this cluster");
  verify.add_option("--run", &flags->expected.run, "expect the report of this run");
  verify.add_option("--since", &flags->since,
                    "expect a run that ended since then: '26 h', 22:00, 2026-12-24");
  verify.footer(
      "Exit codes: 0 valid, 1 changed (or not signed), 2 no file or no key, 4 valid, but of another cluster, "
      "run or time than expected, 6 signed by another key");
  verify.example("muster report verify report.json --key report.pub --cluster gaggle --since '26 h'");
  verify.runs([flags, &context] { verify_report(context, *flags, wall_clock()); });
}

}  // namespace muster::cli
