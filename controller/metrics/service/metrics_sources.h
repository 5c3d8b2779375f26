// Where MetricsService::Parts come from in the daemon. Thread: the reactor's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "controller/causes/cause.h"
#include "controller/current/current_spec.h"
#include "controller/image/service/image_service.h"
#include "controller/metrics/controller_metrics.h"
#include "controller/trust/authority.h"

namespace muster {

// The ends of the CA's certificate and the server's, by "ca" and "server".
std::map<std::string, TimeMs> controller_certificates(const Authority& authority);
// Of the images that the spec declares. Looks at one file per image.
std::vector<ImageMetrics> image_metrics(const ImageService& images, CurrentSpec& spec);
std::map<CauseKind, int64_t> cause_counts(const std::vector<Cause>& causes);

}  // namespace muster
