// An ipmitool that prints anything, and a serial console. The input is what the driver is to do (bmc.h),
// and then what the program prints at each call, each after a line "---": a line with its exit status, then
// its output, of which lines that begin with "! " are errors. After the last one it begins again. All of
// the bytes are a console's, too.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/split.h"
#include "controller/power/ipmi.h"
#include "controller/power/ipmitool.h"
#include "controller/power/service/consoles.h"
#include "tests/fuzz/bmc.h"

namespace muster::fuzz {
namespace {

constexpr DurationMs kCall = 40 * kSecond, kSession = 2 * kSecond;  // a session: what each call takes

Output output_of(const std::string& text) {
  const size_t end = text.find('\n');
  Output out{std::atoi(text.substr(0, std::min<size_t>(end, 3)).c_str()), "", ""};
  if (end == std::string::npos) return out;
  for (const auto& line : split_lines(text.substr(end + 1)))
    (line.starts_with("! ") ? out.err += line.substr(2) : out.out += line) += "\n";
  return out;
}

class Ipmitool : public Process {
 public:
  Ipmitool(std::vector<std::string> prints, Clock clock)
      : prints_(std::move(prints)), clock_(std::move(clock)) {}
  Result<Output> run(const Command& command) override {
    *clock_ += kSession;
    demand(command.max_output > 0, "output without a limit");
    if (prints_.size() < 2) return fail(Code::timeout, "killed");
    next_ = next_ + 1 < prints_.size() ? next_ + 1 : 1;  // the first piece says what is to be done
    return output_of(prints_[next_]);
  }

 private:
  const std::vector<std::string> prints_;
  const Clock clock_;
  size_t next_ = 0;
};

void drive(std::string_view bytes) {
  auto prints = pieces_of(bytes);
  const std::string what = trim(prints.front());
  const Clock clock = new_clock();
  const auto power =
      make_ipmi(bmc_of_node01(clock), waiter_on(clock), std::make_shared<Ipmitool>(std::move(prints), clock));
  carry_out(*power, what, kCall);
}

// What a console prints is kept without its one-time tokens, in whatever pieces it arrives.
void listen(std::string_view bytes) {
  TokenMask whole, parts;
  const std::string kept = whole.pass(bytes);
  std::string pieced;
  in_steps(bytes, [&](std::string_view piece) { pieced += parts.pass(piece); });
  demand(kept == pieced, "a console that is kept otherwise in pieces");
  constexpr std::string_view kBefore = "muster.token=";
  for (size_t at = kept.find(kBefore); at != std::string::npos; at = kept.find(kBefore, at + 1))
    demand(kept.compare(at + kBefore.size(), 3, "***") == 0, "a token that is kept");
  for (const auto& line : split_lines(kept)) (void)panic_in(line);
  (void)IpmiTool::login_of(kept);
}

}  // namespace

void ipmi_fuzz(std::string_view bytes) {
  drive(bytes);
  listen(bytes);
}

}  // namespace muster::fuzz
