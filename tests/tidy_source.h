// The tree as the tidy tests read it: the text of every file that a person wrote, and what of it is program.
#pragma once

#include <string>
#include <vector>

namespace muster::tidy {

using Complaints = std::vector<std::string>;

struct Source {
  std::string path;  // relative to the root of the tree
  std::string text;
};

inline bool is_header(const std::string& path) { return path.ends_with(".h"); }
inline bool is_unit(const std::string& path) { return path.ends_with(".cc") || path.ends_with(".cu"); }
inline bool is_cpp(const std::string& path) { return is_header(path) || is_unit(path); }

std::vector<std::string> lines_of(const std::string& text);
// Everything a person wrote here: no builds, no recordings of other machines, nothing hidden.
const std::vector<Source>& tree();

// What a source includes, in quotation marks (open '"') or in angle brackets (open '<').
std::vector<std::string> includes_of(const Source& source, char open);
// "controller/run/gate.h" -> "controller/run"
std::string folder_of(const std::string& path);
// A source of one of the programs, or of what they share.
bool is_product(const std::string& path);

// The position after the literal that starts at `at`.
size_t skip_literal(const std::string& text, size_t at);
// A program without its comments and literals; lines stay lines.
std::string code_of(const std::string& text);
// `code` without the lists of fields and words (base/record.h), which look like functions; lines stay lines.
std::string without_records(std::string code);
// A program without its comments; literals stay.
std::string without_comments(const std::string& text);

// A line each; "" when there are none.
std::string all_of(const Complaints& complaints);
// What a rule says of the files that `which` chooses, a line each; "" when it says nothing.
template <typename Rule>
std::string over_tree(Rule rule, bool (*which)(const std::string& path)) {
  std::string all;
  for (const auto& source : tree())
    if (which(source.path))
      for (const auto& complaint : rule(source)) all += "\n" + complaint;
  return all;
}

}  // namespace muster::tidy
