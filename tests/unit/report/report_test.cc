#include "controller/report/report.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "controller/report/markup.h"
#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/unit/report/sample.h"

using namespace muster;

namespace {

// Compares with a file of tests/golden/report; MUSTER_ACCEPT=1 rewrites it instead.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/golden/report/" + name;
  if (::getenv("MUSTER_ACCEPT")) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream golden;
  golden << in.rdbuf();
  INFO("differs from " << path << "; look at the change, then run with MUSTER_ACCEPT=1");
  CHECK((text == golden.str()));
}

// A small strict XML reader: "" when well formed, else what is wrong. Enough for what we write: elements,
// quoted attributes, text.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  size_t i = 0;
  const auto bad = [&](const std::string& what) { return what + " at " + std::to_string(i); };
  const auto check_text = [&](const std::string& piece) {
    for (size_t k = 0; k < piece.size(); ++k) {
      const auto byte = static_cast<unsigned char>(piece[k]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') return false;
      if (piece[k] != '&') continue;
      const std::string entity = piece.substr(k, piece.find(';', k) - k + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" &&
          entity != "&#39;")
        return false;
    }
    return true;
  };
  if (!text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")) return "no XML declaration";
  i = text.find('\n') + 1;
  while (i < text.size()) {
    const size_t tag = text.find('<', i);
    if (!check_text(text.substr(i, tag - i))) return bad("bad text");
    if (tag == std::string::npos) break;
    i = tag + 1;
    const bool closing = text[i] == '/';
    if (closing) ++i;
    size_t end = i;
    while (isalpha(text[end]) || text[end] == '-') ++end;
    const std::string name = text.substr(i, end - i);
    if (name.empty()) return bad("no element name");
    i = end;
    while (text[i] == ' ') {
      const size_t equals = text.find("=\"", i);
      const size_t quote = text.find('"', equals + 2);
      if (equals == std::string::npos || quote == std::string::npos) return bad("bad attribute");
      const std::string value = text.substr(equals + 2, quote - equals - 2);
      if (value.find('<') != std::string::npos || !check_text(value)) return bad("bad attribute value");
      i = quote + 1;
    }
    const bool empty = text[i] == '/';
    if (empty) ++i;
    if (text[i] != '>') return bad("tag does not end");
    ++i;
    if (closing) {
      if (open.empty() || open.back() != name) return bad("</" + name + "> closes nothing");
      open.pop_back();
    } else if (!empty) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

size_t occurrences(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++out;
  return out;
}

// The part of JSON Schema that schema/report.schema.json uses. "" when `value` is valid.
std::string schema_problem(const Json& root, const Json& schema, const Json& value, const std::string& path) {
  if (schema.contains("$ref"))
    return schema_problem(root, root["$defs"][schema["$ref"].get<std::string>().substr(8)], value, path);
  if (schema.contains("const") && value != schema["const"]) return path + ": not the constant";
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return path + ": not in enum";
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    const std::string type = value.is_number_integer() ? "integer" : value.type_name();
    const bool fits = std::any_of(types.begin(), types.end(), [&](const Json& t) {
      return t == type || (t == "number" && value.is_number());
    });
    if (!fits) return path + ": is " + type;
  }
  if (schema.contains("required"))
    for (const auto& key : schema["required"])
      if (!value.contains(key.get<std::string>()))
        return path + ": " + key.get<std::string>() + " is missing";
  if (value.is_object() && schema.value("type", Json()) == "object")
    for (const auto& [key, item] : value.items()) {
      const bool known = schema.contains("properties") && schema["properties"].contains(key);
      if (!known && schema["additionalProperties"] == false) return path + "." + key + ": unknown";
      const auto problem = schema_problem(
          root, known ? schema["properties"][key] : schema["additionalProperties"], item, path + "." + key);
      if (!problem.empty()) return problem;
    }
  if (value.is_array() && schema.contains("items"))
    for (const auto& item : value)
      if (const auto problem = schema_problem(root, schema["items"], item, path + "[]"); !problem.empty())
        return problem;
  return "";
}

NodeReport accepted_node(std::vector<Check> checks) {
  NodeReport out;
  out.name = "n1";
  out.verdict = NodeVerdict::accepted;
  out.checks = std::move(checks);
  return out;
}
Check check(Verdict verdict, bool mandatory = true) {
  Check out;
  out.name = "dgemm/gflops";
  out.title = "DGEMM";
  out.verdict = verdict;
  out.mandatory = mandatory;
  return out;
}

const char* const kHostile =
    "<script>alert(1)</script>\" onload='x' & \x1b[2J\xff\xc2\x9b]0;\x01\xe2\x80\xae";

Report hostile_report() {
  Report r = report_sample::full();
  const std::string h = kHostile;
  r.cluster = r.profile = r.approved_by = r.kind = r.version = r.spec_digest = h;
  r.plan_digests = r.notes = {h};
  r.images = {{h, h}};
  NodeReport& n = r.nodes[0];
  n.name = n.role = n.reason = n.vendor = n.product = n.serial = n.uuid = n.image = n.image_digest =
      n.kernel = n.firmware = n.address = n.config_digest = h;
  n.facts = {{h, h}};
  for (auto& d : n.disks) d.group = d.serial = d.wwid = d.model = h;
  for (auto& p : n.phases) p.name = p.outcome = h;
  for (auto& s : n.steps) s.name = s.phase = s.status = s.message = h;
  for (auto& c : n.checks) {
    c.name = c.title = c.subject = c.unit = c.measured_text = c.expected_text = c.derivation = c.reason = h;
    c.because = c.source = h;
    c.faulty_parts = {h};
    c.evidence = {{h, h}};
  }
  for (auto& d : r.destroyed) d.node = d.group = d.serial = d.wwid = d.model = d.content = d.why = h;
  r.links.push_back({h, "node02", 3.0, 1.0, Verdict::pass});
  return r;
}

}  // namespace

TEST_CASE("the report's four forms match their golden files") {
  const Report r = report_sample::full();
  check_golden("lab.json", to_json_text(r));
  check_golden("lab.html", render_html(r));
  check_golden("lab.junit.xml", render_junit(r));
  check_golden("lab.txt", render_text(r));
  check_golden("lab-verbose.txt", render_text(r, true));
}

TEST_CASE("a report survives its JSON") {
  const Report r = report_sample::full();
  const std::string text = to_json_text(r);
  const auto read = report_from_json(parse_json(text).value());
  REQUIRE(read.ok());
  CHECK(to_json_text(*read) == text);
  CHECK(render_html(*read) == render_html(r));

  Json extra = to_json(r);
  extra["surprise"] = 1;
  CHECK_FALSE(report_from_json(extra).ok());
  Json verdict = to_json(r);
  verdict["nodes"][0]["checks"][0]["verdict"] = "fine";
  const auto bad = report_from_json(verdict);
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message.find("report.nodes[0].checks[0].verdict") != std::string::npos);
  Json newer = to_json(r);
  newer["version"] = 99;
  CHECK_FALSE(report_from_json(newer).ok());
}

TEST_CASE("the report follows its published schema") {
  const Json schema = Json::parse(text_of(std::string(source_dir()) + "/schema/report.schema.json"));
  const Json report = to_json(report_sample::full());
  CHECK(schema_problem(schema, schema, report, "report") == "");
  for (const char* pointer :
       {"/cluster", "/nodes/0/checks/0/verdict", "/links/0/mbps", "/destroyed/0/size_bytes"}) {
    CAPTURE(pointer);
    Json broken = report;
    broken[Json::json_pointer(pointer)] = Json::array();
    CHECK(schema_problem(schema, schema, broken, "report") != "");
  }
  Json extra = report;
  extra["nodes"][0]["surprise"] = 1;
  CHECK(schema_problem(schema, schema, extra, "report") != "");
}

TEST_CASE(
    "a report with drift, a share and what was not looked at survives its JSON and follows its schema") {
  Report r = report_sample::full();
  r.kind = "accept";
  r.nodes[0].share = "32 of 128 cores (cpuset)";
  r.nodes[0].checks.push_back(check(Verdict::not_looked_at));
  std::vector<HostProperties> hosts;
  for (const char* name : {"node01", "node02", "node03"}) hosts.push_back({name, "cpu", {{"kernel", "6.1"}}});
  hosts[1].values["kernel"] = kHostile;
  hosts[2].values["BIOS date"] = "2024";
  r.drift = drift_of_run(hosts);
  const Json schema = Json::parse(text_of(std::string(source_dir()) + "/schema/report.schema.json")),
             json = parse_json(to_json_text(r)).value();
  CHECK(schema_problem(schema, schema, json, "report") == "");
  Json broken = json;
  broken["drift"]["groups"][0]["properties"][0]["agreement"] = "fine";
  CHECK(schema_problem(schema, schema, broken, "report") != "");
  const auto read = report_from_json(json);
  REQUIRE(read.ok());
  CHECK(to_json_text(*read) == to_json_text(r));
  const std::string html = render_html(r), text = render_text(r);
  CHECK(html.find("<h2>Drift</h2>") != std::string::npos);
  CHECK(html.find("<script>alert") == std::string::npos);
  CHECK(text.find("measured on 32 of 128 cores (cpuset)") != std::string::npos);
  CHECK(text.find("drift (no verdict)") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a node with a failed or missing mandatory check is never shown as accepted") {
  struct Row {
    std::vector<Check> checks;
    bool accepted;
  };
  const std::vector<Row> rows = {
      {{check(Verdict::pass)}, true},
      {{check(Verdict::pass), check(Verdict::fail)}, false},
      {{check(Verdict::pass), check(Verdict::skipped)}, false},
      {{check(Verdict::pass), check(Verdict::fail, false)}, true},
      {{check(Verdict::pass), check(Verdict::skipped, false)}, true},
      {{check(Verdict::pass), check(Verdict::degraded, false)}, true},
      {{check(Verdict::not_applicable)}, false},  // nothing was proven
      {{check(Verdict::skipped, false)}, false},
      {{}, false},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    Report r;
    r.cluster = "c";
    r.nodes = {accepted_node(rows[i].checks)};
    CHECK(totals(r).accepted == (rows[i].accepted ? 1 : 0));
    CHECK(title(r) == (rows[i].accepted ? "c: 1 of 1 node accepted" : "c: 0 of 1 node accepted"));
    const auto read = report_from_json(to_json(r));
    REQUIRE(read.ok());
    CHECK((read->nodes[0].verdict == NodeVerdict::accepted) == rows[i].accepted);
    CHECK((render_html(r).find("✓ accepted") != std::string::npos) == rows[i].accepted);
    CHECK((occurrences(render_junit(r), "<failure") + occurrences(render_junit(r), "<error") == 0) ==
          rows[i].accepted);
    CHECK((render_text(r).find("\n  n1    accepted") != std::string::npos) == rows[i].accepted);
    settle(r);
    CHECK(r.nodes[0].reason.empty() == rows[i].accepted);
  }
}

TEST_CASE("a skipped check is not counted as passed") {
  Report r;
  r.nodes = {accepted_node({check(Verdict::pass), check(Verdict::skipped), check(Verdict::not_applicable)})};
  CHECK(totals(r).count(Verdict::pass) == 1);
  CHECK(totals(r).count(Verdict::skipped) == 1);
  CHECK(render_text(r).find("1 of 2  checks") != std::string::npos);
}

TEST_CASE("a lab's report says SIMULATED HARDWARE in its title and on every verdict line") {
  Report r = report_sample::full();
  CHECK(title(r).starts_with("SIMULATED HARDWARE: "));
  CHECK(render_html(r).find("<title>SIMULATED HARDWARE: ") != std::string::npos);
  size_t checks = 0;
  for (const auto& node : r.nodes) checks += node.checks.size();
  // each check, each node in the table and at its section
  CHECK(occurrences(render_html(r), "class=\"simtag\">SIMULATED HARDWARE") >= checks + 2 * r.nodes.size());
  std::istringstream lines(render_text(r, true));
  for (std::string line; std::getline(lines, line);)
    if (line.find("PASS") != std::string::npos || line.find("FAIL") != std::string::npos ||
        line.find(" accepted ") != std::string::npos || line.find("n/a ") != std::string::npos ||
        line.find("NOT RUN") != std::string::npos || line.find("DEGRADED") != std::string::npos)
      CHECK(line.find("[SIMULATED HARDWARE]") != std::string::npos);
  CHECK(occurrences(render_junit(r), "<testcase") ==
        occurrences(render_junit(r), "name=\"SIMULATED HARDWARE ") - r.nodes.size());

  r.simulated = false;
  for (const auto& text : {render_html(r), render_junit(r), render_text(r, true), to_json_text(r)})
    CHECK(text.find("SIMULATED HARDWARE") == std::string::npos);
}

TEST_CASE("hostile strings stay text in every form") {
  const Report r = hostile_report();
  const std::string html = render_html(r);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("&lt;script&gt;") != std::string::npos);
  CHECK(html.find("onload='x'") == std::string::npos);
  CHECK(html.find('\x1b') == std::string::npos);
  CHECK(html.find('\xff') == std::string::npos);
  CHECK(xml_problem(render_junit(r)) == "");
  for (const bool verbose : {false, true})
    for (const char c : render_text(r, verbose)) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(render_text(r, true).find("\xc2\x9b") == std::string::npos);
  CHECK(parse_json(to_json_text(r)).ok());
}

TEST_CASE("escaping keeps what is fine and repairs what is not") {
  CHECK(markup::escape("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(markup::escape("größe ✓ 𝛼\n\t") == "größe ✓ 𝛼\n\t");
  CHECK(markup::escape("\xc3") == "\xef\xbf\xbd");
  CHECK(markup::escape("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(markup::escape("\xc0\x80") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(markup::escape("\xef\xbf\xbf").find("\xef\xbf\xbf") == std::string::npos);
  // C1, a mark of direction, and CR.
  CHECK(markup::escape("a\xc2\x9bm\xe2\x80\xaez\r") == "a\xef\xbf\xbdm\xef\xbf\xbdz\xef\xbf\xbd");
  CHECK(markup::plain("a\x1b[31mb\r\n✓") == "a?[31mb??✓");
  CHECK(markup::anchor("node01") == "node01");
  CHECK(markup::anchor("Node 1") != markup::anchor("node-1"));
  CHECK(markup::anchor("a\"b").find('"') == std::string::npos);
}

TEST_CASE("JUnit is well formed and its counts are those of its cases") {
  const std::string xml = render_junit(report_sample::full());
  CHECK(xml_problem(xml) == "");
  CHECK(xml_problem(xml + "<a>") != "");
  Report r;
  r.cluster = "c";
  r.nodes = {accepted_node({check(Verdict::pass), check(Verdict::fail), check(Verdict::skipped),
                            check(Verdict::skipped, false), check(Verdict::not_applicable)})};
  const std::string small = render_junit(r);
  CHECK(small.find("tests=\"6\" failures=\"2\" errors=\"1\" skipped=\"2\"") != std::string::npos);
  CHECK(occurrences(small, "<testcase") == 6);
  CHECK(occurrences(small, "<failure") == 2);
  CHECK(occurrences(small, "<error") == 1);
  CHECK(occurrences(small, "<skipped") == 2);
}

TEST_CASE("the HTML page loads nothing and links nodes to their evidence") {
  const Report r = report_sample::full();
  const std::string html = render_html(r);
  for (const char* forbidden : {"http://", "https://", "src=", "<link", "@import", "url(", "<script"}) {
    CAPTURE(forbidden);
    CHECK(html.find(forbidden) == std::string::npos);
  }
  CHECK(html.find("name=\"viewport\"") != std::string::npos);
  CHECK(html.find("prefers-color-scheme:dark") != std::string::npos);
  for (const auto& node : r.nodes) {
    CHECK(html.find("href=\"#node-" + node.name + "-checks\"") != std::string::npos);
    CHECK(html.find("id=\"node-" + node.name + "-checks\"") != std::string::npos);
    CHECK(html.find("id=\"node-" + node.name + "\"") != std::string::npos);
  }
  CHECK(occurrences(html, "<svg") >= 3 + 3);
  CHECK(occurrences(html, "<div") == occurrences(html, "</div>"));
  CHECK(occurrences(html, "<details") == occurrences(html, "</details>"));
}

TEST_CASE("an empty report renders") {
  Report r;
  r.cluster = "empty";
  CHECK(render_html(r).find("0 of 0 nodes accepted") != std::string::npos);
  CHECK(xml_problem(render_junit(r)) == "");
  CHECK(report_from_json(to_json(r)).ok());
}

TEST_CASE("a node that went back is none that was accepted, and none that failed its owner") {
  Report r;
  r.cluster = "c";
  NodeReport node = accepted_node({check(Verdict::fail)});
  node.verdict = NodeVerdict::returned;
  node.reason = "returned to slot a: accept: dgemm is slow";
  r.nodes = {node, accepted_node({check(Verdict::pass)})};
  r.nodes[1].name = "n2";
  settle(r);
  CHECK(r.nodes[0].verdict == NodeVerdict::returned);
  CHECK(r.nodes[0].reason == node.reason);
  const Totals t = totals(r);
  CHECK(t.returned == 1);
  CHECK(t.accepted == 1);
  CHECK(t.failed == 0);
  CHECK(title(r).find("1 of 2 nodes accepted, 1 returned") != std::string::npos);
  for (const std::string& text : {render_text(r), render_html(r), render_junit(r), render_flat(r)}) {
    CHECK(text.find("returned") != std::string::npos);
    CHECK(text.find("dgemm is slow") != std::string::npos);
  }
  CHECK(render_junit(r).find("failures=\"2\"") != std::string::npos);  // its check, and itself
  const auto read = report_from_json(to_json(r));
  REQUIRE(read.ok());
  CHECK(read->nodes[0].verdict == NodeVerdict::returned);
}

TEST_CASE("what was measured of a system that was not taken is no history") {
  Report r;
  Check slow = check(Verdict::degraded);
  slow.measured = 3;
  r.nodes = {accepted_node({slow})};
  CHECK(measured_text(r).find("dgemm") != std::string::npos);
  r.nodes[0].verdict = NodeVerdict::returned;
  CHECK(measured_text(r).find("dgemm") == std::string::npos);
}

TEST_CASE("the phases of a node re-imaged in place have colours of their own") {
  Report r;
  r.nodes = {accepted_node({check(Verdict::pass)})};
  const char* const names[] = {"image", "pause", "boot", "configure", "accept", "commit", "resume", "return"};
  TimeMs at = 1000;
  for (const char* name : names) r.nodes[0].phases.push_back({name, at += 1000, 1000, "done"});
  const std::string html = render_html(r);
  for (const char* name : {"phi0", "phi1", "phi2", "phi3"})
    CHECK(html.find(std::string("<rect class=\"") + name) != std::string::npos);
  CHECK(html.find("<rect class=\"ph8") == std::string::npos);
}
