// Images: what is built, and building with progress as it goes (one JSON object per line; fraction 0: why it is built).
#include "controller/api/handlers.h"
#include "controller/bringup.h"
#include "controller/current_spec.h"
#include "controller/event_log.h"
#include "controller/image_service.h"
#include "controller/services.h"

namespace muster::api {

void list_images(const CallPtr& call) {
  const auto spec = call->services.spec.get();
  call->ok({{"images", call->services.images.list(spec.ok() ? &(*spec)->spec : nullptr)}});
}

void build_image(const CallPtr& call) {
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  JsonReader r(*body, "request");
  std::string name;
  bool rebuild = false;
  r.get("name", name);
  r.get_or("rebuild", rebuild, false);
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  // The name becomes a folder's name.
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos)
    return call->error(fail(Code::invalid, "not an image's name: '" + name + "'"));
  const auto playbooks = call->services.bringup.playbooks();
  if (!playbooks.ok()) return call->error(playbooks.error());
  HttpResponse head;
  head.headers["Content-Type"] = "application/x-ndjson";
  call->responder->start_stream(std::move(head));
  const auto line = [call](const Json& json) { call->responder->write(json.dump() + "\n"); };
  const auto spec = call->services.spec.get();
  call->services.images.build(
      spec.ok() ? &(*spec)->spec : nullptr, *playbooks, name, rebuild,
      [line](const std::string& what, double fraction) { line({{"what", what}, {"fraction", fraction}}); },
      [call, line, name](Result<ImageService::Image> image) {
        if (image.ok()) {
          if (!image->reused) call->services.events.add(0, "", "image", {{"name", name}, {"digest", image->digest}});
          line({{"what", "built"}, {"fraction", 1}, {"digest", image->digest}, {"reused", image->reused}});
        } else {
          line({{"error", error_json(image.error())}});
        }
        call->responder->end_stream();
      });
}

}  // namespace muster::api
