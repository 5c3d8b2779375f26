#include "controller/metrics/service/metrics_sources.h"

namespace muster {

std::vector<ImageMetrics> image_metrics(const ImageService& images, CurrentSpec& spec) {
  std::vector<ImageMetrics> out;
  const auto current = spec.get();
  if (!current.ok()) return out;
  for (const auto& [name, declared] : (*current)->spec.images)
    out.push_back({name, images.built_at(name), images.last_build_failed(name)});
  return out;
}

}  // namespace muster
