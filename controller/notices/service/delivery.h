// Delivers one notice to one receiver, once: a POST, a mail by sendmail, or a program. Thread: any; blocks
// for at most 5 s to look up a name and kDelivery after that. After an Error the receiver may have the notice
// all the same, which it then knows by its id. conflict: it refuses this notice, and would again (HTTP 400,
// 413 and the like). failed: it answered, and the notice may be the reason. timeout: it was sent, and not
// answered in time. unavailable: it is away.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "controller/notices/notice.h"
#include "controller/spec/notify_spec.h"

namespace muster {

constexpr DurationMs kDelivery = 15 * kSecond;

struct DeliveryPaths {
  std::string sendmail = "/usr/sbin/sendmail";
  std::string programs = "/etc/muster/notify.d";
};

// `receiver`: with its secrets in place of their names. No message of an Error has them, but for the host
// of a secret URL.
Status deliver(const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
               const DeliveryPaths& paths);

}  // namespace muster
