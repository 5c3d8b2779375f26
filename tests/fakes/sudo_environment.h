// SUDO_USER as it is during a test; null: not set. No thread that reads the environment may run meanwhile.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace muster::testing {

class SudoUser {
 public:
  explicit SudoUser(const char* name) {
    if (const char* before = std::getenv(kVariable)) before_ = before;
    set(name);
  }
  ~SudoUser() { set(before_ ? before_->c_str() : nullptr); }
  SudoUser(const SudoUser&) = delete;
  SudoUser& operator=(const SudoUser&) = delete;

 private:
  static constexpr const char* kVariable = "SUDO_USER";
  static void set(const char* name) {
    if (name)
      ::setenv(kVariable, name, 1);
    else
      ::unsetenv(kVariable);
  }

  std::optional<std::string> before_;
};

}  // namespace muster::testing
