// The time zone of the site: that of the spec, else the controller host's. Thread: the reactor's; reads a
// small file when the name changes, and each time while that fails.
#pragma once

#include <optional>
#include <string>

#include "base/time_zone.h"
#include "sys/os.h"

namespace muster {

class SiteZone {
 public:
  explicit SiteZone(Files files = Files("/")) : files_(std::move(files)) {}
  // "Europe/Berlin", or "" for that of /etc/localtime. UTC if it cannot be read.
  const TimeZone& of(const std::string& name);
  // Why that of the last call cannot be read; "": it was.
  const std::string& error() const { return error_; }

 private:
  Files files_;
  std::optional<std::string> name_;
  TimeZone zone_;
  std::string error_;
};

}  // namespace muster
