// A node that is re-imaged or rolled back in place: its other root slot is booted once, and becomes the
// default only after the node was accepted in it. Otherwise the node goes back to the slot that it runs now.
// No I/O.
//
// Such a node's actions, in order: write (re-image only), pause, boot; the actions that other nodes of the
// plan have as well; commit, resume. Its `when_failed` actions: return, resume-old, look-old.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides, for a node whose disks are chosen, whether it goes in place (Draft::slot) or through the RAM
// system, with a note of the reason. Refuses a rollback that is not possible (rule rollback), and a trial
// that is shorter than the node's last configuration and acceptance took (trial-short). Also chooses the
// steps of phases `pause` and `resume`; a node forced by name has none.
void choose_way(Planning& p, Draft& d);

// Writes the actions that precede the reboot: writing the other slot, then the steps of phase `pause`. A node
// that goes through the RAM system gets those steps, too.
void write_slot_and_pause(Planning& p, Draft& d);
// Writes the prefetches for nodes of a rollout's next batch: their other slot is written when this plan's
// nodes leave their systems. Those are in Plan::serving: their state stays the same, even if the write fails.
void write_prefetches(Planning& p);
// Writes the trial boots, after all earlier actions of all nodes of the plan. The trial's time limit starts
// with the boot, so no later action may wait for jobs; a hung node is waited for no longer than two boots.
void write_trials(Planning& p);
// Writes the actions after acceptance: commit and resume, and those that return a failed node.
void write_ends(Planning& p);

}  // namespace muster
