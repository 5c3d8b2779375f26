// The HTML report: a single page that loads nothing, light and dark, designed for phones first.
#include <algorithm>
#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/report/markup.h"
#include "controller/report/report_causes.h"

namespace muster {
namespace {

using markup::anchor;
using markup::duration;
using markup::escape;

constexpr const char* kStyle = R"css(
:root{--bg:#f6f7f9;--card:#fff;--ink:#16202b;--muted:#5c6b7a;--line:#dfe4ea;--ok:#1a7f4b;--okbg:#dff3e7;--warn:#8a5a00;--warnbg:#fdf0d0;
--bad:#b3261e;--badbg:#fbe3e1;--off:#5c6b7a;--offbg:#e9edf1;--accent:#2158c9;--want:#16202b;
--c0:#7a8896;--c1:#b86a1f;--c2:#3566c9;--c3:#8a5bc4;--c4:#1f8a8a;--c5:#a8892a;--c6:#c2527f;--c7:#2f8f55;--c8:#444}
@media(prefers-color-scheme:dark){:root{--bg:#10151b;--card:#182029;--ink:#e6ebf0;--muted:#96a4b2;--line:#2b3641;--ok:#6fd39c;--okbg:#123524;
--warn:#f0c060;--warnbg:#3a2c08;--bad:#ff8a80;--badbg:#43191a;--off:#96a4b2;--offbg:#26303a;--accent:#8ab0ff;--want:#fff;
--c0:#8796a5;--c1:#d98a3d;--c2:#5b8dee;--c3:#a97fe0;--c4:#3fb3b3;--c5:#cbaa45;--c6:#e07aa2;--c7:#52b97a;--c8:#aaa}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1060px;margin:0 auto;padding:16px 14px 60px}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
h1{font-size:22px;line-height:1.25;margin:4px 0 2px}h2{font-size:17px;margin:0 0 10px}h3{font-size:14px;margin:16px 0 6px}
.sim{background:repeating-linear-gradient(135deg,var(--warnbg) 0 14px,transparent 14px 28px),var(--card);color:var(--warn);border:1px solid var(--warn);
border-radius:8px;padding:8px 12px;font-weight:700;letter-spacing:.04em;margin-bottom:12px}
.sim small{display:block;font-weight:400;letter-spacing:0}
.simtag{font-size:10px;font-weight:600;letter-spacing:.03em;color:var(--warn);white-space:nowrap}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px;margin:14px 0}
.muted{color:var(--muted);font-size:13px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(84px,1fr));gap:8px;margin:12px 0 4px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:8px 10px}
.tile b{display:block;font-size:20px;line-height:1.2;white-space:nowrap}.tile span{color:var(--muted);font-size:12px}
.tile.ok b{color:var(--ok)}.tile.bad b{color:var(--bad)}.tile.warn b{color:var(--warn)}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:3px 14px;margin:8px 0 0;font-size:13px}
dl.facts dt{color:var(--muted)}dl.facts dd{margin:0;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:12px}
pre{margin:6px 0;padding:8px;background:var(--bg);border:1px solid var(--line);border-radius:6px;overflow:auto;max-height:320px;white-space:pre-wrap;overflow-wrap:anywhere}
.badge{display:inline-block;border-radius:99px;padding:1px 9px;font-size:12px;font-weight:600;white-space:nowrap}
.b-pass,.b-accepted,.b-baked,.b-already,.b-applied,.b-done{background:var(--okbg);color:var(--ok)}
.b-degraded,.b-returned,.b-quarantined,.b-incomplete,.b-running{background:var(--warnbg);color:var(--warn)}
.b-fail,.b-failed{background:var(--badbg);color:var(--bad)}
.b-skipped{background:var(--offbg);color:var(--bad)}.b-not_applicable{background:var(--offbg);color:var(--off)}
.b-looked_at,.b-not_looked_at,.b-not_judged{background:var(--offbg);color:var(--warn)}
table{border-collapse:collapse;width:100%;font-size:13px}
th{color:var(--muted);font-weight:600;text-align:left;border-bottom:1px solid var(--line);padding:5px 8px 5px 0}
td{border-bottom:1px solid var(--line);padding:6px 8px 6px 0;vertical-align:top;overflow-wrap:anywhere}
tr:last-child>td{border-bottom:0}td.num{white-space:nowrap}td.v{white-space:nowrap}
.why{color:var(--bad)}.scroll{overflow-x:auto}
.chart{display:grid;grid-template-columns:minmax(60px,max-content) 1fr;gap:5px 10px;align-items:center}
.chart.three{grid-template-columns:minmax(60px,max-content) 1fr minmax(76px,max-content)}
.lab{font-size:13px;max-width:260px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.val{font-size:12px;color:var(--muted);text-align:right;white-space:nowrap}
.strip{display:block;width:100%;height:20px;background:var(--offbg);border-radius:4px}
.axis{position:relative;height:18px;font-size:11px;color:var(--muted);margin-right:34px}
.axis span{position:absolute;white-space:nowrap}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--muted);margin:8px 0 0}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.ph0{fill:var(--c0);background:var(--c0)}.ph1{fill:var(--c1);background:var(--c1)}.ph2{fill:var(--c2);background:var(--c2)}.ph3{fill:var(--c3);background:var(--c3)}
.ph4{fill:var(--c4);background:var(--c4)}.ph5{fill:var(--c5);background:var(--c5)}.ph6{fill:var(--c6);background:var(--c6)}.ph7{fill:var(--c7);background:var(--c7)}
.ph8{fill:var(--c8);background:var(--c8)}
.phi0,.phi2{fill:var(--c0);background:var(--c0);opacity:.6}.phi1{fill:var(--c7);background:var(--c7);opacity:.6}.phi3{fill:var(--c1);background:var(--c1);opacity:.6}
rect.bad{stroke:var(--bad);stroke-width:3}rect.slow{stroke:var(--warn);stroke-width:3}
.v-pass{fill:var(--ok)}.v-degraded{fill:var(--warn)}.v-fail{fill:var(--bad)}.v-skipped,.v-not_applicable,.v-not_judged{fill:var(--off)}
.want{stroke:var(--want);stroke-width:3;vector-effect:non-scaling-stroke}
figure{margin:0 0 16px}figcaption{font-size:13px;margin-bottom:5px}
.map text{font-size:11px;fill:var(--muted);text-anchor:middle}.map text.row{text-anchor:end}.map text.turned{text-anchor:start}
.map .heat{fill:var(--c2);fill-opacity:calc(.12 + .88*var(--l))}.map .none{fill:none;stroke:var(--muted);stroke-dasharray:3 3}.map .self{fill:var(--offbg)}
.study .grid{stroke:var(--line)}.study .fit{fill:none;stroke-width:1.5;stroke-dasharray:5 4}
.ln0{stroke:var(--c2)}.ln1{stroke:var(--c7)}.ln2{stroke:var(--c1)}.ln3{stroke:var(--c3)}.pt0{fill:var(--c2)}.pt1{fill:var(--c7)}.pt2{fill:var(--c1)}.pt3{fill:var(--c3)}
.bg0{background:var(--c2)}.bg1{background:var(--c7)}.bg2{background:var(--c1)}.bg3{background:var(--c3)}
.map text.on{fill:var(--bg)}.map text.off{fill:var(--ink)}
details{margin:6px 0}summary{cursor:pointer;color:var(--accent);font-size:13px}
section.node>h2{display:flex;flex-wrap:wrap;gap:6px 10px;align-items:center}
section.node:target{border-color:var(--accent);box-shadow:0 0 0 2px var(--accent)}
@media(max-width:640px){main{padding:10px 10px 40px}.card{padding:12px 10px}
table.stack thead{display:none}table.stack tr{display:block;padding:8px 0;border-bottom:1px solid var(--line)}table.stack tr:last-child{border:0}
table.stack td{display:block;border:0;padding:1px 0;white-space:normal}table.stack td[data-l]:before{content:attr(data-l) ": ";color:var(--muted)}
table.stack td:empty{display:none!important}
table.stack td[data-l]{display:inline-block;margin-right:14px}.lab{max-width:104px;white-space:normal;overflow-wrap:anywhere;line-height:1.15}
dl.facts{gap:3px 10px}dl.facts code{font-size:11px}}
@media print{body{background:#fff}.card{break-inside:avoid}}
)css";

// A symbol as well, for readers who cannot see the colour.
std::string badge(std::string_view word) {
  std::string_view mark = "";
  if (word == "pass" || word == "accepted") mark = "✓ ";
  if (word == "fail" || word == "failed") mark = "✗ ";
  if (word == "degraded" || word == "returned" || word == "quarantined") mark = "▲ ";
  if (word == "skipped" || word == "not_looked_at" || word == "not_judged") mark = "○ ";
  std::string text(word);
  std::replace(text.begin(), text.end(), '_', ' ');
  if (text == "skipped") text = "not run";
  return fmt::format("<span class=\"badge b-{}\">{}{}</span>",
                     anchor(word) == word ? std::string(word) : escape(word), mark, escape(text));
}

std::string simulated_tag(const Report& report) {
  return report.simulated ? " <span class=\"simtag\">SIMULATED HARDWARE</span>" : "";
}

void fact(std::string& out, const char* name, const std::string& value) {
  if (!value.empty()) out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape(value));
}
void digest_fact(std::string& out, const std::string& name, const std::string& digest) {
  if (!digest.empty())
    out += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>", escape(name), escape(digest));
}

std::string tile(size_t value, const char* label, const char* when_positive) {
  return fmt::format("<div class=\"tile {}\"><b>{}</b><span>{}</span></div>", value > 0 ? when_positive : "",
                     value, label);
}

std::string head(const Report& report) {
  const Totals t = totals(report);
  std::string out;
  if (report.simulated)
    out +=
        "<div class=\"sim\">SIMULATED HARDWARE<small>This cluster is a virtual lab. The actions were real; "
        "the speeds say nothing about real hardware.</small></div>";
  out += fmt::format(
      "<h1>{}</h1><p class=\"muted\">{} run {}{}{}</p><div class=\"tiles\">", escape(title(report)),
      escape(report.kind), report.run, report.started > 0 ? ", " + to_iso8601(report.started) : "",
      report.ended > report.started ? ", took " + duration(report.ended - report.started) : "");
  if (report.kind == kLook)
    out += fmt::format(
        "<div class=\"tile warn\"><b>{} of {}</b><span>nodes looked at, not measured</span></div>",
        t.looked_at, t.nodes);
  else
    out += fmt::format("<div class=\"tile {}\"><b>{} of {}</b><span>nodes accepted</span></div>",
                       t.accepted == t.nodes && t.nodes > 0 ? "ok" : "bad", t.accepted, t.nodes);
  if (t.degraded > 0) out += tile(t.degraded, "degraded", "warn");
  if (t.looked_at > 0 && report.kind != kLook) out += tile(t.looked_at, "looked at, not measured", "warn");
  if (t.returned > 0) out += tile(t.returned, "returned", "warn");
  if (t.quarantined > 0) out += tile(t.quarantined, "quarantined", "warn");
  if (t.failed > 0) out += tile(t.failed, "failed", "bad");
  out += tile(t.count(Verdict::pass), "checks passed", "ok") + tile(t.count(Verdict::fail), "failed", "bad");
  if (t.count(Verdict::degraded) > 0) out += tile(t.count(Verdict::degraded), "degraded", "warn");
  out += tile(t.count(Verdict::skipped), "not run", "bad") +
         tile(t.count(Verdict::not_applicable), "not applicable", "");
  if (t.not_looked_at > 0) out += tile(t.count(Verdict::not_looked_at), "not looked at", "warn");
  if (t.count(Verdict::not_judged) > 0)
    out += tile(t.count(Verdict::not_judged), "not judged", t.not_judged > 0 ? "warn" : "");
  out += "</div><dl class=\"facts\">";
  digest_fact(out, "Report digest", report.digest);
  digest_fact(out, "Signed by", report.signed_by);
  if (report.digest.empty()) fact(out, "Report digest", "not signed: the run has not ended");
  fact(out, "Spec", fmt::format("revision {}", report.spec_revision));
  digest_fact(out, "Spec digest", report.spec_digest);
  for (const auto& digest : report.plan_digests) digest_fact(out, "Plan", digest);
  for (const auto& [name, digest] : report.images) digest_fact(out, "Image " + name, digest);
  fact(out, "Acceptance profile", report.profile);
  fact(out, "Approved by", report.approved_by);
  return out + "</dl>";
}

DurationMs worked(const NodeReport& node) {
  DurationMs out = 0;
  for (const auto& phase : node.phases) out += phase.duration;
  return out;
}

std::string check_counts(const NodeReport& node) {
  size_t passed = 0, wanted = 0;
  for (const auto& check : node.checks) {
    if (check.verdict == Verdict::not_applicable) continue;
    ++wanted;
    if (check.verdict == Verdict::pass) ++passed;
  }
  return fmt::format("{} of {} passed", passed, wanted);
}

std::string node_table(const Report& report) {
  std::string out =
      "<div class=\"card\"><h2>Nodes</h2><table "
      "class=\"stack\"><thead><tr><th>Node</th><th>Verdict</th><th>Role</th><th>Serial</th><th>Checks</"
      "th><th>Time</th></tr></thead><tbody>";
  for (const auto& node : report.nodes) {
    const std::string link = "#node-" + anchor(node.name);
    out += fmt::format(
        "<tr><td class=\"v\"><a href=\"{0}\"><b>{1}</b></a></td><td class=\"v\"><a "
        "href=\"{0}\">{2}</a>{3}{4}</td><td data-l=\"Role\">{5}</td><td data-l=\"Serial\">{6}</td><td "
        "data-l=\"Checks\"><a href=\"{0}-checks\">{7}</a></td><td data-l=\"Time\" "
        "class=\"num\">{8}</td></tr>",
        link, escape(node.name), badge(to_string(node.verdict)), simulated_tag(report),
        node.reason.empty()
            ? ""
            : fmt::format("<div class=\"why\" style=\"white-space:normal\">{}</div>", escape(node.reason)),
        escape(node.role), escape(node.serial), check_counts(node),
        node.phases.empty() ? "" : duration(worked(node)));
  }
  return out + "</tbody></table></div>";
}

// A cause of one node stands in that node's row.
std::string causes_card(const Report& report) {
  std::string rows;
  for (const Cause& cause : causes_in(report))
    rows += fmt::format(
        "<tr><td><b>{}</b>{}</td><td data-l=\"Nodes\">{}</td><td data-l=\"Next\"><code>{}</code></td></tr>",
        escape(cause.what), cause.detail.empty() ? "" : "<br>" + escape(cause.detail),
        escape(nodes_of(cause)), escape(cause.next));
  if (rows.empty()) return "";
  return "<div class=\"card\"><h2>Causes</h2><table class=\"stack\"><thead><tr><th>What</th><th>Nodes</th>"
         "<th>Next</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>\n";
}

std::string evidence(const Check& check) {
  if (check.evidence.is_null()) return "";
  return fmt::format("<details><summary>evidence</summary><pre>{}</pre></details>",
                     escape(dump_json(check.evidence, 1)));
}

std::string history(const Check& check) {
  std::string out;
  for (const auto& point : check.history)
    out += fmt::format("{}run {}: {:.4g}", out.empty() ? "; before: " : ", ", point.run, point.value);
  return escape(out);
}

// "at least 646.4 TFLOP/s, because of ... (source: ...)"
std::string limit_cell(const Check& check) {
  if (check.because.empty()) return escape(check.expected_text);
  return fmt::format("{}<span class=\"muted\">, because of {} (source: {})</span>",
                     escape(check.expected_text), escape(check.because), escape(check.source));
}

std::string check_row(const Report& report, const Check& check) {
  std::string faulty_parts;
  for (const auto& part : check.faulty_parts)
    faulty_parts += (faulty_parts.empty() ? "at fault: " : ", ") + part;
  const std::string metric = markup::metric_label(check.name);
  return fmt::format(
      "<tr><td><b>{}</b>{}{}</td><td class=\"v\">{}{}{}</td><td data-l=\"Measured\">{}</td><td "
      "data-l=\"Held to\">{}</td><td>{}<span class=\"muted\">{}</span>{}{}</td></tr>",
      escape(check.title), metric.empty() ? "" : " " + escape(metric),
      check.subject.empty() ? "" : " · " + escape(check.subject), badge(to_string(check.verdict)),
      check.mandatory || check.verdict == Verdict::not_applicable ? ""
                                                                  : " <span class=\"muted\">optional</span>",
      simulated_tag(report), escape(check.measured_text), limit_cell(check),
      check.reason.empty() ? "" : fmt::format("<span class=\"why\">{}</span><br>", escape(check.reason)),
      (check.derivation == check.because ? "" : escape(check.derivation)) + history(check),
      faulty_parts.empty() ? "" : fmt::format("<br><span class=\"why\">{}</span>", escape(faulty_parts)),
      evidence(check));
}

std::string checks_table(const Report& report, const NodeReport& node) {
  std::string out =
      fmt::format("<h3 id=\"node-{}-checks\">Checks: {}</h3>", anchor(node.name), check_counts(node));
  if (node.checks.empty()) return out + "<p class=\"why\">No acceptance check ran.</p>";
  out +=
      "<table "
      "class=\"stack\"><thead><tr><th>Check</th><th>Verdict</th><th>Measured</th><th>Held to</th><th>Why</"
      "th></tr></thead><tbody>";
  for (const auto& check : node.checks) out += check_row(report, check);
  return out + "</tbody></table>";
}

std::string steps_table(const NodeReport& node) {
  if (node.steps.empty()) return "";
  std::map<std::string, size_t> counts;
  for (const auto& step : node.steps) ++counts[step.status];
  std::string summary;
  for (const auto& [status, count] : counts) {
    std::string word = status;
    std::replace(word.begin(), word.end(), '_', ' ');
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, escape(word));
  }
  std::string out = fmt::format(
      "<details{}><summary>{} steps: {}</summary><table "
      "class=\"stack\"><thead><tr><th>Step</th><th>Phase</th><th>Status</th><th>Time</th><th></th></tr></"
      "thead><tbody>",
      counts.count("failed") ? " open" : "", node.steps.size(), summary);
  for (const auto& step : node.steps)
    out += fmt::format(
        "<tr><td>{}</td><td data-l=\"Phase\">{}</td><td>{}</td><td data-l=\"Time\" "
        "class=\"num\">{}</td><td>{}</td></tr>",
        escape(step.name), escape(step.phase), badge(step.status), duration(step.duration),
        escape(step.message));
  return out + "</tbody></table></details>";
}

std::string disks_table(const NodeReport& node) {
  if (node.disks.empty()) return "";
  std::string out =
      "<h3>Disks</h3><table "
      "class=\"stack\"><thead><tr><th>Group</th><th>Model</th><th>Serial</th><th>Size</th><th>WWID</th></"
      "tr></thead><tbody>";
  for (const auto& disk : node.disks)
    out += fmt::format(
        "<tr><td>{}</td><td data-l=\"Model\">{}</td><td data-l=\"Serial\">{}</td><td data-l=\"Size\" "
        "class=\"num\">{}</td><td data-l=\"WWID\">{}</td></tr>",
        disk.group.empty() ? "<span class=\"muted\">in no group</span>" : "<b>" + escape(disk.group) + "</b>",
        escape(disk.model), escape(disk.serial), markup::size(disk.size_bytes), escape(disk.wwid));
  return out + "</tbody></table>";
}

std::string phases_line(const NodeReport& node) {
  if (node.phases.empty()) return "";
  std::string out = "<p class=\"muted\">";
  for (size_t i = 0; i < node.phases.size(); ++i) {
    const auto& phase = node.phases[i];
    out += fmt::format("{}{} <b>{}</b>{}", i == 0 ? "" : " · ", escape(phase.name), duration(phase.duration),
                       phase.outcome == "done" ? "" : " (" + escape(phase.outcome) + ")");
  }
  return out + "</p>";
}

std::string node_section(const Report& report, const NodeReport& node) {
  std::string out =
      fmt::format("<section class=\"card node\" id=\"node-{}\"><h2>{} {}{}</h2>", anchor(node.name),
                  escape(node.name), badge(to_string(node.verdict)), simulated_tag(report));
  if (!node.reason.empty()) out += fmt::format("<p class=\"why\">{}</p>", escape(node.reason));
  out += "<dl class=\"facts\">";
  fact(out, "Machine", node.vendor + (node.product.empty() ? "" : " ") + node.product);
  fact(out, "Serial", node.serial);
  fact(out, "UUID", node.uuid);
  fact(out, "Address", node.address);
  fact(out, "Firmware", node.firmware);
  for (const auto& [device, driver] : node.drivers) fact(out, "Driver", device + ": " + driver);
  fact(out, "Kernel", node.kernel);
  fact(out, "Measured on", node.share);
  if (!node.image_digest.empty())
    out += fmt::format("<dt>Image</dt><dd>{} <code>{}</code></dd>", escape(node.image),
                       escape(node.image_digest));
  digest_fact(out, "Configuration", node.config_digest);
  out += "</dl>" + phases_line(node) + checks_table(report, node) + disks_table(node) + steps_table(node);
  if (!node.facts.is_null())
    out += fmt::format("<details><summary>hardware as found</summary><pre>{}</pre></details>",
                       escape(dump_json(node.facts, 1)));
  return out + "</section>";
}

std::string destroyed_card(const Report& report) {
  if (report.destroyed.empty())
    return "<div class=\"card\"><h2>Data destroyed</h2><p class=\"muted\">None: no disk was named for "
           "writing in the approved plan.</p></div>";
  std::string out =
      "<div class=\"card\"><h2>Data destroyed</h2><p class=\"muted\">Every disk that the approved plan named "
      "for writing, with its previous content. No other disk was written.</p><table "
      "class=\"stack\"><thead><tr><th>Node</th><th>Disk</th><th>Size</th><th>Previous "
      "content</th><th>Purpose</th></tr></thead><tbody>";
  for (const auto& d : report.destroyed)
    out += fmt::format(
        "<tr><td><b>{}</b> {}</td><td data-l=\"Disk\">{}<br><code>{}</code></td><td data-l=\"Size\" "
        "class=\"num\">{}</td><td data-l=\"Previous content\">{}</td><td data-l=\"Purpose\">{}</td></tr>",
        escape(d.node), escape(d.group), escape(d.model), escape(d.serial.empty() ? d.wwid : d.serial),
        markup::size(static_cast<uint64_t>(std::max<int64_t>(d.size_bytes, 0))), escape(d.content),
        escape(d.why));
  return out + "</tbody></table></div>";
}

std::string plot_card(const char* heading, const std::string& plot) {
  return plot.empty() ? "" : fmt::format("<div class=\"card\"><h2>{}</h2>{}</div>", heading, plot);
}

}  // namespace

std::string render_html(const Report& given) {
  Report report = given;
  settle(report);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\"><meta name=\"color-scheme\" content=\"light "
      "dark\"><title>{}</title><style>{}</style></head><body><main>\n",
      escape(title(report)), kStyle);
  out += head(report) + "\n" + causes_card(report) + node_table(report) + "\n";
  for (const auto& note : report.notes) out += fmt::format("<p class=\"muted\">Note: {}</p>\n", escape(note));
  out += plot_card("Timeline", markup::timeline(report)) + "\n";
  const std::string bars = markup::bars(report);
  if (!bars.empty())
    out += plot_card("Measured against expected",
                     "<p class=\"muted\">The vertical mark is the expected value.</p>" + bars) +
           "\n";
  out += plot_card("Links", markup::heat_map(report)) + "\n";
  if (const std::string study = markup::scaling(report); !study.empty())
    out += plot_card("Scaling", study) + "\n";
  if (const std::string drift = markup::drift(report); !drift.empty())
    out += plot_card("Drift", drift) + "\n";
  for (const auto& node : report.nodes) out += node_section(report, node) + "\n";
  out += destroyed_card(report) + "\n";
  out += fmt::format(
      "<p class=\"muted\">A check that was not run has not passed: a node with a failed or missing "
      "mandatory check is not accepted. Made by muster {}.{}</p></main></body></html>\n",
      escape(report.version), simulated_tag(report));
  return out;
}

}  // namespace muster
