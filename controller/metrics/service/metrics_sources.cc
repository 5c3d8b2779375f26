#include "controller/metrics/service/metrics_sources.h"

#include "sys/pki.h"

namespace muster {

std::map<std::string, TimeMs> controller_certificates(const Authority& authority) {
  std::map<std::string, TimeMs> out;
  for (const auto& [name, pem] :
       {std::pair<const char*, const std::string&>{"ca", authority.ca_pem()},
        std::pair<const char*, const std::string&>{"server", authority.server().certificate_pem}})
    if (const auto info = pki::read_certificate(pem); info.ok()) out[name] = info->not_after;
  return out;
}

std::vector<ImageMetrics> image_metrics(const ImageService& images, CurrentSpec& spec) {
  std::vector<ImageMetrics> out;
  const auto current = spec.get();
  if (!current.ok()) return out;
  for (const auto& [name, declared] : (*current)->spec.images)
    out.push_back({name, images.built_at(name), images.last_build_failed(name)});
  return out;
}

std::map<CauseKind, int64_t> cause_counts(const std::vector<Cause>& causes) {
  std::map<CauseKind, int64_t> out;
  for (const Cause& cause : causes) ++out[cause.kind];
  return out;
}

}  // namespace muster
