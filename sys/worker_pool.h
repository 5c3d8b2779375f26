// A fixed number of threads for work that blocks, apart from the reactor's own pool, so that what is slow in
// one does not hold up the other. Thread: any.
#pragma once

#include <functional>
#include <memory>

namespace muster {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();  // waits for the work that runs, and drops what has not begun
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void run(std::function<void()> work);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace muster
