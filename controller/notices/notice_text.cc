#include "controller/notices/notice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/split.h"
#include "base/time.h"
#include "base/utf8.h"

namespace muster::notices {
namespace {

constexpr size_t kChangesShown = 10;
constexpr size_t kLongestLine = 300, kLongestText = 3000;  // bytes; Slack and Teams cut longer texts

std::string state_word(NoticeState state) { return std::string(word_of(kNoticeStates, state)); }

// One line without control characters, so that text from a node adds no line or header.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return shortened(text, kLongestLine);
}

// "700 begun (node_silent), 3 over (receiver)"
std::string counts_of(const Notice& notice) {
  std::map<std::string, int> counts;
  for (const Change& change : notice.changed)
    ++counts[fmt::format("{} ({})", state_word(change.state), change.kind)];
  std::string out;
  for (const auto& [what, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  return out;
}

std::string what_of(const Notice& notice) {
  if (notice.state == NoticeState::summary) return fmt::format("changes of causes: {}", counts_of(notice));
  if (notice.state == NoticeState::flaps)
    return fmt::format("{}: {} times since {}; {} now", notice.what, notice.changes,
                       to_iso8601(notice.first_change), notice.open ? "it lasts" : "it is over");
  if (notice.state == NoticeState::over && notice.since > 0 && notice.time > notice.since)
    return fmt::format("{} (after {})", notice.what, to_human(notice.time - notice.since));
  return notice.what;
}

// RFC 2047 for what is not ASCII, in pieces of at most 75 characters.
std::string mail_header(const std::string& text) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return text;
  constexpr size_t kPiece = 20;  // bytes, each three characters at most
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view piece = first_bytes(rest, kPiece);
    if (piece.empty()) piece = rest.substr(0, kPiece);  // not UTF-8
    rest.remove_prefix(piece.size());
    out += out.empty() ? "=?UTF-8?Q?" : "\n =?UTF-8?Q?";
    for (const char c : piece) out += fmt::format("={:02X}", static_cast<unsigned char>(c));
    out += "?=";
  }
  return out;
}

// Slack reads these as marks.
std::string for_slack(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  return out;
}

Json changes_json(const Notice& notice) {
  Json out = Json::array();
  for (const Change& change : notice.changed)
    out.push_back({{"cause", change.cause},
                   {"state", state_word(change.state)},
                   {"kind", change.kind},
                   {"what", change.what},
                   {"open", change.open}});
  return out;
}

}  // namespace

std::string shortened(std::string_view text, size_t most) {
  constexpr std::string_view kMark = "…";
  if (text.size() <= most) return std::string(text);
  return std::string(first_bytes(text, most - kMark.size())).append(kMark);
}

std::string headline(const Notice& notice, const std::string& cluster) {
  return fmt::format("[{}] {}: {}", cluster, state_word(notice.state), one_line(what_of(notice)));
}

std::string text_of(const Notice& notice, const std::string& cluster) {
  std::string out = headline(notice, cluster) + "\n";
  if (!notice.detail.empty() && notice.detail != notice.what)
    out += "Reason: " + one_line(notice.detail) + "\n";
  if (!notice.nodes.empty()) out += "Nodes: " + one_line(some_of(notice.nodes)) + "\n";
  for (size_t i = 0; i < std::min(notice.changed.size(), kChangesShown); ++i) {
    const Change& change = notice.changed[i];
    out += fmt::format("- {} {}: {}\n", change.cause, state_word(change.state), one_line(change.what));
  }
  if (notice.changed.size() > kChangesShown)
    out += fmt::format("- and {} more\n", notice.changed.size() - kChangesShown);
  if (!notice.next.empty()) out += "Next: " + one_line(notice.next) + "\n";
  if (!notice.cause.empty() && notice.open)
    out += fmt::format("To keep it quiet until it is over: muster ack {}\n", notice.cause);
  return shortened(out, kLongestText);
}

Json plain_json(const Notice& notice, const std::string& cluster) {
  Json out = {{"version", 1},
              {"id", notice.id},
              {"time", to_iso8601(notice.time)},
              {"cluster", cluster},
              {"state", state_word(notice.state)},
              {"kind", notice.kind},
              {"urgent", notice.urgent},
              {"cause", notice.cause},
              {"open", notice.open},
              {"title", headline(notice, cluster)},
              {"what", what_of(notice)},
              {"detail", notice.detail},
              {"next", notice.next},
              {"nodes", notice.nodes},
              {"replaces", notice.replaces},
              {"changed", changes_json(notice)}};
  out["common"] = Json::object();
  if (!notice.common.empty()) out["common"][notice.common] = notice.common_value;
  out["since"] = notice.since > 0 ? Json(to_iso8601(notice.since)) : Json();
  return out;
}

Json webhook_json(const Notice& notice, const std::string& cluster, WebhookShape shape) {
  if (shape == WebhookShape::plain) return plain_json(notice, cluster);
  const std::string text = text_of(notice, cluster);
  if (shape == WebhookShape::slack) return {{"text", for_slack(text)}};
  Json lines = Json::array();
  bool first = true;
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) continue;
    Json block = {{"type", "TextBlock"}, {"text", line}, {"wrap", true}};
    if (first) block["weight"] = "bolder";
    first = false;
    lines.push_back(std::move(block));
  }
  const Json card = {{"type", "AdaptiveCard"}, {"version", "1.4"}, {"body", lines}};
  Json attachment = {{"contentType", "application/vnd.microsoft.card.adaptive"}};
  attachment["content"] = card;
  Json attachments = Json::array();
  attachments.push_back(std::move(attachment));
  return {{"type", "message"}, {"attachments", attachments}};
}

std::string mail_of(const Notice& notice, const std::string& cluster, const Mail& mail) {
  std::string to;
  for (const std::string& address : mail.to) to += (to.empty() ? "" : ", ") + address;
  std::string out;
  if (!mail.from.empty()) out += "From: " + mail.from + "\n";
  out += "To: " + to + "\n";
  out += "Subject: " + mail_header(headline(notice, cluster)) + "\n";
  out += fmt::format("Message-ID: <{}@{}.muster>\n", notice.id, cluster);
  out += "Auto-Submitted: auto-generated\n";
  out += "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n";
  return out + "\n" + text_of(notice, cluster);
}

}  // namespace muster::notices
