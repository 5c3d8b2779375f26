// Operator: who types the commands of a bring-up, and the command line that carries them out: `muster up`
// plans, approves, follows the run and plans again as cli/carry_out.cc does (reach()). Between commands the
// operator does what the plan's notes say about nodes that are left out: `muster up --limit` for them, then
// `muster reimage` for those that still do not answer. Thread: values; knows no clock.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"
#include "controller/ports/store.h"

namespace muster::sim {

class Operator {
 public:
  void give_command(TimeMs now);  // the next one: request() is what it plans first
  const PlanRequest& request() const { return request_; }
  TimeMs given_at() const { return given_at_; }
  // Whether the plan is approved and carried out; else the command is over.
  bool takes(const Plan& plan);
  // Whether the command goes on with another plan now that the run has ended; else it is over.
  bool goes_on(const Plan& plan, RunState ended);
  // The controller died, and the command with it. A run that it resumes is waited for.
  void lose_command() { under_way_ = false; }
  // Once the command is over: it was for all nodes, and all there was to do was to look again for nodes that
  // were not found the last time either.
  bool nothing_left() const { return nothing_left_; }
  void installs_another_image() { nothing_left_ = false, reimage_ = true, not_found_.clear(); }

 private:
  void end_command(bool idle);

  PlanRequest request_, next_;
  TimeMs given_at_ = 0;
  bool under_way_ = false, woke_ = false, nothing_left_ = false;
  bool reimage_ = false;  // `muster up --reimage`: accepted nodes, too, get the newer build
  int plans_ = 0;
  std::vector<std::string> left_out_;
  std::vector<std::string> not_found_;  // by the last discovery that found none of them
  std::set<std::string> silent_;        // named by `--limit`, powered on, waited for, and never answered
};

}  // namespace muster::sim
