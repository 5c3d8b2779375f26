// Apart from nvml.cc: muster-accept is static and reads what another program wrote, without the loader.
#include "kernels/nvml.h"

namespace muster::kernels {

Json to_json(const NvmlReading& reading) {
  return {{"driver", reading.driver},
          {"counts", reading.counts},
          {"models", reading.models},
          {"notes", reading.notes}};
}

Result<NvmlReading> nvml_from_json(const Json& json) {
  NvmlReading out;
  JsonReader r(json, "nvml");
  r.get("driver", out.driver);
  r.get("counts", out.counts);
  r.get("models", out.models);
  r.get("notes", out.notes);
  TRY_(r.finish());
  return out;
}

}  // namespace muster::kernels
