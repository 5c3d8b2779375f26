#include "controller/notices/service/site_zone.h"

namespace muster {

const TimeZone& SiteZone::of(const std::string& name) {
  if (name_ == name && error_.empty()) return zone_;
  name_ = name;
  zone_ = TimeZone();
  error_.clear();
  const std::string path = name.empty() ? "/etc/localtime" : "/usr/share/zoneinfo/" + name;
  if (name.empty() && !files_.exists(path)) return zone_;  // that is UTC
  const auto file = files_.read(path);
  const auto read = file.ok() ? TimeZone::read(*file) : Result<TimeZone>(file.error());
  if (read.ok())
    zone_ = *read;
  else
    error_ = path + ": " + read.error().message;
  return zone_;
}

}  // namespace muster
