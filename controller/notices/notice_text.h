// A notice as receivers get it: JSON of muster's own, of Slack and of Teams, and text. Pure functions, no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "controller/notices/notice.h"
#include "controller/spec/notify_spec.h"

namespace muster::notices {

// A text of at most `most` bytes, at least 3: where it is cut, between two characters, "…" says so.
std::string shortened(std::string_view text, size_t most);
// One line: "[gaggle] over: gpu07 is silent (after 3 h 2 min)".
std::string headline(const Notice& notice, const std::string& cluster);
// Headline, reason, nodes, and the command to type.
std::string text_of(const Notice& notice, const std::string& cluster);
// docs/notify.md, "JSON".
Json plain_json(const Notice& notice, const std::string& cluster);
Json webhook_json(const Notice& notice, const std::string& cluster, WebhookShape shape);
// With its headers, for sendmail's standard input.
std::string mail_of(const Notice& notice, const std::string& cluster, const Mail& mail);

}  // namespace muster::notices
