#include "sys/worker_pool.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <utility>

#include "sys/contain.h"

namespace muster {

struct WorkerPool::Threads {
  explicit Threads(int count) : pool(static_cast<size_t>(count)) {}
  boost::asio::thread_pool pool;
};

WorkerPool::WorkerPool(int threads) : threads_(std::make_unique<Threads>(threads)) {}

WorkerPool::~WorkerPool() {
  threads_->pool.stop();
  threads_->pool.join();
}

void WorkerPool::run(std::function<void()> work) {
  boost::asio::post(threads_->pool, [work = std::move(work)] { contain_exceptions("work of a pool", work); });
}

}  // namespace muster
