// One call to the controller for each of many nodes, several at a time, with each result as it comes, and a
// word on what is waited for when none does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace muster::cli {

// Each call may hold one of the controller's 12 workers until its BMC answers or is given up.
constexpr size_t kCallsAtOnce = 8;
// Without a result for this long, what is waited for is reported; then after twice that, and so on.
constexpr DurationMs kQuiet = 5 * kSecond;

using NodeCall = std::function<Result<Json>(const std::string& node)>;

struct CallResult {
  size_t at;  // the node's place in the list
  Result<Json> result;
};
// Runs calls; the real one in threads.
class CallRunner {
 public:
  virtual ~CallRunner() = default;
  virtual void start(size_t at, const std::string& node) = 0;
  // The next result, of any call; nullopt: none came within that time.
  virtual std::optional<CallResult> next(DurationMs within) = 0;
};

struct CallReports {
  std::function<void(const std::string& node, const Result<Json>& result)> finished;
  std::function<void(const std::vector<std::string>& under_way, size_t not_begun)> waiting;
};

// Returns the results in the order of the nodes.
std::vector<Result<Json>> call_each(const std::vector<std::string>& nodes, CallRunner& runner,
                                    const CallReports& reports);
// The same, with a thread for each call that is under way. `call` runs in these threads.
std::vector<Result<Json>> call_each(const std::vector<std::string>& nodes, const NodeCall& call,
                                    const CallReports& reports);

// 0: all succeeded; kPartial: some did; else the code of the error, kFailed where they differ.
int exit_for_calls(const std::vector<Result<Json>>& results);

}  // namespace muster::cli
