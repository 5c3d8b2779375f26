// The section `notify:`: receivers of notices, each reached in one way.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/secrets.h"
#include "controller/causes/cause.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

constexpr size_t kMostReceivers = 16, kMostAddresses = 32;
constexpr int kMinutesOfDay = 24 * 60;

std::vector<std::string> known_kinds() {
  std::vector<std::string> out;
  for (const auto& [kind, word] : kCauseKinds) out.emplace_back(word);
  return out;
}

std::set<std::string> usually_urgent() {
  return {cause_kind_word(CauseKind::rollout_stopped), cause_kind_word(CauseKind::node_silent),
          cause_kind_word(CauseKind::controller)};
}

// Control characters and blanks would end a header or an argument.
bool is_mail_address(const std::string& text) {
  return !text.empty() && text.size() <= 254 && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > 0x20 && c < 0x7f && !std::strchr("<>,;:\"\\()[]", c);
         });
}

// "https://HOST[:PORT]/PATH" -> "https://HOST[:PORT]".
std::string without_path(const std::string& url) {
  const size_t host = url.find("://");
  return host == std::string::npos ? url : url.substr(0, url.find_first_of("/?#", host + 3));
}

bool is_url(const std::string& url) {
  const bool clean =
      std::all_of(url.begin(), url.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  return clean && url.find('#') == std::string::npos && !url_host(without_path(url)).empty();
}

}  // namespace

void SpecReader::read_notify() {
  spec_.notify.urgent = usually_urgent();
  const YamlNode* section = root_.find("notify");
  if (!section || !section->is_map()) return;
  if (child(section, "urgent")) spec_.notify.urgent.clear();
  read_kinds(section, "notify", "urgent", spec_.notify.urgent);
  const YamlNode* receivers = child(section, "receivers");
  if (!receivers || !receivers->is_map()) return;
  if (receivers->entries.size() > kMostReceivers)
    error(*receivers, "notify.receivers", fmt::format("there can be at most {} receivers", kMostReceivers));
  for (const YamlEntry& entry : receivers->entries)
    if (entry.value.is_map()) read_receiver(entry, "notify.receivers." + entry.key);
}

void SpecReader::read_kinds(const YamlNode* section, const std::string& path, const char* key,
                            std::set<std::string>& out) {
  const YamlNode* list = child(section, key);
  if (!list || !list->is_list()) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& at = list->items[i];
    if (!at.is_text()) continue;
    must_be_known(at, fmt::format("{}.{}[{}]", path, key, i), "kind", at.text, known_kinds());
    out.insert(at.text);
  }
}

void SpecReader::read_receiver(const YamlEntry& entry, const std::string& path) {
  const YamlNode& section = entry.value;
  Receiver out;
  out.name = entry.key;
  read_way(entry, path, out);
  read_kinds(&section, path, "kinds", out.kinds);
  out.only_urgent = yaml_bool(&section, "only_urgent", false);
  if (const YamlNode* at = child(&section, "quiet"); at && at->is_text()) {
    const size_t dash = at->text.find('-');
    const std::string where = path + ".quiet";
    out.quiet.from = read_time_of_day(*at, where, at->text.substr(0, dash));
    if (out.quiet.from >= 0)
      out.quiet.until =
          read_time_of_day(*at, where, dash == std::string::npos ? "" : at->text.substr(dash + 1));
    if (out.quiet.from >= 0 && out.quiet.from == out.quiet.until)
      error(*at, where, "begins and ends at the same time: leave the key out for no quiet hours");
  }
  if (const YamlNode* at = child(&section, "daily"); at && at->is_text())
    out.daily = read_time_of_day(*at, path + ".daily", at->text);
  if (out.only_urgent && !out.kinds.empty() &&
      std::none_of(out.kinds.begin(), out.kinds.end(),
                   [&](const std::string& kind) { return spec_.notify.urgent.count(kind) > 0; }))
    error(*child(&section, "kinds"), path + ".kinds",
          "none of these is in `notify.urgent`, and `only_urgent` leaves out all others");
  spec_.notify.receivers[out.name] = std::move(out);
}

int SpecReader::read_time_of_day(const YamlNode& at, const std::string& path, const std::string& text) {
  const auto digits = [&](size_t from) {
    return text.substr(from, 2).find_first_not_of("0123456789") == std::string::npos;
  };
  if (text.size() == 5 && text[2] == ':' && digits(0) && digits(3)) {
    const int hour = std::stoi(text.substr(0, 2)), minute = std::stoi(text.substr(3));
    if (hour * 60 + minute < kMinutesOfDay && minute < 60) return hour * 60 + minute;
  }
  error(at, path,
        fmt::format("'{}' has no times of day such as \"22:00\" (in quotation marks, hours from 00 to 23)",
                    at.text));
  return -1;
}

void SpecReader::read_way(const YamlEntry& entry, const std::string& path, Receiver& out) {
  const YamlNode* webhook = child(&entry.value, "webhook");
  const YamlNode* mail = child(&entry.value, "mail");
  const YamlNode* program = child(&entry.value, "program");
  if ((webhook != nullptr) + (mail != nullptr) + (program != nullptr) != 1)
    return error(entry.value, path, "needs exactly one of `webhook`, `mail` and `program`");
  if (webhook && webhook->is_map()) read_webhook(*webhook, path + ".webhook", out.webhook);
  if (mail) {
    out.way = ReceiverWay::mail;
    if (mail->is_map()) read_mail(*mail, path + ".mail", out.mail);
  }
  if (program) {
    out.way = ReceiverWay::program;
    out.program = program->text;
  }
}

void SpecReader::read_webhook(const YamlNode& section, const std::string& path, Webhook& out) {
  const std::string shape = text(&section, "shape");
  out.shape = shape == "slack"   ? WebhookShape::slack
              : shape == "teams" ? WebhookShape::teams
                                 : WebhookShape::plain;
  if (const YamlNode* at = child(&section, "url"); at && at->is_text()) {
    out.url = at->text;
    if (at->text.find('@') != std::string::npos)
      error(*at, path + ".url", "a URL with a user or password is readable in the spec: use `headers`");
    else if (!is_secret_reference(at->text) && !is_url(at->text))
      error(*at, path + ".url",
            fmt::format("'{}' is neither a URL such as https://hooks.example/muster nor secret:NAME",
                        at->text));
  }
  if (const YamlNode* at = child(&section, "proxy"); at && at->is_text()) {
    out.proxy = at->text;
    if (!at->text.starts_with("http://") || url_host(at->text).empty())
      error(*at, path + ".proxy", fmt::format("'{}' is not a proxy such as http://10.0.0.1:3128", at->text));
  }
  if (const YamlNode* headers = child(&section, "headers"); headers && headers->is_map())
    for (const YamlEntry& header : headers->entries) {
      if (header.key == "Content-Type" || header.key == "Content-Length" || header.key == "Host")
        error(header.value, path + ".headers." + header.key, "muster sets this header itself");
      out.headers[header.key] = header.value.text;
    }
}

void SpecReader::read_mail(const YamlNode& section, const std::string& path, Mail& out) {
  const auto address = [&](const YamlNode& at, const std::string& where) {
    if (!is_mail_address(at.text))
      error(at, where, fmt::format("'{}' is not an address such as root or ops@site.example", at.text));
    return at.text;
  };
  const YamlNode* to = child(&section, "to");
  for (size_t i = 0; to && i < to->items.size(); ++i)
    if (to->items[i].is_text()) out.to.push_back(address(to->items[i], fmt::format("{}.to[{}]", path, i)));
  if (out.to.size() > kMostAddresses)
    error(*to, path + ".to", fmt::format("there can be at most {} addresses", kMostAddresses));
  if (const YamlNode* from = child(&section, "from"); from && from->is_text())
    out.from = address(*from, path + ".from");
}

}  // namespace muster
