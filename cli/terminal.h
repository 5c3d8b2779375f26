// How the cluster looks in a terminal: the live table, plain lines elsewhere, the summary at the end.
//
// Input is the JSON of the API (/v1/status, /v1/runs/ID; controller/api/routes.cc). Everything but LiveView
// is a pure function of it. Strings that come from nodes are stripped of control characters: hardware must
// not steer a terminal.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "base/time.h"

namespace muster::cli {

struct Look {
  int width = 100;
  bool colour = false;
  bool unicode = true;
  // At most this number of nodes, the most urgent first, with counts above and below (cli/shown_nodes.h); 0:
  // all.
  size_t nodes = 0;
  std::string others = "--all";  // the command that shows the others
};

// Table of nodes with phase, bar, percent, rate, ETA and the last message of each.
std::string render_status(const Json& status, const Look& look);
// Table of the storage sections: size, use, and problems by node. Empty without sections.
std::string render_storage(const Json& status, const Look& look);
// How many nodes fit beside the other lines of such a table; 0: all.
size_t nodes_that_fit(const Json& status, int height);
// One line per node whose state, phase or quarter of progress changed since the last call. If there are very
// many, the first call prints the number in each state, and a line only for those that need attention.
class ChangeLines {
 public:
  std::string next(const Json& status);

 private:
  struct Shown {
    std::string base, reason;
    int quarter = -1;
  };
  std::map<std::string, Shown> last_;
};
// After a run: result per node, times per phase, quarantined nodes with their reasons.
std::string render_summary(const Json& run);
// What a plan will destroy and do, when the controller's own text is not available.
std::string render_refusals(const Json& details);

std::string bar(double fraction, int cells, bool unicode);
// "41.2 MB/s", "12 steps/s"
std::string human_rate(double per_second, const std::string& unit);
std::string human_bytes(double bytes);
std::string clean(const std::string& text);
// The same for text of several lines: these stay.
std::string clean_lines(const std::string& text);

// On a terminal, draws a status over the previous one; elsewhere prints what changed.
class LiveView {
 public:
  // `filter`: options with which `muster status` shows the same nodes.
  explicit LiveView(bool quiet, const std::string& filter = {});
  void draw(const Json& status);
  // Leaves the last table on the screen.
  void finish();

 private:
  bool quiet_, terminal_;
  std::string others_;
  int lines_drawn_ = 0;
  ChangeLines changes_;
};

}  // namespace muster::cli
