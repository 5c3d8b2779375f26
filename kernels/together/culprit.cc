#include "kernels/together/culprit.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/words.h"

namespace muster::together {
namespace {

struct Word {
  uint32_t rank;
  uint16_t kind, expired;
};
static_assert(sizeof(Word) == 8);

using Named = std::map<int, Loss>;

LossReports list(const Named& named) {
  LossReports out;
  for (const auto& [rank, kind] : named) out.push_back({rank, kind});
  return out;
}

// Returns all members that statements report lost in one of these ways; `spoken`: including members that have
// sent a statement themselves.
Named reported_as(const Evidence& evidence, std::initializer_list<Loss> kinds, bool spoken) {
  Named out;
  for (const auto& said : evidence.said) {
    if (!said) continue;
    for (const auto& [rank, kind] : said->reported)
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end() &&
          (spoken || !evidence.said[static_cast<size_t>(rank)]))
        out.emplace(rank, kind);
  }
  return out;
}

// Returns the members at the ends of the waiting chains that begin at members whose timeout has passed.
Named ends_of_chains(const Evidence& evidence) {
  std::vector<size_t> open;
  std::vector<bool> seen(evidence.said.size());
  for (size_t r = 0; r < evidence.said.size(); ++r)
    if (evidence.said[r] && evidence.said[r]->expired) open.push_back(r), seen[r] = true;
  Named out;
  while (!open.empty()) {
    const size_t from = open.back();
    open.pop_back();
    for (const auto& [rank, kind] : evidence.said[from]->reported) {
      const auto to = static_cast<size_t>(rank);
      if (seen[to]) continue;
      seen[to] = true;
      if (evidence.said[to])
        open.push_back(to);
      else
        out.emplace(rank, kind);
    }
  }
  return out;
}

}  // namespace

constexpr Words<Loss, 6> kLosses = {{{Loss::died, "died"},
                                     {Loss::silent, "silent"},
                                     {Loss::absent, "absent"},
                                     {Loss::refused, "refused"},
                                     {Loss::left, "left"},
                                     {Loss::astray, "astray"}}};

std::string_view to_string(Loss loss) { return word_of(kLosses, loss); }

Code code_of(Loss loss) {
  switch (loss) {
    case Loss::died:
    case Loss::left:
      return Code::failed;
    case Loss::silent:
      return Code::timeout;
    case Loss::absent:
      return Code::unavailable;
    case Loss::refused:
      return Code::denied;
    case Loss::astray:
      return Code::conflict;
  }
  return Code::failed;
}

LossReports culprits(const Evidence& evidence) {
  // Members that sent a statement count, too: one in a different call may report the difference first.
  if (const Named found = reported_as(evidence, {Loss::astray}, true); !found.empty()) return list(found);
  Named dead = reported_as(evidence, {Loss::died}, false);
  for (size_t r = 0; r < evidence.said.size(); ++r)
    if (evidence.dead(r)) dead.emplace(static_cast<int>(r), Loss::died);
  if (!dead.empty()) return list(dead);
  if (const Named found = reported_as(evidence, {Loss::left}, true); !found.empty()) return list(found);
  if (const Named found = reported_as(evidence, {Loss::absent, Loss::refused}, false); !found.empty())
    return list(found);
  if (const Named found = ends_of_chains(evidence); !found.empty()) return list(found);
  // All members are alive. A connection that broke, or was never established, has two ends: both are named.
  if (const Named found = reported_as(evidence, {Loss::died, Loss::absent, Loss::refused}, true);
      !found.empty())
    return list(found);
  // The members wait for each other: data that one sent has not reached the other.
  for (const auto& said : evidence.said)
    if (said && said->expired) return said->reported;
  return {};
}

bool settled(const Evidence& evidence, const LossReports& named) {
  const auto is_silent = [](const LossReport& one) { return one.kind == Loss::silent; };
  // One of several silent members may only be slow to report that it waits for another of them.
  const bool undecided = std::count_if(named.begin(), named.end(), is_silent) > 1;
  for (size_t r = 0; r < evidence.said.size(); ++r) {
    const bool is_named = std::any_of(named.begin(), named.end(), [&](const LossReport& one) {
      return one.rank == static_cast<int>(r) && !(undecided && is_silent(one));
    });
    if (!evidence.said[r] && !evidence.gone[r] && !evidence.left[r] && !is_named) return false;
  }
  return true;
}

std::string encode(const Statement& statement) {
  std::string out;
  for (const auto& [rank, kind] : statement.reported) {
    const Word word{static_cast<uint32_t>(rank), static_cast<uint16_t>(kind), statement.expired};
    out.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return out;
}

std::optional<Statement> decode_statement(std::string_view bytes, size_t members) {
  if (bytes.size() % sizeof(Word) != 0) return std::nullopt;
  Statement out;
  for (; !bytes.empty(); bytes.remove_prefix(sizeof(Word))) {
    Word word;
    std::memcpy(&word, bytes.data(), sizeof word);
    if (word.rank >= members || word.kind > static_cast<uint16_t>(Loss::astray)) return std::nullopt;
    out.expired = word.expired != 0;
    out.reported.push_back({static_cast<int>(word.rank), static_cast<Loss>(word.kind)});
  }
  return out;
}

}  // namespace muster::together
