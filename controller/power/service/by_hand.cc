#include "controller/power/service/by_hand.h"

namespace muster {

std::string_view to_string(ByHand::Task task) {
  switch (task) {
    case ByHand::Task::netboot:
      return "restart it and boot it from the network";
    case ByHand::Task::on:
      return "power it on";
    case ByHand::Task::off:
      break;
  }
  return "power it off";
}

void ByHand::request(const std::string& node, Task task, Done done) {
  forget(node);
  open_[node] = {task, std::move(done)};
}

void ByHand::forget(const std::string& node) { end(node, fail(Code::cancelled, "manual task cancelled")); }

std::optional<ByHand::Task> ByHand::requested(const std::string& node) const {
  const auto found = open_.find(node);
  if (found == open_.end()) return std::nullopt;
  return found->second.task;
}

void ByHand::saw_netboot(const std::string& node) {
  if (requested(node) == Task::netboot) end(node, Ok{});
}

void ByHand::saw_agent(const std::string& node) {
  if (requested(node) == Task::on) end(node, Ok{});
}

Result<ByHand::Task> ByHand::said_done(const std::string& node) {
  const auto task = requested(node);
  if (!task) return fail(Code::conflict, "no manual task is pending for " + node);
  end(node, Ok{});
  return *task;
}

void ByHand::end(const std::string& node, Status how) {
  const auto found = open_.find(node);
  if (found == open_.end()) return;
  reactor_.post([done = std::move(found->second.done), how = std::move(how)] { done(how); });
  open_.erase(found);
}

}  // namespace muster
