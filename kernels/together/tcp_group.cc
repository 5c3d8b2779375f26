#include "kernels/together/tcp_group.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "kernels/common/kernels.h"

namespace muster::together {
namespace {

constexpr size_t kFewBytes = 64 << 10;       // for more bytes, the ring algorithm sends less
constexpr uint64_t kLongestText = 64 << 20;  // of one member, gathered

struct Add {
  template <typename T>
  void operator()(T& mine, T other) const {
    mine += other;
  }
};
struct Smaller {
  template <typename T>
  void operator()(T& mine, T other) const {
    mine = std::min(mine, other);
  }
};
struct Larger {
  template <typename T>
  void operator()(T& mine, T other) const {
    mine = std::max(mine, other);
  }
};

class TcpGroup : public Group {
 public:
  TcpGroup(Mesh& mesh, std::vector<int> ranks, uint16_t number, double seconds)
      : mesh_(mesh), ranks_(std::move(ranks)), number_(number), seconds_(seconds) {
    own_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), mesh_.rank()) - ranks_.begin());
  }
  TcpGroup(std::unique_ptr<Mesh> mesh, std::vector<int> ranks, double seconds)
      : TcpGroup(*mesh, std::move(ranks), 0, seconds) {
    owned_ = std::move(mesh);
  }

  int rank() const override { return own_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::string& name(int rank) const override {
    return mesh_.members()[static_cast<size_t>(ranks_.at(static_cast<size_t>(rank)))].name;
  }
  void within(double seconds) override { seconds_ = seconds; }
  const std::vector<Lost>& lost() const override { return mesh_.lost(); }

  Status sum(std::span<double> values) override { return reduce(values, Add{}); }
  Status sum(std::span<float> values) override { return reduce(values, Add{}); }
  Status min(std::span<uint64_t> values) override { return reduce(values, Smaller{}); }
  Status max(std::span<double> values) override { return reduce(values, Larger{}); }
  Status barrier() override {
    double nothing = 0;
    return max({&nothing, 1});
  }

  Status broadcast(std::span<char> bytes, int from) override;
  Result<std::vector<std::string>> gather(const std::string& mine, int to) override;
  Result<std::vector<std::string>> allgather(const std::string& mine) override;
  Status send(std::span<const char> bytes, int to) override;
  Status receive(std::span<char> bytes, int from) override;
  Result<std::unique_ptr<Group>> split(int colour) override;

 private:
  // A call has one deadline, and a number that all members must agree on. Transfers between two members have
  // no number, since the others take no part in them.
  struct Call {
    Tag tag = {};
    double deadline = 0;
  };
  Call next_call() { return {{number_, ++call_}, kernels::seconds_now() + seconds_}; }
  Call between_two() const { return {{number_, 0}, kernels::seconds_now() + seconds_}; }
  int everywhere(int rank) const { return rank < 0 ? -1 : ranks_[static_cast<size_t>(rank)]; }
  Status check(int rank) const;

  // Ranks of this group; -1: none.
  Status exchange(const Call& call, int to, std::span<const char> out, int from, std::span<char> in) {
    return mesh_.transfer({call.tag, everywhere(to), out, everywhere(from), in}, call.deadline);
  }
  Status put(const Call& call, int to, std::span<const char> out) { return exchange(call, to, out, -1, {}); }
  Status take(const Call& call, int from, std::span<char> in) { return exchange(call, -1, {}, from, in); }
  Status spread(const Call& call, std::span<char> bytes, int from);
  Result<std::vector<std::string>> collect(const Call& call, const std::string& mine, int to);

  template <typename T, typename Op>
  Status reduce(std::span<T> values, Op op) {
    const Call call = next_call();
    if (size() == 1) return Ok{};
    const bool few = values.size_bytes() <= kFewBytes || values.size() < ranks_.size();
    return few ? by_doubling(call, values, op) : around_ring(call, values, op);
  }
  template <typename T, typename Op>
  Status by_doubling(const Call& call, std::span<T> values, Op op);
  template <typename T, typename Op>
  Status around_ring(const Call& call, std::span<T> values, Op op);

  std::unique_ptr<Mesh> owned_ = {};
  Mesh& mesh_;
  const std::vector<int> ranks_;  // among all members
  const uint16_t number_;
  double seconds_;
  int own_ = 0;
  uint32_t call_ = 0;
};

Status TcpGroup::check(int rank) const {
  if (rank >= 0 && rank < size()) return Ok{};
  return fail(Code::invalid, fmt::format("there is no rank {} among {} members", rank, size()));
}

// Members above the largest power of two add their values to a member below it, and get the result back.
template <typename T, typename Op>
Status TcpGroup::by_doubling(const Call& call, std::span<T> values, Op op) {
  std::vector<T> other(values.size());
  const auto bytes = bytes_of(std::span<const T>(values));
  const auto into = bytes_of(std::span<T>(other));
  const auto join = [&] {
    for (size_t i = 0; i < values.size(); ++i) op(values[i], other[i]);
  };
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size())));
  const int partner = own_ < power ? own_ + power : own_ - power;
  const bool has_partner = partner < size();
  if (own_ >= power) {
    TRY_(put(call, partner, bytes));
    return take(call, partner, bytes_of(values));
  }
  if (has_partner) {
    TRY_(take(call, partner, into));
    join();
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int peer = own_ ^ distance;
    TRY_(exchange(call, peer, bytes, peer, into));
    join();
  }
  return has_partner ? put(call, partner, bytes) : Status(Ok{});
}

// Part p travels around the ring and is complete at member p - 1; then the complete parts travel around it.
template <typename T, typename Op>
Status TcpGroup::around_ring(const Call& call, std::span<T> values, Op op) {
  const size_t n = ranks_.size(), mine = static_cast<size_t>(own_);
  const auto part = [&](size_t p) {
    const size_t first = values.size() * (p % n) / n, last = values.size() * (p % n + 1) / n;
    return values.subspan(first, last - first);
  };
  const int right = static_cast<int>((mine + 1) % n), left = static_cast<int>((mine + n - 1) % n);
  std::vector<T> buffer(values.size() / n + 1);
  for (size_t step = 0; step + 1 < n; ++step) {
    const auto out = part(mine + n - step), in = part(mine + 2 * n - step - 1);
    const auto other = std::span<T>(buffer).first(in.size());
    TRY_(exchange(call, right, bytes_of(std::span<const T>(out)), left, bytes_of(other)));
    for (size_t i = 0; i < in.size(); ++i) op(in[i], other[i]);
  }
  for (size_t step = 0; step + 1 < n; ++step) {
    const auto out = part(mine + 1 + n - step), in = part(mine + 2 * n - step);
    TRY_(exchange(call, right, bytes_of(std::span<const T>(out)), left, bytes_of(in)));
  }
  return Ok{};
}

// A binomial tree: each member that has the data passes it on to members at ever smaller distances.
Status TcpGroup::spread(const Call& call, std::span<char> bytes, int from) {
  const auto n = static_cast<unsigned>(size());
  const unsigned mine = static_cast<unsigned>(own_ - from + size()) % n;  // as if `from` were 0
  const auto actual = [&](unsigned r) { return static_cast<int>((r + static_cast<unsigned>(from)) % n); };
  unsigned distance = std::bit_ceil(n);
  if (mine != 0) {
    distance = mine & (~mine + 1);  // its lowest bit
    TRY_(take(call, actual(mine - distance), bytes));
  }
  for (distance /= 2; distance > 0; distance /= 2)
    if (mine + distance < n) TRY_(put(call, actual(mine + distance), bytes));
  return Ok{};
}

Status TcpGroup::broadcast(std::span<char> bytes, int from) {
  TRY_(check(from));
  return spread(next_call(), bytes, from);
}

Result<std::vector<std::string>> TcpGroup::collect(const Call& call, const std::string& mine, int to) {
  uint64_t length = mine.size();
  if (own_ != to) {
    TRY_(put(call, to, bytes_of(std::span<const uint64_t>(&length, 1))));
    TRY_(put(call, to, {mine.data(), mine.size()}));
    return std::vector<std::string>{};
  }
  std::vector<std::string> out(ranks_.size());
  for (int r = 0; r < size(); ++r) {
    std::string& text = out[static_cast<size_t>(r)];
    if (r == own_) {
      text = mine;
      continue;
    }
    TRY_(take(call, r, bytes_of(std::span<uint64_t>(&length, 1))));
    if (length > kLongestText) return mesh_.give_up({true, {{everywhere(r), Loss::astray}}});
    text.resize(length);
    TRY_(take(call, r, {text.data(), text.size()}));
  }
  return out;
}

Result<std::vector<std::string>> TcpGroup::gather(const std::string& mine, int to) {
  TRY_(check(to));
  return collect(next_call(), mine, to);
}

Result<std::vector<std::string>> TcpGroup::allgather(const std::string& mine) {
  const Call call = next_call();
  TRY(auto all, collect(call, mine, 0));
  all.resize(ranks_.size());
  std::vector<uint64_t> lengths(ranks_.size());
  for (size_t r = 0; r < all.size(); ++r) lengths[r] = all[r].size();
  TRY_(spread(call, bytes_of(std::span<uint64_t>(lengths)), 0));
  std::string joined;
  for (const auto& text : all) joined += text;
  uint64_t length = 0;
  for (const uint64_t one : lengths) length += one;
  joined.resize(length);
  TRY_(spread(call, {joined.data(), joined.size()}, 0));
  size_t at = 0;
  for (size_t r = 0; r < all.size(); at += lengths[r], ++r) all[r] = joined.substr(at, lengths[r]);
  return all;
}

Status TcpGroup::send(std::span<const char> bytes, int to) {
  TRY_(check(to));
  if (to == own_) return fail(Code::invalid, "a member cannot send to itself");
  return put(between_two(), to, bytes);
}

Status TcpGroup::receive(std::span<char> bytes, int from) {
  TRY_(check(from));
  if (from == own_) return fail(Code::invalid, "a member cannot receive from itself");
  return take(between_two(), from, bytes);
}

Result<std::unique_ptr<Group>> TcpGroup::split(int colour) {
  struct Choice {
    int32_t colour;
    uint32_t next;
  };
  const Choice mine{colour, mesh_.next_group()};
  TRY(const auto all, allgather(std::string(reinterpret_cast<const char*>(&mine), sizeof mine)));
  std::vector<int> together;
  uint32_t number = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    Choice one;
    if (all[r].size() != sizeof one) return mesh_.give_up({true, {{ranks_[r], Loss::astray}}});
    std::memcpy(&one, all[r].data(), sizeof one);
    number = std::max(number, one.next);
    if (one.colour == colour) together.push_back(ranks_[r]);
  }
  mesh_.next_group(static_cast<uint16_t>(number + 1));
  if (colour < 0) return std::unique_ptr<Group>{};
  return std::unique_ptr<Group>(
      std::make_unique<TcpGroup>(mesh_, std::move(together), static_cast<uint16_t>(number), seconds_));
}

}  // namespace

std::unique_ptr<Group> group_over(std::unique_ptr<Mesh> mesh, double seconds) {
  std::vector<int> ranks(static_cast<size_t>(mesh->size()));
  for (size_t r = 0; r < ranks.size(); ++r) ranks[r] = static_cast<int>(r);
  return std::make_unique<TcpGroup>(std::move(mesh), std::move(ranks), seconds);
}

}  // namespace muster::together
