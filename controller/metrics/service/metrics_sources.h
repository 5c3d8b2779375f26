// Where MetricsService::Parts come from in the daemon. Thread: the reactor's.
#pragma once

#include <vector>

#include "controller/current/current_spec.h"
#include "controller/image/service/image_service.h"
#include "controller/metrics/controller_metrics.h"

namespace muster {

// Of the images that the spec declares. Looks at one file per image.
std::vector<ImageMetrics> image_metrics(const ImageService& images, CurrentSpec& spec);

}  // namespace muster
