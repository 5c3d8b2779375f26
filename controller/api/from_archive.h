// Responses made from stored runs that take long to make: a worker thread reads, parses and renders the runs.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/alive.h"
#include "base/result.h"
#include "controller/api/api.h"
#include "controller/bringup/run_viewer.h"
#include "controller/ports/store.h"
#include "sys/http/http.h"
#include "sys/reactor.h"

namespace muster::api {

// One response at a time, as each can take seconds of a worker and a gigabyte. Thread: the reactor's.
class ArchiveAnswers {
 public:
  static constexpr size_t kMostWaiting = 16;
  // Runs on a worker thread, so it has no access to the Call, which belongs to the reactor's thread.
  using Make = std::function<Result<HttpResponse>(RunArchive&)>;

  ArchiveAnswers(RealReactor& reactor, Store& store) : reactor_(reactor), store_(store) {}
  ~ArchiveAnswers() { alive_.end(); }
  ArchiveAnswers(const ArchiveAnswers&) = delete;
  ArchiveAnswers& operator=(const ArchiveAnswers&) = delete;

  // The views of active runs, for use in a Make function.
  const std::shared_ptr<RunViewer>& viewer() const { return viewer_; }
  // Runs `make` and responds with its result; unavailable (503) if kMostWaiting calls are already waiting.
  void answer(const CallPtr& call, Make make);

 private:
  struct Work {
    CallPtr call;
    Make make;
    std::shared_ptr<RunArchive> archive = nullptr;
    Result<HttpResponse> answer = fail(Code::failed, "the stored run was not read: see musterd's log");
  };
  void next();

  RealReactor& reactor_;
  Store& store_;
  const std::shared_ptr<RunViewer> viewer_ = std::make_shared<RunViewer>();
  std::deque<std::shared_ptr<Work>> waiting_;
  bool busy_ = false;
  Alive alive_;
};

}  // namespace muster::api
