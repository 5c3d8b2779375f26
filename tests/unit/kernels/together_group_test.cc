// What a group over TCP computes and moves, for members of any number.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <numeric>

#include "tests/unit/kernels/together_fleet.h"

using namespace muster;
using namespace muster::together;

namespace {

// Of all members: how many of these steps went wrong.
struct Wrong {
  std::atomic<int> count = 0;
  void unless(bool right) { count += right ? 0 : 1; }
};

// 7: odd; several: above a power of two.
constexpr size_t kSizes[] = {1, 2, 3, 4, 7};
// Few bytes (recursive doubling), none, and enough for the ring with a rest.
constexpr size_t kCounts[] = {0, 1, 5, 20011};

template <typename T>
bool sums_are_right(Group& group, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>((i % 101) * (static_cast<size_t>(group.rank()) + 1));
  if (!group.sum(std::span<T>(values)).ok()) return false;
  const size_t n = static_cast<size_t>(group.size());
  for (size_t i = 0; i < count; ++i)
    if (values[i] != static_cast<T>((i % 101) * n * (n + 1) / 2)) return false;
  return true;
}

std::string text_of(int rank) {
  return std::string(static_cast<size_t>(rank) * 150'000, static_cast<char>('a' + rank));
}

}  // namespace

TEST_CASE("group: reductions are right for any number of members and elements") {
  for (const size_t n : kSizes) {
    Fleet fleet(n);
    Wrong wrong;
    run(fleet, first(n), [&](Met& met, size_t rank) {
      wrong.unless(met.group != nullptr);
      if (!met.group) return;
      Group& group = *met.group;
      wrong.unless(group.rank() == static_cast<int>(rank) && group.size() == static_cast<int>(n));
      for (const size_t count : kCounts) {
        wrong.unless(sums_are_right<double>(group, count));
        wrong.unless(sums_are_right<float>(group, count));
        std::vector<uint64_t> least(count, 1000 - rank);
        wrong.unless(group.min(least).ok() && least == std::vector<uint64_t>(count, 1001 - n));
        std::vector<double> most(count, -static_cast<double>(rank));
        wrong.unless(group.max(most).ok() && most == std::vector<double>(count, 0.0));
      }
      wrong.unless(group.barrier().ok());
    });
    INFO(n << " members");
    CHECK(wrong.count == 0);
  }
}

TEST_CASE("group: bytes of one member reach all, and those of all one, whatever their length") {
  for (const size_t n : kSizes) {
    Fleet fleet(n);
    Wrong wrong;
    run(fleet, first(n), [&](Met& met, size_t) {
      if (!met.group) return wrong.unless(false);
      Group& group = *met.group;
      for (int from = 0; from < group.size(); ++from) {
        std::string bytes = text_of(from + 1);
        if (group.rank() != from) std::fill(bytes.begin(), bytes.end(), '-');
        wrong.unless(group.broadcast({bytes.data(), bytes.size()}, from).ok() && bytes == text_of(from + 1));
        const auto gathered = group.gather(text_of(group.rank()), from);
        wrong.unless(gathered.ok() && gathered->size() == (group.rank() == from ? n : 0));
        for (size_t r = 0; gathered.ok() && r < gathered->size(); ++r)
          wrong.unless((*gathered)[r] == text_of(static_cast<int>(r)));
      }
      const auto all = group.allgather(text_of(group.rank()));
      wrong.unless(all.ok() && all->size() == n);
      for (size_t r = 0; all.ok() && r < all->size(); ++r)
        wrong.unless((*all)[r] == text_of(static_cast<int>(r)));
    });
    INFO(n << " members");
    CHECK(wrong.count == 0);
  }
}

TEST_CASE("group: what is sent before it is requested is kept, in order, past other calls") {
  Fleet fleet(3);
  Wrong wrong;
  constexpr size_t kMessages = 40, kLength = 300'000;  // more than sockets hold
  run(fleet, first(3), [&](Met& met, size_t rank) {
    if (!met.group) return wrong.unless(false);
    Group& group = *met.group;
    std::string bytes(kLength, ' ');
    if (rank == 0)
      for (size_t m = 0; m < kMessages; ++m) {
        std::fill(bytes.begin(), bytes.end(), static_cast<char>(m));
        wrong.unless(group.send({bytes.data(), bytes.size()}, 1).ok());
      }
    if (rank == 1) wrong.unless(group.send({bytes.data(), 1}, 2).ok());
    if (rank == 2) wrong.unless(group.receive({bytes.data(), 1}, 1).ok() && bytes[0] == ' ');
    if (rank != 1) return;
    for (size_t m = 0; m < kMessages; ++m) {
      wrong.unless(group.receive({bytes.data(), bytes.size()}, 0).ok());
      wrong.unless(bytes == std::string(kLength, static_cast<char>(m)));
    }
  });
  CHECK(wrong.count == 0);
}

TEST_CASE("group: members of a colour become a group of their own, beside the whole one") {
  Fleet fleet(7);
  Wrong wrong;
  run(fleet, first(7), [&](Met& met, size_t rank) {
    if (!met.group) return wrong.unless(false);
    Group& group = *met.group;
    // 0 2 4, 1 3 5, and 6 waits
    auto part = group.split(rank == 6 ? -1 : static_cast<int>(rank % 2));
    if (!part.ok()) return wrong.unless(false);
    wrong.unless((*part == nullptr) == (rank == 6));
    if (*part) {
      Group& side = **part;
      wrong.unless(side.size() == 3 && side.rank() == static_cast<int>(rank / 2));
      wrong.unless(side.name(side.rank()) == "node" + std::to_string(rank));
      wrong.unless(sums_are_right<double>(side, 30000));
      auto alone = side.split(side.rank());
      wrong.unless(alone.ok() && (*alone)->size() == 1 && sums_are_right<double>(**alone, 5));
    }
    wrong.unless(sums_are_right<float>(group, 7));
    auto again = group.split(0);
    wrong.unless(again.ok() && (*again)->rank() == static_cast<int>(rank));
    wrong.unless(again.ok() && sums_are_right<float>(**again, 40000));
  });
  CHECK(wrong.count == 0);
}

TEST_CASE("group: a call that makes no sense is refused, and the group goes on") {
  Fleet fleet(2);
  Wrong wrong;
  run(fleet, first(2), [&](Met& met, size_t) {
    if (!met.group) return wrong.unless(false);
    Group& group = *met.group;
    char byte = 0;
    for (const int rank : {-1, 2, group.rank()}) {
      const auto sent = group.send({&byte, 1}, rank);
      const auto received = group.receive({&byte, 1}, rank);
      wrong.unless(!sent.ok() && sent.error().code == Code::invalid);
      wrong.unless(!received.ok() && received.error().code == Code::invalid);
    }
    const auto spread = group.broadcast({&byte, 1}, 2);
    wrong.unless(!spread.ok() && spread.error().code == Code::invalid);
    wrong.unless(group.barrier().ok() && group.lost().empty());
  });
  CHECK(wrong.count == 0);
  const Met none = meet({fleet.meetings[0].members, 2, "a token", 1, 1}, {});
  CHECK_FALSE(none.group);
  CHECK(none.error.code == Code::invalid);
}

TEST_CASE("group: other connections to a member's port take no member's place") {
  Fleet fleet(3);
  std::vector<Socket> strangers;
  for (size_t r = 0; r < 3; ++r)
    for (const std::string words : {"", "GET / HTTP/1.1\r\n\r\n", "long"}) {
      auto socket = start_connect("127.0.0.1", "127.0.0.1", fleet.meetings[0].members[r].port);
      REQUIRE(socket.ok());
      pollfd ready{socket->fd(), POLLOUT, 0};
      REQUIRE(::poll(&ready, 1, -1) == 1);
      const std::string bytes = words == "long" ? std::string(200, '\x01') : words;
      REQUIRE(::send(socket->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(bytes.size()));
      strangers.push_back(std::move(*socket));
    }
  Wrong wrong;
  run(fleet, first(3),
      [&](Met& met, size_t) { wrong.unless(met.group && sums_are_right<double>(*met.group, 20000)); });
  CHECK(wrong.count == 0);
}

TEST_CASE("group: two runs do not share a port, and addresses are numbers") {
  const auto one = listen_at("127.0.0.1", 0);
  REQUIRE(one.ok());
  const auto second = listen_at("127.0.0.1", one->port);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code == Code::unavailable);
  for (const char* address : {"localhost", "", "10.0.0", "fe80::g"}) {
    const auto bad = listen_at(address, 0);
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().code == Code::invalid);
  }
}
