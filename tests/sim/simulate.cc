#include "tests/sim/simulate.h"

#include <memory>

#include "tests/sim/controller.h"

namespace muster::sim {
namespace {

constexpr DurationMs kBound = 30 * 3600 * kSecond;  // of simulated time; more is a hang

void node_fault(World& world, SimController& controller) {
  auto& nodes = controller.nodes();
  auto it = nodes.begin();
  std::advance(it, world.random.range(0, static_cast<int64_t>(nodes.size()) - 1));
  SimNode& node = *it->second;
  switch (world.random.range(0, 3)) {
    case 0:
      return node.lose_power();
    case 1:
      return node.reset();
    case 2:
      return node.crash_agent();
    default:
      return node.cut_network(world.random.range(5, 120) * kSecond);
  }
}

void schedule(World& world, DurationMs every, const std::function<void()>& fault) {
  if (!every) return;
  world.reactor.after(world.random.range(every / 2, every * 3 / 2), [&world, every, fault] {
    if (!world.faults) return;
    fault();
    schedule(world, every, fault);
  });
}

// Of its own randomness: with and without it the rest of the world is the same.
void set_clocks(World& world, const std::shared_ptr<Random>& random) {
  const DurationMs every = world.options.clock_set_every;
  if (!every) return;
  world.reactor.after(random->range(every / 2, every * 3 / 2), [&world, random] {
    if (!world.faults) return;
    const DurationMs step = random->range(-25, 25) * kMinute;
    world.trace("", fmt::format("clock set by {} min", step / kMinute));
    world.reactor.set_clock(step);
    set_clocks(world, random);
  });
}

}  // namespace

Verdict simulate(const Options& options) {
  World world(options);
  SimController controller(world);
  for (int i = 0; i < options.nodes; ++i) {
    auto node =
        std::make_unique<SimNode>(world, controller.checkers(), controller, fmt::format("n{:03}", i + 1));
    // The first node leads; it is spared, or no node could be accepted.
    node->dead = i > 0 && i <= options.dead;
    node->bad = i == options.nodes - 1 && options.bad > 0 && !node->dead && i > 0;
    controller.add_node(std::move(node));
  }
  schedule(world, options.node_fault_every, [&] { node_fault(world, controller); });
  if (options.store_fails > 0)
    schedule(world, kMinute, [&] { controller.fill_disk(static_cast<int>(world.random.range(1, 5))); });
  schedule(world, options.controller_killed_every, [&] { controller.kill(); });
  set_clocks(world, std::make_shared<Random>(options.seed ^ 0xc10c));
  world.reactor.after(options.faults_end, [&controller] { controller.calm(); });
  controller.start();
  const TimeMs begin = world.now();
  const SteadyMs end = world.reactor.steady() + kBound;
  TimeMs checked = begin;
  while (!controller.finished() && world.violations.empty() && world.reactor.step(end.ms)) {
    if (world.now() < checked + 5 * kSecond) continue;
    checked = world.now();
    if (controller.executor()) controller.checkers().at_all_times(*controller.executor());
  }
  if (world.violations.empty() && !controller.finished()) world.violated("L1", "the bring-up did not end");
  if (world.violations.empty()) controller.check_end();
  return {world.violations, world.hash, world.reactor.steps(), world.now() - begin, controller.runs()};
}

}  // namespace muster::sim
