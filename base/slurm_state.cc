#include "base/slurm_state.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/lower.h"
#include "base/split.h"

namespace muster::slurm {
namespace {

enum Effect : unsigned {
  kJobs = 1,
  kDrain = 2,
  kLacking = 4,
  kAbsent = 8,
  kMaintained = 16,
  kReboots = 32,
  kHides = 64,    // as the first word: printed instead of whether there are jobs
  kNoBase = 128,  // as the first word: the base state is unknown
  kDown = 256,
};

struct Words {
  unsigned effects;
  std::string_view names;
};
// The long and short words and the flags' names of libslurm 22.05.8 and 24.11.5; power_drain is slurmrestd's
// (slurm.h), and err, pow_dn, pow_up and no_respond are of older versions (sinfo(1)). With `fail` as with a
// drain, an administrator keeps jobs off, and the state `resume` ends it. slurmctld drains what it marks
// INVALID_REG.
constexpr Words kWords[] = {
    {0, "idle planned plnd reserved resv blocked block perfctrs npc"},
    {kNoBase, "cloud dynamic_norm dynamic_future power_up resume resm undrain"},
    {kJobs, "mixed mix allocated alloc completing comp"},
    {kDrain, "drained drain"},
    {kDrain | kJobs, "draining drng failing failg"},
    {kDrain | kHides, "fail"},
    {kLacking | kDrain | kHides, "inval"},
    {kLacking | kDrain, "invalid_reg"},
    {kMaintained | kHides, "maint"},
    {kMaintained, "maintenance"},
    {kReboots | kAbsent | kHides, "reboot boot"},
    {kReboots, "reboot_requested"},
    {kReboots | kAbsent, "reboot_issued"},
    {kAbsent | kHides, "unknown unk"},
    {kDrain | kAbsent, "power_drain"},
    {kAbsent | kDown, "down"},
    {kAbsent,
     "future futr error err not_responding no_respond "
     "power_down powering_down powered_down pow_dn powering_up pow_up"},
};
// The mark after sinfo's word. `$`: in a reservation for maintenance, drained or with jobs; `-`: planned for
// a larger job; `+`: a job ends; `@`: to be restarted; `^`: restarting; others: silent, off, or on the way.
constexpr Words kMarks[] = {
    {0, "-"},        {kMaintained, "$"},        {kJobs, "+"},
    {kReboots, "@"}, {kReboots | kAbsent, "^"}, {kAbsent, "* ~ # ! %"},
};

template <size_t N>
std::optional<unsigned> effects_of(const Words (&table)[N], const std::string& name) {
  for (const Words& words : table)
    if (const auto all = split(std::string(words.names), ' ');
        std::find(all.begin(), all.end(), name) != all.end())
      return words.effects;
  return std::nullopt;
}

void add(State& out, std::optional<unsigned> known, const std::string& name, bool first) {
  if (!known) out.unknown += (out.unknown.empty() ? "" : " ") + name;
  unsigned effects = known.value_or(kAbsent | kHides);
  if (first && (effects & kNoBase) != 0) effects |= kAbsent | kHides;
  const auto has = [&](Effect effect) { return (effects & effect) != 0; };
  out.busy = out.busy || has(kJobs);
  out.unclear = out.unclear || (has(kHides) && (first || !known));
  out.draining = out.draining || has(kDrain);
  out.lacking = out.lacking || has(kLacking);
  out.absent = out.absent || has(kAbsent);
  out.down = out.down || has(kDown);
  out.maintained = out.maintained || has(kMaintained);
  out.reboots = out.reboots || has(kReboots);
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "gres/gpu:h100 count too low (1 < 8)", "gres/gpu GRES autodetected core affinity ...". A person's own words
// may begin with the name as well.
bool is_of_gres(std::string_view reason) {
  const size_t name = std::min(reason.find(' '), reason.size());
  const std::string_view rest = reason.substr(name);
  return reason.starts_with("gres/") && (rest.starts_with(" count ") || rest.starts_with(" GRES "));
}

// What slurmctld 22.05 and 24.11 give as a reason when a node registers; 24.11 replaces another reason by it.
bool is_of_registration(std::string_view reason) {
  for (const std::string_view begin :
       {"Low RealMemory", "Low TmpDisk", "Low CPUs", "Low socket*core*thread count",
        "Could not unpack gres data", "Reported active features "})
    if (reason.starts_with(begin)) return true;
  return is_of_gres(reason);
}

// What slurmctld gives as a reason by itself, or adds behind one (" : "), also if that outlasted its drain.
bool is_of_slurmctld(std::string_view reason) {
  for (const std::string_view whole :
       {"Not responding", "Node unexpectedly rebooted", "ResumeTimeout reached", "Reboot ASAP",
        "reboot requested", "reboot issued", "reboot complete", "reboot timed out"})
    if (reason == whole) return true;
  return is_of_registration(reason);
}

constexpr std::string_view kAdds = " : ";

std::string cut_front(std::string& text) {
  const size_t bar = std::min(text.find('|'), text.size());
  const std::string out = text.substr(0, bar);
  text.erase(0, bar + 1);
  return out;
}

std::string cut_back(std::string& text) {
  const size_t bar = text.rfind('|');
  if (bar == std::string::npos) return "";
  const std::string out = text.substr(bar + 1);
  text.resize(bar);
  return out == "Unknown" ? "" : out;
}

}  // namespace

State read_state(std::string_view text) {
  State out;
  const std::string all = lower(std::string(text));
  bool first = true;
  for (size_t at = 0, end = 0; at < all.size(); at = end) {
    end = at;
    while (end < all.size() && is_letter(all[end])) ++end;
    if (end > at) {
      const std::string name = all.substr(at, end - at);
      add(out, effects_of(kWords, name), name, std::exchange(first, false));
      continue;
    }
    ++end;
    // A plus sign between two words only joins them.
    if (all[at] == '+' && end < all.size() && is_letter(all[end])) continue;
    const std::string name(1, all[at]);
    add(out, effects_of(kMarks, name), name, false);
  }
  if (first) add(out, std::nullopt, "(no word)", false);
  out.maintained = out.maintained && !out.busy;
  return out;
}

// "node02|drained|bad | worse|ann|2026-11-29T09:48:25"
NodeLine read_node_line(std::string line) {
  NodeLine out;
  out.name = cut_front(line);
  out.word = cut_front(line);
  out.since = cut_back(line);
  out.user = cut_back(line);
  out.reason = line == "none" ? "" : line;
  return out;
}

std::string in_words(const NodeLine& node, const State& state) {
  std::string out = node.word;
  if (!state.unknown.empty()) out += " (not in muster's table of states)";
  if (state.maintained) out += " (see `scontrol show reservation`)";
  if (state.lacking) out += " (registered with less than slurm.conf has)";
  if (node.reason.empty() || state.takes_jobs()) return out;
  if (!state.draining && !state.down) return out + " (" + node.reason + ")";
  if (!node.user.empty()) out += " by " + node.user;
  if (!node.since.empty()) out += " since " + node.since;
  return out + ": " + node.reason;
}

Drain drain_of(std::string_view reason) {
  if (is_reason(reason, kReimageReason)) return Drain::reimage;
  if (is_reason(reason, kDrainReason)) return Drain::drain;
  if (reason.starts_with("muster health: ")) return Drain::health;
  return is_of_registration(reason) ? Drain::registration : Drain::person;
}

bool is_reason(std::string_view reason, std::string_view wanted) {
  if (reason == wanted) return true;
  if (!reason.starts_with(wanted) || !reason.substr(wanted.size()).starts_with(kAdds)) return false;
  const std::string_view added = reason.substr(wanted.size() + kAdds.size());
  return is_of_slurmctld(added.substr(0, added.find(kAdds)));
}

bool is_decision(const State& state, std::string_view reason) {
  const Drain drain = drain_of(reason);
  if (state.draining) return drain != Drain::reimage && drain != Drain::registration;
  const size_t added = reason.rfind(kAdds);
  return state.down && drain == Drain::person &&
         !is_of_slurmctld(added == std::string_view::npos ? reason : reason.substr(added + kAdds.size()));
}

}  // namespace muster::slurm
