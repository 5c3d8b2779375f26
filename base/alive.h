// Alive: lets callbacks that may outlive their owner do nothing then. The owner has one as a member, which
// ends with it; an owner whose destructor still calls others ends it first. Thread: the flag is read and
// ended on the owner's thread; copies of a Watch may be held and dropped on any.
#pragma once

#include <memory>
#include <utility>

namespace muster {

class Alive {
 public:
  Alive() = default;
  ~Alive() { end(); }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;

  void end() { *flag_ = false; }

  // Returns a callback that does `work` while the owner exists, and else nothing.
  template <typename Work>
  auto wrap(Work work) const {
    return [flag = flag_, work = std::move(work)](auto&&... arguments) mutable {
      if (*flag) work(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // For work that must check again after a call that may end the owner: `if (!*alive) return;`.
  class Watch {
   public:
    explicit Watch(std::shared_ptr<const bool> flag) : flag_(std::move(flag)) {}
    bool operator*() const { return *flag_; }

   private:
    std::shared_ptr<const bool> flag_;
  };
  Watch watch() const { return Watch(flag_); }

 private:
  std::shared_ptr<bool> flag_ = std::make_shared<bool>(true);
};

}  // namespace muster
