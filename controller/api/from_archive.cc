#include "controller/api/from_archive.h"

#include <memory>
#include <utility>

#include "base/reactor.h"
#include "controller/services.h"

namespace muster::api {

void answer_from_archive(const CallPtr& call, FromArchive make) {
  struct Work {
    std::shared_ptr<RunArchive> archive;
    FromArchive make;
    Result<HttpResponse> answer = fail(Code::failed, "nothing was read: see the controller's log");
  };
  const auto work = std::make_shared<Work>(Work{call->services.store.archive(), std::move(make)});
  call->services.reactor.offload([work] { work->answer = work->make(*work->archive); },
                                 [call, work] {
                                   if (!work->answer.ok()) return call->error(work->answer.error());
                                   call->responder->respond(std::move(work->answer).value());
                                 });
}

}  // namespace muster::api
