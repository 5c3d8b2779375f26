// Renders the cluster's state for a terminal: live table, plain lines (no terminal), summary at the end.
// Input is the JSON of the API (/v1/status, /v1/runs/ID; controller/api/routes.cc), of which all but LiveView
// are pure functions. Control characters are removed from nodes' strings: they must not control the terminal.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "base/time.h"

namespace muster::cli {

struct Look {
  size_t width = 0;  // lines are cut to this, with a mark; 0: they are not
  bool colour = false;
  bool unicode = true;
  // Show at most this many nodes, most urgent first, counts above and below (cli/shown_nodes.h); 0: all.
  size_t nodes = 0;
  std::string others = "--all";  // the command or option that shows the nodes left out
  // A cause of many nodes is shown in their place (folded_nodes()).
  bool fold = false;
};

// Causes of several nodes, each with its nodes and the command to type next; then a table of nodes with
// phase, bar, percent, rate, ETA and the last message of each.
std::string render_status(const Json& status, const Look& look);
// Table of the storage sections: size, use, and problems by node. Empty without sections.
std::string render_storage(const Json& status, const Look& look);
// Returns how many nodes fit into the table on a screen of `height` lines, beside the other lines; 0: all.
// `fold`: as in Look.
size_t nodes_that_fit(const Json& status, int height, bool fold = false);
// Returns one line per node whose state, phase or quarter of progress changed since the last call. With very
// many nodes, the first call returns the number in each state, and a line only for nodes that need attention.
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
// Renders the summary after a run: result per node, times per phase, quarantined nodes with their reasons.
// Phases that do not fit into `width` follow in another table below; 0: all in one.
std::string render_summary(const Json& run, size_t width = 0);
// Renders the refusals of a plan from the body of an error response.
std::string render_refusals(const Json& details);

// A line of at most the look's width, with a mark where something is missing.
std::string cut(const std::string& text, const Look& look);
std::string bar(double fraction, int cells, bool unicode);
// "41.2 MB/s", "12 steps/s"
std::string human_rate(double per_second, const std::string& unit);
std::string human_bytes(double bytes);
// short_digest(); "-" without a digest.
std::string digest_or_dash(const std::string& digest);
std::string clean(const std::string& text);
// As text_at() of base/json_at.h, cleaned.
std::string clean_at(const Json& json, const char* key);
// The texts of a list, cleaned.
std::vector<std::string> name_list(const Json& list);
// The same for text of several lines: line breaks are kept.
std::string clean_lines(const std::string& text);

// Of standard output's terminal; 0: it is none, and nothing is cut.
size_t terminal_width();

// On a terminal, draws a status over the previous one; elsewhere prints what changed.
class LiveView {
 public:
  // `filter`: the options that make `muster status` show the same nodes.
  explicit LiveView(bool quiet, const std::string& filter = {});
  void draw(const Json& status);
  // Leaves the last table on the screen.
  void finish();

 private:
  bool quiet_, terminal_;
  std::string others_;
  bool fold_;
  int lines_drawn_ = 0;
  ChangeLines changes_;
};

}  // namespace muster::cli
