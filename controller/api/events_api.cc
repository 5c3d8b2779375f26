// Server-sent events: the live log.
#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/link/event_log.h"

namespace muster::api {

Json event_json(const EventRow& row) {
  auto data = parse_json(row.json);
  return {{"seq", row.seq},   {"time", row.time},
          {"run", row.run},   {"node", row.node},
          {"kind", row.kind}, {"data", data.ok() ? std::move(data).value() : Json(row.json)}};
}

void follow_events(const CallPtr& call) {
  std::string after = call->query("after", "");
  const auto resumed = call->request.headers.find("Last-Event-ID");
  if (resumed != call->request.headers.end()) after = resumed->second;
  HttpResponse head;
  head.headers["Content-Type"] = "text/event-stream";
  head.headers["Cache-Control"] = "no-store";
  call->responder->start_stream(std::move(head));
  const int64_t from = after.empty() ? -1 : std::strtoll(after.c_str(), nullptr, 10);
  call->services.events.subscribe(
      from, NodeName(call->query("node")), [call](const std::vector<EventRow>& rows) {
        if (rows.empty()) return call->responder->write(": still here\n\n");
        std::string chunk;
        // The kind comes from a node: with a line break in it, a node could forge events.
        for (const auto& row : rows)
          chunk += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", row.seq,
                               row.kind.find_first_of("\r\n") == std::string::npos ? row.kind : "log",
                               dump_json(event_json(row)));
        return call->responder->write(std::move(chunk));
      });
}

void node_logs(const CallPtr& call) {
  const int64_t after = std::strtoll(call->query("after", "0").c_str(), nullptr, 10);
  const auto limit = static_cast<size_t>(std::clamp(std::atoi(call->query("limit", "500").c_str()), 1, 5000));
  const auto rows = call->services.store.events(after, limit, NodeName(call->arg("node")));
  if (!rows.ok()) return call->error(rows.error());
  Json list = Json::array();
  for (const auto& row : *rows) list.push_back(event_json(row));
  call->ok({{"events", list}});
}

}  // namespace muster::api
