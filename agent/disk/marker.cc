#include "agent/disk/marker.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"

namespace muster {

Result<ImageMarker> read_marker(const BlockDevice& disk) {
  TRY(const std::string block, disk.read_at(kMarkerOffset, kMarkerSize));
  const size_t line = block.find('\n');
  const size_t end = block.find('\0');
  if (block.rfind("muster-image sha256:", 0) != 0 || line == std::string::npos || end == std::string::npos ||
      line > end)
    return fail(Code::not_found, "no marker of muster");
  const std::string body = block.substr(line + 1, end - line - 1);
  if ("muster-image " + sha256(body) != block.substr(0, line))
    return fail(Code::not_found, "muster's marker is not intact");
  TRY(const Json json, parse_json(body));
  ImageMarker m;
  JsonReader r(json, "marker");
  r.allow_unknown();
  r.get("node", m.node);
  r.get("stage", m.stage);
  r.get("digest", m.digest);
  r.get("slot", m.slot);
  r.get("current", m.current);
  r.get("approved", m.approved);
  r.get("fresh", m.fresh);
  r.get_or("cluster", m.cluster, std::string());
  r.get_or("authority", m.authority, std::string());
  r.get_or("order", m.order, std::string());
  TRY_(r.finish());
  return m;
}

Status write_marker(const BlockDevice& disk, const ImageMarker& m) {
  const std::string body = dump_json(Json{{"node", m.node},
                                          {"stage", m.stage},
                                          {"digest", m.digest},
                                          {"slot", m.slot},
                                          {"current", m.current},
                                          {"approved", m.approved},
                                          {"fresh", m.fresh},
                                          {"cluster", m.cluster},
                                          {"authority", m.authority},
                                          {"order", m.order}});
  std::string block = "muster-image " + sha256(body) + "\n" + body;
  if (block.size() >= kMarkerSize) return fail(Code::invalid, "marker too long");
  block.resize(kMarkerSize, '\0');
  TRY_(disk.write_at(kMarkerOffset, block));
  return disk.sync();
}

}  // namespace muster
