#include "kernels/group_mpi.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster::mpi {
namespace {

constexpr int kTag = 1;
constexpr size_t kAtOnce = size_t{1} << 28;  // MPI counts in int

// Calls `part` for pieces of the values, each small enough for one MPI call.
template <typename T, typename Part>
void in_pieces(std::span<T> values, Part part) {
  for (size_t at = 0; at < values.size(); at += kAtOnce) {
    const auto piece = values.subspan(at, std::min(kAtOnce, values.size() - at));
    part(piece.data(), static_cast<int>(piece.size()));
  }
}

class MpiGroup : public together::Group {
 public:
  // `owned`: the communicator is freed by the destructor.
  MpiGroup(MPI_Comm comm, bool owned) : comm_(comm), owned_(owned) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiGroup() override {
    if (owned_) MPI_Comm_free(&comm_);
  }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  void call_by(std::vector<std::string> names) { names_ = std::move(names); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name(int rank) const override { return names_.at(static_cast<size_t>(rank)); }
  void within(double) override {}
  const std::vector<together::Lost>& lost() const override { return none_; }

  Status sum(std::span<double> values) override { return reduce(values, MPI_DOUBLE, MPI_SUM); }
  Status sum(std::span<float> values) override { return reduce(values, MPI_FLOAT, MPI_SUM); }
  Status min(std::span<uint64_t> values) override { return reduce(values, MPI_UINT64_T, MPI_MIN); }
  Status max(std::span<double> values) override { return reduce(values, MPI_DOUBLE, MPI_MAX); }

  Status broadcast(std::span<char> bytes, int from) override {
    in_pieces(bytes, [&](char* data, int count) { MPI_Bcast(data, count, MPI_CHAR, from, comm_); });
    return Ok{};
  }

  Result<std::vector<std::string>> gather(const std::string& mine, int to) override {
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(static_cast<size_t>(size_)), starts(static_cast<size_t>(size_));
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, to, comm_);
    int all = 0;
    for (size_t r = 0; r < lengths.size(); ++r) starts[r] = all, all += lengths[r];
    std::string texts(static_cast<size_t>(all), '\0');
    MPI_Gatherv(mine.data(), length, MPI_CHAR, texts.data(), lengths.data(), starts.data(), MPI_CHAR, to,
                comm_);
    std::vector<std::string> out;
    for (size_t r = 0; rank_ == to && r < lengths.size(); ++r)
      out.push_back(texts.substr(static_cast<size_t>(starts[r]), static_cast<size_t>(lengths[r])));
    return out;
  }

  Result<std::vector<std::string>> allgather(const std::string& mine) override {
    std::vector<std::string> out(static_cast<size_t>(size_));
    for (int r = 0; r < size_; ++r) {
      std::string& text = out[static_cast<size_t>(r)];
      int length = static_cast<int>(mine.size());
      MPI_Bcast(&length, 1, MPI_INT, r, comm_);
      text = r == rank_ ? mine : std::string(static_cast<size_t>(length), '\0');
      MPI_Bcast(text.data(), length, MPI_CHAR, r, comm_);
    }
    return out;
  }

  Status send(std::span<const char> bytes, int to) override {
    in_pieces(bytes, [&](const char* data, int count) { MPI_Send(data, count, MPI_CHAR, to, kTag, comm_); });
    return Ok{};
  }
  Status receive(std::span<char> bytes, int from) override {
    in_pieces(bytes, [&](char* data, int count) {
      MPI_Recv(data, count, MPI_CHAR, from, kTag, comm_, MPI_STATUS_IGNORE);
    });
    return Ok{};
  }
  Status barrier() override {
    MPI_Barrier(comm_);
    return Ok{};
  }

  Result<std::unique_ptr<together::Group>> split(int colour) override {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(comm_, colour < 0 ? MPI_UNDEFINED : colour, rank_, &part);
    if (part == MPI_COMM_NULL) return std::unique_ptr<together::Group>{};
    auto out = std::make_unique<MpiGroup>(part, true);
    // Called on the new group: members with a negative colour are in none, and do not take part.
    auto names = out->allgather(name(rank_));
    out->call_by(std::move(*names));
    return std::unique_ptr<together::Group>(std::move(out));
  }

 private:
  template <typename T>
  Status reduce(std::span<T> values, MPI_Datatype type, MPI_Op op) {
    in_pieces(values, [&](T* data, int count) { MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, comm_); });
    return Ok{};
  }

  MPI_Comm comm_;
  const bool owned_;
  int rank_ = 0, size_ = 1;
  std::vector<std::string> names_ = {};
  std::vector<together::Lost> none_ = {};
};

}  // namespace

std::unique_ptr<together::Group> world() {
  auto out = std::make_unique<MpiGroup>(MPI_COMM_WORLD, false);
  char name[65] = {};
  ::gethostname(name, sizeof name - 1);
  auto names = out->allgather(name);
  out->call_by(std::move(*names));
  return out;
}

}  // namespace muster::mpi
