#include "tests/tidy_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/source_dir.h"

namespace muster::tidy {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

const std::vector<Source>& tree() {
  static const std::vector<Source> sources = [] {
    std::vector<Source> found;
    const fs::path root = source_dir();
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
      std::string name = it->path().filename().string();
      if (it->is_directory()) {
        bool skip = name[0] == '.' || name.starts_with("build") || name == "out" || name == "golden" ||
                    name == "shared";
        if (skip) it.disable_recursion_pending();
        continue;
      }
      if (!it->is_regular_file() || name[0] == '.' || it->file_size() > 4 << 20) continue;
      std::ifstream in(it->path(), std::ios::binary);
      std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      if (text.find('\0') != std::string::npos) continue;
      found.push_back({fs::relative(it->path(), root).string(), std::move(text)});
    }
    std::sort(found.begin(), found.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
    return found;
  }();
  return sources;
}

std::vector<std::string> includes_of(const Source& source, char open) {
  std::vector<std::string> found;
  const std::string start = std::string("#include ") + open, close = open == '"' ? "\"" : ">";
  for (const auto& line : lines_of(source.text))
    if (line.starts_with(start))
      found.push_back(line.substr(start.size(), line.find(close, start.size()) - start.size()));
  return found;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, std::min(path.rfind('/'), path.size()));
}

bool is_product(const std::string& path) {
  static const std::set<std::string> folders = {"agent", "base",    "cli", "controller",
                                                "host",  "kernels", "lab", "sys"};
  return is_cpp(path) && folders.count(path.substr(0, path.find('/'))) > 0;
}

std::string all_of(const Complaints& complaints) {
  std::string all;
  for (const auto& complaint : complaints) all += "\n" + complaint;
  return all;
}

size_t skip_literal(const std::string& text, size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    std::string end = ")" + text.substr(at + 1, text.find('(', at) - at - 1) + "\"";
    size_t found = text.find(end, at);
    return found == std::string::npos ? text.size() : found + end.size();
  }
  char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

namespace {

std::string stripped(const std::string& text, bool literals) {
  std::string code;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    bool keep = true;
    bool digit_separator =
        text[at] == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]));
    if (text.compare(at, 2, "//") == 0) {
      end = std::min(text.find('\n', at), text.size());
      keep = false;
    } else if (text[at] == '#' && (at == 0 || text[at - 1] == '\n') && text.compare(at, 8, "#include") != 0) {
      end = std::min(text.find('\n', at), text.size());  // "#if __has_include(...)" is no function
      while (end < text.size() && text[end - 1] == '\\')
        end = std::min(text.find('\n', end + 1), text.size());
      keep = false;
    } else if (text.compare(at, 2, "/*") == 0) {
      end = std::min(text.find("*/", at), text.size() - 2) + 2;
      keep = false;
    } else if (text[at] == '"' || (text[at] == '\'' && !digit_separator)) {
      end = std::min(skip_literal(text, at), text.size());
      keep = literals;
    }
    std::string piece = text.substr(at, end - at);
    if (keep)
      code += piece;
    else
      code += (literals ? "" : "\"") +
              std::string(static_cast<size_t>(std::count(piece.begin(), piece.end(), '\n')), '\n');
    at = end;
  }
  return code;
}

}  // namespace

std::string code_of(const std::string& text) { return stripped(text, false); }
std::string without_records(std::string code) {
  for (const char* list : {"MUSTER_PARAMETERS(", "MUSTER_RECORD(", "MUSTER_WORDS("})
    for (size_t at = code.find(list); at != std::string::npos; at = code.find(list, at + 1)) {
      int depth = 0;
      for (size_t i = code.find('(', at); i < code.size(); ++i) {
        if (code[i] == '(') ++depth;
        const bool last = code[i] == ')' && --depth == 0;
        if (code[i] != '\n') code[i] = last ? ';' : ' ';
        if (last) break;
      }
    }
  return code;
}
std::string without_comments(const std::string& text) { return stripped(text, true); }

}  // namespace muster::tidy
