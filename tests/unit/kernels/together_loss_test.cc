// A group that loses members: every member that lives names the same ones, and says how they were lost.
#include <sys/socket.h>

#include <atomic>
#include <memory>

#include "kernels/common/kernels.h"
#include "kernels/together/mesh.h"
#include "tests/unit/kernels/together_fleet.h"

using namespace muster;
using namespace muster::together;

namespace {

// Short, because it passes; what is asserted does not depend on how quick a machine is as long as members
// meet within it.
constexpr double kSilence = 2;

struct Seen {
  std::string lost = {};
  Code code = Code::invalid;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "'" << seen.lost << "' " << to_string(seen.code);
}

Seen seen(const Group& group, const Status& status) {
  return {said(group.lost()), status.ok() ? Code::invalid : status.error().code};
}
Seen seen(const Met& met) { return {said(met.lost), met.group ? Code::invalid : met.error.code}; }

Status wait_for(Group& group, int rank) {
  char byte = 0;
  return group.receive({&byte, 1}, rank);
}

}  // namespace

TEST_CASE("loss: all name the member that was killed, not the neighbour they waited for") {
  Fleet fleet(4);
  std::vector<Seen> all(3);
  {
    const Child child(fleet, 3);
    Gate met_all(3);
    std::thread killer([&] {
      met_all.wait();
      if (child.joined()) child.signal(SIGKILL);
    });
    run(fleet, first(3), [&](Met& met, size_t rank) {
      met_all.done();
      if (met.group) all[rank] = seen(*met.group, wait_for(*met.group, static_cast<int>(rank) + 1));
    });
    killer.join();
  }
  for (const auto& one : all) CHECK(one == Seen{"3 died", Code::failed});
}

TEST_CASE("loss: two that were killed are both named") {
  Fleet fleet(5);
  std::vector<Seen> all(3), later(3);
  {
    const Child third(fleet, 3), fourth(fleet, 4);
    Gate met_all(3);
    std::thread killer([&] {
      met_all.wait();
      if (!third.joined() || !fourth.joined()) return;
      third.signal(SIGKILL);
      fourth.signal(SIGKILL);
    });
    run(fleet, first(3), [&](Met& met, size_t rank) {
      met_all.done();
      if (!met.group) return;
      all[rank] = seen(*met.group, wait_for(*met.group, static_cast<int>(rank) + 1));
      later[rank] = seen(*met.group, met.group->barrier());
    });
    killer.join();
  }
  for (const auto& one : all) CHECK(one == Seen{"3 died, 4 died", Code::failed});
  CHECK(later == all);  // a group that is over stays so
}

TEST_CASE(
    "loss: all name the member that is silent at the end of the chain, also a group split from theirs") {
  for (const bool split : {false, true}) {
    Fleet fleet(4);
    std::vector<Seen> all(4);
    Gate gate(3);
    run(fleet, first(4), [&](Met& met, size_t rank) {
      if (!met.group) return gate.done();
      auto part = split ? met.group->split(0) : Result<std::unique_ptr<Group>>(std::unique_ptr<Group>{});
      Group& group = split && part.ok() ? **part : *met.group;
      if (rank == 3) {
        gate.wait();
        all[3] = seen(group, group.barrier());  // late: it reads what was said of it
        return;
      }
      // The first in the chain gives up long before the others would.
      group.within(rank == 0 ? 0.1 : 600);
      all[rank] = seen(group, wait_for(group, static_cast<int>(rank) + 1));
      gate.done();
    });
    for (const auto& one : all) CHECK(one == Seen{"3 silent", Code::timeout});
  }
}

TEST_CASE("loss: a member that is stopped in the middle of long messages is named by all") {
  Fleet fleet(4);
  std::vector<Seen> all(3);
  {
    const Child child(fleet, 2);
    Gate met_all(3);
    std::thread stopper([&] {
      met_all.wait();
      if (child.joined()) child.signal(SIGSTOP);
    });
    run(fleet, {0, 1, 3}, [&](Met& met, size_t rank) {
      met_all.done();
      if (!met.group) return;
      std::vector<double> values(4 << 20);  // more than sockets hold
      met.group->within(kSilence);
      all[rank == 3 ? 2 : rank] = seen(*met.group, met.group->sum(std::span<double>(values)));
    });
    stopper.join();
  }
  for (const auto& one : all) CHECK(one == Seen{"2 silent", Code::timeout});
}

TEST_CASE("loss: a member that never came is named by all who did") {
  SECTION("nothing listens") {
    Fleet fleet(4, kSilence);
    fleet.listening[1] = {};
    std::vector<Seen> all(4, Seen{"1 absent", Code::unavailable});
    run(fleet, {0, 2, 3}, [&](Met& met, size_t rank) { all[rank] = seen(met); });
    for (const auto& one : all) CHECK(one == Seen{"1 absent", Code::unavailable});
  }
  SECTION("the system answers for it, it does not") {
    Fleet fleet(4, kSilence);
    std::vector<Seen> all(4, Seen{"1 absent", Code::unavailable});
    run(fleet, {0, 2, 3}, [&](Met& met, size_t rank) { all[rank] = seen(met); });
    for (const auto& one : all) CHECK(one == Seen{"1 absent", Code::unavailable});
  }
}

TEST_CASE("loss: a member with another token is refused, whichever of two connects") {
  for (const size_t stranger : {size_t{0}, size_t{2}}) {
    Fleet fleet(3, kSilence);
    fleet.meetings[stranger].token = "another run's";
    std::vector<Seen> all(3);
    run(fleet, first(3), [&](Met& met, size_t rank) { all[rank] = seen(met); });
    const Seen expected{std::to_string(stranger) + " refused", Code::denied};
    for (size_t r = 0; r < 3; ++r) {
      INFO("stranger " << stranger << ", member " << r);
      if (r != stranger) CHECK(all[r] == expected);
    }
    CHECK(all[stranger].code == Code::denied);
  }
}

TEST_CASE("loss: a member that has time left hears from the others who never came") {
  Fleet fleet(4);
  fleet.meetings[0].seconds = fleet.meetings[1].seconds = kSilence;
  std::vector<Seen> all(3);
  run(fleet, first(3), [&](Met& met, size_t rank) { all[rank] = seen(met); });
  for (const auto& one : all) CHECK(one == Seen{"3 absent", Code::unavailable});
}

TEST_CASE("loss: a member that ends early is named, once it is needed") {
  Fleet fleet(3);
  std::vector<Seen> all(3);
  run(fleet, first(3), [&](Met& met, size_t rank) {
    if (!met.group) return;
    Status status = met.group->barrier();
    if (rank == 1) return;  // done, it thinks
    // Between the two that stay all is well.
    char byte = 0;
    if (rank == 0 && status.ok()) status = met.group->send({&byte, 1}, 2);
    if (rank == 2 && status.ok()) status = met.group->receive({&byte, 1}, 0);
    if (status.ok()) all[rank] = seen(*met.group, met.group->barrier());
  });
  CHECK(all[0] == Seen{"1 left", Code::failed});
  CHECK(all[2] == Seen{"1 left", Code::failed});
}

TEST_CASE("loss: members in different calls find out instead of mixing up their numbers") {
  Fleet fleet(2);
  std::vector<Seen> all(2);
  run(fleet, first(2), [&](Met& met, size_t rank) {
    if (!met.group) return;
    double value = 1;
    const Status status =
        rank == 0 ? met.group->broadcast(bytes_of(std::span<double>(&value, 1)), 0) : wait_for(*met.group, 0);
    all[rank] = seen(*met.group, status.ok() ? met.group->barrier() : status);
  });
  for (const auto& one : all) CHECK(one == Seen{"0 astray", Code::conflict});
}

TEST_CASE("loss: a member that did its part may leave while another part is still waited for") {
  const std::vector<Member> members = {{"node0"}, {"node1"}, {"node2"}};
  int ends[2][2];
  for (auto& pair : ends) REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  const double later = kernels::seconds_now() + 120;
  const Tag tag = {1, 1};
  char sent = 'a', taken = 0, slow = 'b', got = 0;
  Mesh waiting(members, 0, kSilence), last(members, 2, kSilence);
  auto quick = std::make_unique<Mesh>(members, 1, kSilence);
  waiting.add(1, Socket(ends[0][0]));
  quick->add(0, Socket(ends[0][1]));
  waiting.add(2, Socket(ends[1][0]));
  last.add(0, Socket(ends[1][1]));
  Status of_waiting = fail(Code::failed, "not run");
  std::thread call([&] { of_waiting = waiting.transfer({tag, 1, {&sent, 1}, 2, {&got, 1}}, later); });
  const Status of_quick = quick->transfer({tag, -1, {}, 0, {&taken, 1}}, later);
  quick.reset();
  // The one that waits reads the goodbye before the last byte comes: it has nothing else to do.
  while (::recv(ends[0][0], &taken, 1, MSG_PEEK | MSG_DONTWAIT) > 0) std::this_thread::yield();
  const Status of_last = last.transfer({tag, 0, {&slow, 1}, -1, {}}, later);
  call.join();
  CHECK(of_quick.ok());
  CHECK(of_last.ok());
  CHECK(of_waiting.ok());
  CHECK(got == 'b');
  CHECK(waiting.lost().empty());
}
