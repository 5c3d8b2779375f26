// The time zone of the site: that of the spec, else the controller host's. Thread: the reactor's; reads a
// small file when the name changes.
#pragma once

#include <optional>
#include <string>

#include "base/time_zone.h"
#include "sys/os.h"

namespace muster {

class SiteZone {
 public:
  explicit SiteZone(Files files = Files("/")) : files_(std::move(files)) {}
  // "Europe/Berlin", or "" for that of /etc/localtime. UTC if it cannot be read, which is logged.
  const TimeZone& of(const std::string& name);

 private:
  Files files_;
  std::optional<std::string> name_;
  TimeZone zone_;
};

}  // namespace muster
