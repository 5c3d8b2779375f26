// What `muster accept --hosts` prints before the load begins, in order. Each host that is left out is a line.
// The first few are shown at once and the others behind what will not be measured, which is so among the
// first ten lines however many hosts are left out. Prints nothing itself. Thread: the main thread.
#pragma once

#include <string>
#include <vector>

#include "controller/hosts/forecast.h"
#include "controller/hosts/session.h"

namespace muster::cli {

// Of a session that does not measure yet: how many hosts were reached, and which all others wait for.
std::string reaching_line(const AcceptSession::Progress& progress);

class EarlyLines {
 public:
  // Each returns the lines to show now.
  std::vector<std::string> left_out(const std::string& line);
  std::vector<std::string> foreseen(const std::vector<NotMeasured>& all);
  // The load begins, or the session ends: nothing more is foreseen.
  std::vector<std::string> rest();

 private:
  size_t shown_ = 0;
  bool holds_ = true;
  std::vector<std::string> held_;
};

}  // namespace muster::cli
