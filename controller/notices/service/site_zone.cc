#include "controller/notices/service/site_zone.h"

#include "sys/log.h"

namespace muster {

const TimeZone& SiteZone::of(const std::string& name) {
  if (name_ == name) return zone_;
  name_ = name;
  zone_ = TimeZone();
  const std::string path = name.empty() ? "/etc/localtime" : "/usr/share/zoneinfo/" + name;
  if (name.empty() && !files_.exists(path)) return zone_;  // that is UTC
  const auto file = files_.read(path);
  const auto read = file.ok() ? TimeZone::read(*file) : Result<TimeZone>(file.error());
  if (read.ok())
    zone_ = *read;
  else
    log::warning("the time zone cannot be read, quiet hours and daily lines go by UTC",
                 {{"file", path}, {"error", read.error().message}});
  return zone_;
}

}  // namespace muster
