#include "controller/executor/journal_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sys/contain.h"
#include "sys/log.h"

namespace muster {

namespace {

// How many continuations of a commit run in one task; the rest run after tasks that were posted in between.
constexpr int kInOneTask = 4;

}  // namespace

JournalWriter::JournalWriter(Reactor& reactor, Store& store) : reactor_(reactor), store_(store) {}

JournalWriter::~JournalWriter() { alive_.end(); }

void JournalWriter::write(const NodeName& node, Rows rows, std::function<void()> then) {
  waiting_.push_back({node, std::move(rows), std::move(then)});
  flush();
}

std::string JournalWriter::trouble(const NodeName& node) const {
  const auto found = troubles_.find(node);
  if (found != troubles_.end()) return found->second;
  if (!node.empty() || troubles_.empty()) return "";
  const auto& [whose, why] = *troubles_.begin();
  return whose + ": " + why;
}

bool JournalWriter::must_wait(const NodeName& node) const {
  return node.empty() ? !refused_.empty() : refused_.count(node) > 0;
}

// An older row of a node must not overwrite a newer one: a node with a row in a waiting piece waits as well.
void JournalWriter::keep(Piece piece, Pieces& kept) {
  for (const Write& row : piece.rows)
    if (const auto* node = std::get_if<NodeRow>(&row)) refused_.insert(node->name);
  kept.push_back(std::move(piece));
}

JournalWriter::Pieces JournalWriter::next_commit() {
  Pieces next, rest;
  for (Piece& piece : waiting_) {
    if (must_wait(piece.node))
      keep(std::move(piece), rest);
    else
      next.push_back(std::move(piece));
  }
  waiting_ = std::move(rest);
  return next;
}

void JournalWriter::flush() {
  if (writing_) return;
  if (std::exchange(try_again_, false)) refused_.clear();
  auto pieces = std::make_shared<Pieces>(next_commit());
  if (pieces->empty()) return;
  writing_ = true;
  commit(std::move(pieces));
}

void JournalWriter::commit(std::shared_ptr<Pieces> pieces) {
  Rows rows;
  for (const Piece& piece : *pieces) rows.insert(rows.end(), piece.rows.begin(), piece.rows.end());
  store_.write(std::move(rows), alive_.wrap([this, pieces](Status status) {
    if (!status.ok()) return one_by_one(pieces, std::make_shared<Pieces>());
    for (const Piece& piece : *pieces) written(piece.node);
    writing_ = false;
    flush();
    for (Piece& piece : *pieces)
      if (piece.then) due_.push_back(std::move(piece.then));
    run_due();
  }));
}

// In order, also across several commits.
void JournalWriter::run_due() {
  if (due_posted_) return;
  const auto alive = alive_.watch();
  for (int i = 0; i < kInOneTask && !due_.empty(); ++i) {
    const auto then = std::move(due_.front());
    due_.pop_front();
    // Each continuation is contained separately: if one throws, the others are called as well.
    contain_exceptions("continuation of a commit", then);
    if (!*alive) return;
  }
  if (due_.empty()) return;
  due_posted_ = true;
  reactor_.post([this, alive] {
    if (!*alive) return;
    reactor_.label("run: continuation of a commit");
    due_posted_ = false;
    run_due();
  });
}

// Finds the pieces that cannot be written; no piece is written before an earlier one of its node.
void JournalWriter::one_by_one(std::shared_ptr<Pieces> left, std::shared_ptr<Pieces> kept) {
  while (!left->empty() && must_wait(left->front().node)) {
    keep(std::move(left->front()), *kept);
    left->pop_front();
  }
  if (left->empty()) {
    std::move(kept->rbegin(), kept->rend(), std::front_inserter(waiting_));
    writing_ = false;
    return flush();
  }
  auto piece = std::make_shared<Piece>(std::move(left->front()));
  left->pop_front();
  store_.write(piece->rows, alive_.wrap([this, left, kept, piece](Status status) {
    if (status.ok() && piece->then) due_.push_back(std::move(piece->then));
    if (status.ok()) {
      written(piece->node);
    } else {
      refused(piece->node, status.error());
      keep(std::move(*piece), *kept);
    }
    one_by_one(left, kept);
    run_due();
  }));
}

void JournalWriter::refused(const NodeName& node, const Error& error) {
  refused_.insert(node);
  troubles_[node] = error.message;
  if (complaints_.insert(error.message).second)
    log::error("the store cannot be written; retrying every second",
               {{"node", node}, {"error", error.message}});
  if (std::exchange(timer_runs_, true)) return;
  reactor_.after(kSecond, alive_.wrap([this] {
    timer_runs_ = false;
    try_again_ = true;
    flush();
  }));
}

void JournalWriter::written(const NodeName& node) {
  troubles_.erase(node);
  if (troubles_.empty()) complaints_.clear();
}

}  // namespace muster
