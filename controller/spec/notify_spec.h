// `notify:`: who gets notices, of what and when (docs/notify.md). Plain values, no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster {

enum class ReceiverWay { webhook, mail, program };
enum class WebhookShape { plain, slack, teams };

struct Webhook {
  std::string url;    // "https://HOST[:PORT]/PATH", or "secret:NAME" if the whole URL is a secret
  std::string proxy;  // "http://HOST[:PORT]"; empty: none
  WebhookShape shape = WebhookShape::plain;
  std::map<std::string, std::string> headers;  // name -> "secret:NAME"
};
struct Mail {
  std::vector<std::string> to;
  std::string from;
};

// Minutes of the day in the site's time zone. `until` may be before `from`: over midnight.
struct QuietHours {
  int from = 0, until = 0;  // equal: none
  bool contains(int minute) const {
    if (from <= until) return from <= minute && minute < until;
    return minute >= from || minute < until;
  }
};

struct Receiver {
  std::string name;
  ReceiverWay way = ReceiverWay::webhook;
  Webhook webhook = {};
  Mail mail = {};
  std::string program = {};          // in /etc/muster/notify.d
  std::set<std::string> kinds = {};  // cause_kind_word(); empty: all
  bool only_urgent = false;
  QuietHours quiet = {};
  int daily = -1;  // minute of the day of the daily line; -1: none
};

struct NotifySpec {
  std::set<std::string> urgent;  // kinds
  std::map<std::string, Receiver> receivers;
};

}  // namespace muster
