// Separate from nvml.cc, since muster-accept is statically linked: it only parses the output of
// muster-accept-nvml, without the dynamic loader.
#include "kernels/counters/nvml.h"

namespace muster::kernels {

namespace {

Json to_json(const NvmlHolder& holder) {
  Json out = {{"gpu", holder.gpu}, {"pid", holder.pid}};
  if (holder.mib) out["mib"] = *holder.mib;
  return out;
}

Status read_holders(const Json& list, NvmlReading& out) {
  if (list.is_null()) return Ok{};
  if (!list.is_array()) return fail(Code::invalid, "nvml.holders: expected a list");
  out.holders.emplace();
  for (const Json& one : list) {
    NvmlHolder holder;
    JsonReader r(one, "nvml.holders");
    uint64_t mib = 0;
    r.get("gpu", holder.gpu);
    r.get("pid", holder.pid);
    r.get_or("mib", mib, uint64_t{0});
    TRY_(r.finish());
    if (one.contains("mib")) holder.mib = mib;
    out.holders->push_back(std::move(holder));
  }
  return Ok{};
}

}  // namespace

Json to_json(const NvmlReading& reading) {
  Json out = {{"driver", reading.driver},
              {"counts", reading.counts},
              {"models", reading.models},
              {"notes", reading.notes}};
  if (!reading.holders) return out;
  out["holders"] = Json::array();
  for (const auto& holder : *reading.holders) out["holders"].push_back(to_json(holder));
  return out;
}

Result<NvmlReading> nvml_from_json(const Json& json) {
  NvmlReading out;
  JsonReader r(json, "nvml");
  r.get("driver", out.driver);
  r.get("counts", out.counts);
  r.get("models", out.models);
  r.get("notes", out.notes);
  const Json& holders = r.raw("holders");
  TRY_(r.finish());
  TRY_(read_holders(holders, out));
  return out;
}

}  // namespace muster::kernels
