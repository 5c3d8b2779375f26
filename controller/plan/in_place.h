// A node that is re-imaged or rolled back in place: its other root slot is booted once, and stands from then
// on only when the node was accepted in it; else the node goes back to the slot that it runs now. Pure.
//
// In its order: write (re-image only), pause, boot; everything that any other node of the plan does, too;
// commit, resume. The actions that are `when_failed`: return, resume-old, look-old.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides for a node whose disks are chosen: in place (Draft::slot), or by way of the RAM system, which a
// note says with its reason. A rollback that cannot be is refused (rollback), and so is a trial that is
// shorter than what the node's last acceptance took (trial-short). Also chosen here: the steps that take it
// from its work and give it back, which a node that is forced by name does without.
void choose_way(Planning& p, Draft& d);

// What comes before the node leaves its system: the other slot's content, and the steps of phase `pause`. The
// latter also for a node that goes through the RAM system.
void write_slot_and_pause(Planning& p, Draft& d);
// The boots: behind everything that any node of the plan did before. From here on the trial runs, which waits
// for nobody's jobs, and for no longer than two boots for a node that hangs.
void write_trials(Planning& p);
// Behind the acceptance: commit and resume, and what is done where that is never reached.
void write_ends(Planning& p);

}  // namespace muster
