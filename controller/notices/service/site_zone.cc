#include "controller/notices/service/site_zone.h"

#include "sys/zone_files.h"

namespace muster {

const TimeZone& SiteZone::of(const std::string& name) {
  if (name_ == name && error_.empty()) return zone_;
  name_ = name;
  const auto read = read_zone(files_, name);
  zone_ = read.ok() ? *read : TimeZone();
  error_ = read.ok() ? "" : read.error().message;
  return zone_;
}

}  // namespace muster
