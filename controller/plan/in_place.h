// A node that is re-imaged or rolled back in place: its other root slot is booted once, and becomes the
// default only after the node was accepted in it. Otherwise the node goes back to the slot that it runs now.
// Pure.
//
// Its actions, in order: write (re-image only), pause, boot; those that other nodes of the plan have as well;
// commit, resume. The actions that are `when_failed`: return, resume-old, look-old.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides for a node whose disks are chosen: in place (Draft::slot), or through the RAM system, with a note
// of the reason. Refused are a rollback that is not possible (rollback), and a trial that is shorter than the
// node's last configuration and acceptance (trial-short). Also chosen here: the steps of phases `pause` and
// `resume`; a node forced by name has no such steps.
void choose_way(Planning& p, Draft& d);

// The actions before the node leaves its system: write the other slot, and the steps of phase `pause`. The
// latter also for a node that goes through the RAM system.
void write_slot_and_pause(Planning& p, Draft& d);
// For nodes of the next batch of a rollout: their other slot is written when this plan's nodes leave their
// systems. They are in Plan::serving, and their state does not change, even if the write fails.
void write_prefetches(Planning& p);
// The boots, after everything that the nodes of the plan do before them. From then on the trial's time runs,
// so nothing after them may wait for jobs; a hung node is waited for no longer than two boots.
void write_trials(Planning& p);
// The actions after the acceptance: commit and resume, and those that take a failed node back.
void write_ends(Planning& p);

}  // namespace muster
