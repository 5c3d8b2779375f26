// Answers from stored runs that take long: a worker reads, parses and renders them.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/http.h"
#include "base/reactor.h"
#include "base/result.h"
#include "controller/api/api.h"
#include "controller/bringup/run_viewer.h"
#include "controller/store/store.h"

namespace muster::api {

// One at a time: for a large cluster each occupies a worker for seconds, and a gigabyte of memory. Thread:
// the reactor's.
class ArchiveAnswers {
 public:
  static constexpr size_t kMostWaiting = 16;
  // Thread: any. Has no access to the call, which belongs to the reactor's thread.
  using Make = std::function<Result<HttpResponse>(RunArchive&)>;

  ArchiveAnswers(RealReactor& reactor, Store& store) : reactor_(reactor), store_(store) {}
  ~ArchiveAnswers() { *alive_ = false; }
  ArchiveAnswers(const ArchiveAnswers&) = delete;
  ArchiveAnswers& operator=(const ArchiveAnswers&) = delete;

  // The views of active runs, for a Make.
  const std::shared_ptr<RunViewer>& viewer() const { return viewer_; }
  // unavailable (503) if kMostWaiting are waiting already.
  void answer(const CallPtr& call, Make make);

 private:
  struct Work {
    CallPtr call;
    Make make;
    std::shared_ptr<RunArchive> archive = nullptr;
    Result<HttpResponse> answer = fail(Code::failed, "nothing was read: see musterd's log");
  };
  void next();

  RealReactor& reactor_;
  Store& store_;
  const std::shared_ptr<RunViewer> viewer_ = std::make_shared<RunViewer>();
  std::deque<std::shared_ptr<Work>> waiting_;
  bool busy_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::api
