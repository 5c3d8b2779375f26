// Slurm's node states and the reasons of its drains, read here by all programs.
//
// A state comes as the word of `sinfo` (%T "drained*", %t "drain*") with at most one mark, which stands for
// the most important of its flags; or as the base state and all flags, joined by `scontrol show node`
// ("IDLE+DRAIN+NOT_RESPONDING"). A word or mark that is in no table makes a node `absent`. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace muster::slurm {

struct State {
  bool busy = false;         // has jobs
  bool unclear = false;      // may have jobs: the word hides them
  bool draining = false;     // gets no jobs until it is resumed; whose drain it is: see Drain
  bool lacking = false;      // registered with less than slurm.conf has; slurmctld drains it for that
  bool absent = false;       // down, off, restarting, silent, or in an unknown state
  bool down = false;         // set down, by slurmctld or by a person (`state=down`)
  bool maintained = false;   // in a reservation for maintenance, without a job
  bool reboots = false;      // Slurm restarts it or will, which may end a drain
  std::string unknown = {};  // words and marks that are not in the table

  bool drained() const { return draining && !busy && !unclear; }
  bool away() const { return lacking || absent || maintained; }  // whether drained or not
  bool takes_jobs() const { return !draining && !away(); }
};
State read_state(std::string_view text);

// A line of `sinfo -h -N -o kNodeLine`: a node, the word of its state, and of its drain, also when that has
// ended, the reason, who began it and when; empty: not known, or none.
inline constexpr const char* kNodeLine = "%N|%T|%E|%u|%H";
struct NodeLine {
  std::string name, word, reason, user, since;
};
NodeLine read_node_line(std::string line);
// "drained by ann since 2026-11-29T09:48:25: bad fan"; `state` is that of its word.
std::string in_words(const NodeLine& node, const State& state);

// Whose drain it is, by its reason.
enum class Drain {
  reimage,       // muster's, for a re-image
  drain,         // `muster drain`
  health,        // muster's check of the hardware
  registration,  // slurmctld's, for a node that registered with less than slurm.conf has
  person         // any other reason
};
inline constexpr const char* kReimageReason = "muster reimage";
inline constexpr const char* kDrainReason = "muster drain";
Drain drain_of(std::string_view reason);
// True if the drain's reason is this one; Slurm may have added a word of its own ("REASON : reboot issued").
bool is_reason(std::string_view reason, std::string_view wanted);
// True if the node must stay out until those end it who began it: it has a drain that is none of muster's or
// slurmctld's leftovers, or a person has set it down. A reservation is State::maintained.
bool is_decision(const State& state, std::string_view reason);

}  // namespace muster::slurm
