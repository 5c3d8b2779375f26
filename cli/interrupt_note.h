// What Ctrl-C says before it ends this program, which only follows what the controller does: that this goes
// on, and how to get back to it. One object at a time. Thread: the main thread; the signal may arrive on
// any.
#pragma once

#include <csignal>
#include <memory>
#include <string>

namespace muster::cli {

class InterruptNote {
 public:
  // `words`: a line for standard error. Where SIGINT is ignored or handled already, this has no effect.
  explicit InterruptNote(const std::string& words);
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;
  void set(const std::string& words);

 private:
  struct sigaction before_ = {};
  bool installed_ = false;
  // The handler may be reading the text before: it is kept until the next one.
  std::unique_ptr<const std::string> text_, text_before_;
};

}  // namespace muster::cli
