// The signature of a report: every byte counts, and a foreign key is distinguished from a change.
#include "controller/report/signature.h"

#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "cli/run.h"
#include "cli/verify_report.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using Verdict_ = cli::Verified::Verdict;

namespace {

struct Signer {
  pki::KeyPair pair = pki::make_signing_key().value();
  std::string line = key_line(pair.certificate_pem).value();
  std::string sign(const std::string& body) const {
    return sign_block(body, line, pki::sign(pair.key_pem, body).value());
  }
};

// Small, so that every byte of it can be changed.
std::string small_body() {
  Report r;
  r.cluster = "gaggle";
  r.run = 3;
  r.nodes.push_back({});
  r.nodes[0].name = "gpu01";
  return to_json_text(r);
}

}  // namespace

TEST_CASE("a signed report is valid under its key, and the report in it can be read") {
  const Signer signer;
  const std::string body = to_json_text(report_sample::full()), text = signer.sign(body);
  const auto found = cli::verify_report_text(text, signer.line);
  CHECK(found.verdict == Verdict_::valid);
  CHECK(found.report.body == body);
  CHECK(found.report.digest == sha256(body));
  const auto json = parse_json(text);
  REQUIRE(json.ok());
  const auto report = report_from_json(*json);
  REQUIRE(report.ok());
  CHECK(to_json_text(*report) == body);
}

TEST_CASE("any changed byte of a signed report is caught") {
  const Signer signer;
  const std::string text = signer.sign(small_body());
  REQUIRE(cli::verify_report_text(text, signer.line).verdict == Verdict_::valid);
  size_t missed = 0;
  for (size_t at = 0; at < text.size(); ++at)
    for (const int bits : {0x01, 0x20}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      missed += cli::verify_report_text(changed, signer.line).verdict == Verdict_::valid;
    }
  CHECK(missed == 0);
  // Nothing may be added, taken away or moved either.
  for (const std::string& changed :
       {text + "\n", text + " ", text.substr(0, text.size() - 1), " " + text, std::string()})
    CHECK(cli::verify_report_text(changed, signer.line).verdict == Verdict_::changed);
  CHECK(cli::verify_report_text(small_body(), signer.line).verdict == Verdict_::changed);
}

TEST_CASE("a report signed by another key is distinguished from a changed one") {
  const Signer signer, other;
  const std::string text = other.sign(small_body());
  CHECK(cli::verify_report_text(text, signer.line).verdict == Verdict_::other_key);
  CHECK(cli::verify_report_text(text, signer.line).words.find(key_fingerprint(other.line)) !=
        std::string::npos);
  // The trusted key's name over another key's signature is a forgery, not another key.
  std::string forged = text;
  forged.replace(forged.find(other.line), other.line.size(), signer.line);
  CHECK(cli::verify_report_text(forged, signer.line).verdict == Verdict_::changed);
}

TEST_CASE("a genuine report is valid only as the one that is expected") {
  const Signer signer;
  Report report;
  report.cluster = "gaggle";
  report.kind = "accept";
  report.run = 3;
  report.started = 1'700'000'000'000;
  report.ended = report.started + kMinute;
  const std::string text = signer.sign(to_json_text(report));
  const auto verdict = [&](const cli::ExpectedReport& expected) {
    return cli::verify_report_text(text, signer.line, expected).verdict;
  };
  CHECK(verdict({}) == Verdict_::valid);
  CHECK(verdict({"gaggle", 3, report.ended}) == Verdict_::valid);
  CHECK(verdict({"flock", 0, 0}) == Verdict_::other_report);
  CHECK(verdict({"", 4, 0}) == Verdict_::other_report);
  CHECK(verdict({"", 0, report.ended + 1}) == Verdict_::other_report);
  const auto found = cli::verify_report_text(text, signer.line, {"flock", 0, 0});
  CHECK(found.identity.cluster == "gaggle");
  CHECK(found.identity.run == 3);
  CHECK(found.identity.ended == report.ended);
  // A key that is not trusted is the graver finding.
  CHECK(cli::verify_report_text(text, Signer().line, {"flock", 0, 0}).verdict == Verdict_::other_key);
  // What was changed says nothing about itself.
  std::string changed = text;
  changed[changed.find("gaggle")] = 'G';
  CHECK(cli::verify_report_text(changed, signer.line).identity.cluster.empty());
}

TEST_CASE("keys have one line, and only Ed25519 ones are taken") {
  const Signer signer;
  CHECK(key_pem(signer.line).value() == signer.pair.certificate_pem);
  CHECK(key_fingerprint(signer.line).starts_with("sha256:"));
  CHECK_FALSE(key_line("").ok());
  CHECK_FALSE(key_line(signer.pair.key_pem).ok());
  CHECK_FALSE(key_pem(signer.line + "=").ok());
  CHECK_FALSE(key_pem("AAAA" + signer.line.substr(4)).ok());
}

TEST_CASE("muster report verify has an exit code for each answer") {
  const Signer signer, other;
  const TempDir dir;
  const auto file = [&](const char* name, const std::string& text) {
    const std::string path = dir.path(name);
    std::ofstream(path) << text;
    return path;
  };
  const std::string key = file("report.pub", signer.pair.certificate_pem);
  const auto verify = [&](const std::string& path, const std::string& trusted) {
    const char* argv[] = {"muster", "report", "verify", path.c_str(), "--key", trusted.c_str()};
    return cli::run(6, argv);
  };
  const std::string text = signer.sign(small_body());
  CHECK(verify(file("good.json", text), key) == 0);
  std::string changed = text;
  changed[changed.find("gaggle")] = 'G';
  CHECK(verify(file("changed.json", changed), key) == 1);
  CHECK(verify(file("other.json", other.sign(small_body())), key) == 6);
  CHECK(verify(dir.path("missing.json"), key) == 2);
  const auto expecting = [&](const std::string& option, const std::string& value) {
    const std::string path = dir.path("good.json");
    const char* argv[] = {"muster", "report",    "verify",       path.c_str(),
                          "--key",  key.c_str(), option.c_str(), value.c_str()};
    return cli::run(8, argv);
  };
  CHECK(expecting("--cluster", "gaggle") == 0);
  CHECK(expecting("--cluster", "flock") == 4);
  CHECK(expecting("--run", "3") == 0);
  CHECK(expecting("--run", "2") == 4);
  CHECK(expecting("--since", "2 h") == 4);  // its run ended in 1970
  CHECK(expecting("--since", "soon") == 2);
  CHECK(verify(file("good.json", text), file("no.pub", "not a key")) == 2);
}
