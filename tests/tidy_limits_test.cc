// House rules as a test, continued: how large files and parameter lists may be, and which words stand in one
// place only. tests/tidy_test.cc says how rules are written.
#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/tidy_source.h"

namespace {

using namespace muster::tidy;

constexpr size_t kLongestFile = 500;
constexpr int kMostParameters = 6;
constexpr int kMostFields = 25;

// A benchmark is read as often as a product file is.
bool is_read(const std::string& path) {
  return is_product(path) || (is_cpp(path) && path.starts_with("bench/"));
}
bool is_controller(const std::string& path) { return is_cpp(path) && path.starts_with("controller/"); }
// What has the types. The command line reads the API's JSON.
bool has_words(const std::string& path) {
  return is_controller(path) || (is_cpp(path) && (path.starts_with("agent/") || path.starts_with("base/")));
}

Complaints long_files(const Source& source) {
  const size_t lines = lines_of(source.text).size();
  if (lines <= kLongestFile) return {};
  return {source.path + ": " + std::to_string(lines) + " lines"};
}

// Older than the rule: kernels, in which shapes and strides are numbers. Nothing is added here.
const std::set<std::string>& known_long_lists() {
  static const std::set<std::string> files = {
      "kernels/gpu/cublaslt.cc",        "kernels/gpu/exact.cu",      "kernels/gpu/memory.cu",
      "kernels/gpu/gpu_sdc.cc",         "kernels/gpu/training.cc",   "kernels/gpu/training.cu",
      "kernels/gpu/logic/gpu_logic.cc", "kernels/common/multiply.h", "kernels/training/block.cc"};
  return files;
}

// Of the function whose body opens behind `before`; 0: that is no function.
int parameters(std::string before) {
  static const std::regex bounds(R"(__launch_bounds__\([^)]*\))");
  static const std::regex other(
      R"(^\s*(template\s*<[^;]*>\s*)?(inline\s+)?(namespace|class|struct|enum|union|extern)\b)"
      R"(|^\s*(else|if|for|while|switch|do|try|catch|return)\b)");
  // A call or an initialiser before the list of parameters: a table, a lambda, an expression.
  static const std::regex expression(R"([=?]\s*$|[=.]|->)");
  before = std::regex_replace(before, bounds, "");
  const size_t open = before.find('(');
  if (open == std::string::npos || std::regex_search(before, other) ||
      std::regex_search(before.substr(0, open), expression))
    return 0;
  int depth = 0, count = 1;
  for (const char c : before.substr(open)) {
    if (c == '(' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '>' || c == ']') --depth;
    if (depth == 0) break;
    if (c == ',' && depth == 1) ++count;
  }
  return depth == 0 ? count : 0;
}

Complaints many_parameters(const Source& source) {
  Complaints bad;
  if (known_long_lists().count(source.path)) return bad;
  std::string before;
  size_t line = 1;
  for (const char c : without_records(code_of(source.text))) {
    if (c == '\n') ++line;
    if (c == '{')
      if (const int count = parameters(before); count > kMostParameters)
        bad.push_back(source.path + ":" + std::to_string(line) + ": " + std::to_string(count) +
                      " parameters");
    if (c == '{' || c == '}' || c == ';')
      before.clear();
    else
      before += c;
  }
  return bad;
}

Complaints matches(const Source& source, const std::regex& word, const char* why) {
  Complaints bad;
  size_t number = 0;
  for (const auto& line : lines_of(without_comments(source.text))) {
    ++number;
    if (std::regex_search(line, word)) bad.push_back(source.path + ":" + std::to_string(number) + why);
  }
  return bad;
}

// States of nodes and runs, who holds a node, and kinds of plans, requests and orders have one table of words
// each. Elsewhere they are values; a word is neither assigned, nor compared with, nor put into JSON by hand.
Complaints words_of_types(const Source& source) {
  static const std::set<std::string> tables = {
      "base/wire.cc",
      "controller/nodes/held_by.cc",
      "controller/nodes/states.cc",
      "controller/plan/plan.cc",
      "controller/plan/planner.cc",
      "agent/steps/services/slurm.cc",  // Slurm's own states
  };
  static const std::regex word(
      R"re(\bstate\s*(==|!=|=)\s*"(unknown|discovered|unadmitted|installing|accepted|degraded|quarantined)re"
      R"re(|draining|drained|running|done|partial|failed|cancelled)")re"
      R"re(|"(state|result)"\]?\s*(,|=)\s*"(discovered|unadmitted|installing|accepted|degraded|quarantined)re"
      R"re(|draining|drained|running|done|partial|cancelled)")re"
      R"re(|\bheld_by"?\]?\s*(==|!=|=|,)\s*")re"
      R"re(|\bplan_?(\(\))?(\.|->)kind\s*(==|!=|=)\s*")re"
      R"re(|\brequest(->second)?(\.|->)kind\s*(==|!=|=)\s*")re"
      R"re(|\b(order|current|drop|offer)_?(\.|->)kind\s*(==|!=|=)\s*")re");
  if (tables.count(source.path)) return {};
  return matches(source, word, ": a word of a state or kind: use the value, and the table where text is due");
}

// Engines are distinguished by their descriptions.
Complaints names_of_engines(const Source& source) {
  static const std::regex name(R"re("(moosefs|beegfs|nfs)"|\bengine\s*(==|!=)\s*")re");
  if (source.path.starts_with("controller/engines/")) return {};
  return matches(source, name, ": an engine's name: ask controller/engines/engine.h");
}

// And so are power drivers.
Complaints names_of_drivers(const Source& source) {
  static const std::regex name(R"re("(redfish|ipmi|command|sakura-phy|manual)"|\bdriver\s*(==|!=)\s*")re");
  if (source.path.starts_with("controller/power/")) return {};
  return matches(source, name, ": a power driver's name: ask controller/power/describe/driver_description.h");
}

// Own records are lists of fields (base/record.h). What is read by hand is foreign, or a request with rules
// of its own; a file leaves the list with its last reader.
constexpr size_t kMostReaders = 17;
const std::set<std::string>& with_readers() {
  static const std::set<std::string> files = {
      "agent/steps/disk/data_disks.cc",
      "agent/steps/disk/partition.cc",
      "agent/steps/gpu/acs.cc",
      "agent/steps/network/port_choice.cc",
      "controller/api/admin_api.cc",
      "controller/api/admit_api.cc",
      "controller/api/adopt_api.cc",
      "controller/api/agent_api.cc",
      "controller/api/images_api.cc",
      "controller/api/plan_api.cc",
      "controller/report/verdict.cc",  // limits of a metric, of which the ratios are a table
      "lab/serve.cc",
  };
  return files;
}
Complaints readers(const Source& source) {
  static const std::regex reader(R"(\bJsonReader\s*\w*\s*[({])");
  if (source.path.starts_with("base/json.") || source.path.starts_with("base/record.")) return {};
  return matches(source, reader, ": read by hand");
}
Complaints unlisted_readers(const Source& source) {
  if (with_readers().count(source.path)) return {};
  Complaints bad = readers(source);
  for (std::string& line : bad) line += ": an own record is a list of fields, base/record.h";
  return bad;
}
size_t count_readers() {
  size_t count = 0;
  for (const auto& source : tree())
    if (is_product(source.path)) count += readers(source).size();
  return count;
}

// A port of muster's own is a constant of base/ports.h.
Complaints numbers_of_ports(const Source& source) {
  static const std::regex number(
      R"re(\b(7443|7480|7481|7490|7495|7540|7541|7560)\b|[pP]ort\b\W{1,4}(67|69)\b)re");
  if (source.path == "base/ports.h") return {};
  return matches(source, number, ": the number of a port: take it from base/ports.h");
}

// The logic passes a node's name as what it is: beside it stand ids of orders and digests.
Complaints untyped_names(const Source& source) {
  static const std::set<std::string> folders = {"ports", "run", "executor", "plan"};
  static const std::regex folder("^controller/([a-z]+)/");
  static const std::regex name(R"(\bconst std::string& node\b)");
  std::smatch found;
  if (!std::regex_search(source.path, found, folder) || !folders.count(found[1])) return {};
  return matches(source, name, ": a node's name is a NodeName, base/names.h");
}

// How many data members a declaration adds to its struct; `declared`: with each block as "{}". A member of
// type Attempt counts as none: it is cleared as a whole.
int fields_in(std::string declared) {
  static const std::regex other(R"(^\s*(using|enum|friend|static|typedef)\b|^\s*struct\b[^}]*(\}\s*)?$)");
  static const std::regex attempt(R"(^\s*Attempt\b)"), arguments(R"(<[^<>]*>)");
  std::replace(declared.begin(), declared.end(), '"', ' ');  // where code_of() took a comment out
  while (std::regex_search(declared, arguments)) declared = std::regex_replace(declared, arguments, "");
  if (declared.find_first_not_of(" \n") == std::string::npos || std::regex_search(declared, other) ||
      std::regex_search(declared, attempt) ||
      declared.substr(0, declared.find('=')).find('(') != std::string::npos)
    return 0;
  return 1 + static_cast<int>(std::count(declared.begin(), declared.end(), ','));
}

// How many data members the struct declares itself; 0: the code has no such struct.
int fields_of(const std::string& code, const std::string& name) {
  size_t at = code.find("struct " + name + " {");
  if (at == std::string::npos) return 0;
  int depth = 0, count = 0;
  std::string declared;
  for (at = code.find('{', at); at < code.size(); ++at) {
    const char c = code[at];
    if (c == '}' && --depth == 0) break;
    if (c == '{' && ++depth == 1) continue;
    const bool in_list = depth == 1 && c != ';';
    if (in_list || (depth == 2 && c == '{')) declared += c;
    if (depth != 1 || (c != ';' && c != '}')) continue;
    // A block behind a list of parameters is a function's, and needs no semicolon.
    const bool function = c == '}' && declared.substr(0, declared.find('=')).find('(') != std::string::npos;
    if (c == ';') count += fields_in(declared);
    if (c == ';' || function) declared.clear();
  }
  return count;
}

// What belongs to an attempt stands in Attempt, so that the next one begins without it.
Complaints loose_fields(const Source& source) {
  if (source.path != "controller/run/node_run.h") return {};
  const int count = fields_of(code_of(source.text), "NodeRun");
  if (count > 0 && count <= kMostFields) return {};
  return {source.path + ": NodeRun has " + std::to_string(count) + " fields beside its Attempt"};
}

std::string repeat(const std::string& text, size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

}  // namespace

TEST_CASE("tidy: every rule about sizes and words can fail", "[tidy]") {
  CHECK(long_files({"lab/a.cc", repeat("x\n", kLongestFile + 1)}).size() == 1);
  CHECK(long_files({"lab/a.cc", repeat("x\n", kLongestFile)}).empty());

  CHECK(many_parameters({"a.cc", "int f(int a, M<int, int> b, int c, int d,\n int e, int f, int g) {}\n"})
            .size() == 1);
  CHECK(many_parameters({"a.cc", "int f(int a, M<int, int> b, int c, int d, int e, int f) const {}\n"})
            .empty());
  CHECK(many_parameters({"a.cc", "A::A(int a, int b, int c, int d, int e, int f, int g) : a_(a) {}\n"})
            .size() == 1);
  CHECK(many_parameters({"a.cc", "void g() { x.f(1, 2, 3, 4, 5, 6, [] { return 1; }); }\n"}).empty());

  for (const char* line :
       {"if (row.state == \"accepted\") {}\n", "  row.state = \"drained\";\n",
        "  if (run.plan.kind != \"wake\") x();\n", "  if (executor.plan().kind != \"wake\") x();\n",
        "  tell({{\"state\", \"quarantined\"}});\n", "  node[\"result\"] = \"degraded\";\n",
        "  if (row.held_by == \"operator\") x();\n", "  if (request.kind == \"adopt\") x();\n",
        "  order.kind = \"steps\";\n", "  if (current_->kind == \"kexec\") x();\n"}) {
    INFO(line);
    CHECK(words_of_types({"controller/a.cc", line}).size() == 1);
    CHECK(words_of_types({"controller/nodes/states.cc", line}).empty());
  }
  CHECK(words_of_types({"controller/a.cc", "  // state = \"drained\"\n  out[\"state\"] = \"absent\";\n"})
            .empty());
  CHECK(words_of_types({"agent/a.cc", "  if (event.kind == \"log\") x();\n"}).empty());

  const auto node_run = [](const std::string& fields) {
    return loose_fields({"controller/run/node_run.h", "struct NodeRun {\n" + fields + "};\n"}).size();
  };
  const std::string twelve = repeat("  std::map<int, int> a, b = {1, 2};  // c, d\n", 12);
  CHECK(node_run(twelve + "  int a = 0, b = f(0);\n") == 1);
  CHECK(node_run(twelve + "  struct Shown {\n    int a, b;\n  } shown;\n  int d;\n") == 1);
  CHECK(node_run(twelve + "  enum class Stage { a, b };\n  struct Shown {\n    int a, b;\n  };\n"
                          "  using Next = std::variant<A, B>;\n  bool f(int a, int b) const { return a; }\n"
                          "  void g(int a, int b);\n  Attempt attempt;\n  Shown shown;\n") == 0);
  CHECK(loose_fields({"controller/run/node_run.h", "struct Other {\n  int a;\n};\n"}).size() == 1);

  CHECK(names_of_engines({"controller/a.cc", "  if (s.engine == \"ceph\") x();\n"}).size() == 1);
  CHECK(names_of_engines({"controller/a.cc", "  list(\"moosefs\");\n"}).size() == 1);
  CHECK(names_of_engines({"controller/engines/nfs_engine.cc", "  {.name = \"nfs\"};\n"}).empty());
  CHECK(names_of_engines({"controller/a.cc", "  say(\"engine 'moosefs'\");  // \"nfs\"\n"}).empty());

  CHECK(names_of_drivers({"controller/a.cc", "  if (node.power.driver != \"ssh\") x();\n"}).size() == 1);
  CHECK(names_of_drivers({"controller/a.cc", "  list(\"sakura-phy\");\n"}).size() == 1);
  CHECK(names_of_drivers({"controller/power/ipmi.cc", "  return {\"ipmi\"};\n"}).empty());
  CHECK(names_of_drivers({"controller/a.cc", "  say(\"driver 'manual'\");  // \"ipmi\"\n"}).empty());

  for (const char* line : {"  url = \"https://\" + address + \":7443\";\n", "  uint16_t http_port = 7480;\n",
                           "  rule = {{\"port\", 67}};\n", "  int port = 7540;\n"}) {
    INFO(line);
    CHECK(numbers_of_ports({"controller/a.cc", line}).size() == 1);
    CHECK(numbers_of_ports({"base/ports.h", line}).empty());
  }
  CHECK(numbers_of_ports({"controller/a.cc", "  url = tls_url(a);  // https://a:7443\n  r.at(67, 4);\n"})
            .empty());
}

TEST_CASE("tidy: the rule about names of nodes can fail", "[tidy]") {
  CHECK(untyped_names({"controller/run/a.h", "  void f(const std::string& node);\n"}).size() == 1);
  CHECK(untyped_names({"controller/run/a.h", "  void f(const NodeName& node, const std::string& nodes);\n"})
            .empty());
  CHECK(untyped_names({"controller/api/a.h", "  void f(const std::string& node);\n"}).empty());
}

TEST_CASE("tidy: the logic names nodes by type", "[tidy]") {
  CHECK(over_tree(untyped_names, is_controller) == "");
}

TEST_CASE("tidy: the rule about readers by hand can fail", "[tidy]") {
  for (const char* line : {"  JsonReader r(json, \"plan\");\n", "  auto r = JsonReader(json, path);\n",
                           "  JsonReader r{json, \"plan\"};\n"}) {
    INFO(line);
    CHECK(unlisted_readers({"controller/a.cc", line}).size() == 1);
    CHECK(unlisted_readers({"lab/serve.cc", line}).empty());
    CHECK(readers({"lab/serve.cc", line}).size() == 1);
  }
  CHECK(readers({"controller/a.cc", "// JsonReader r(json);\nvoid f(JsonReader& r);\n"}).empty());
}

TEST_CASE("tidy: own records are read by their fields", "[tidy]") {
  CHECK(over_tree(unlisted_readers, is_product) == "");
  CHECK(count_readers() <= kMostReaders);
}

TEST_CASE("tidy: no product file is longer than can be read at once", "[tidy]") {
  CHECK(over_tree(long_files, is_read) == "");
}

TEST_CASE("tidy: what takes more than six parameters takes a struct", "[tidy]") {
  CHECK(over_tree(many_parameters, is_read) == "");
}

TEST_CASE("tidy: what belongs to an attempt of a node stands in the attempt", "[tidy]") {
  CHECK(over_tree(loose_fields, is_controller) == "");
}

TEST_CASE("tidy: states, kinds, engines and drivers are distinguished by type, not by text", "[tidy]") {
  CHECK(over_tree(words_of_types, has_words) == "");
  CHECK(over_tree(names_of_engines, is_controller) == "");
  CHECK(over_tree(names_of_drivers, is_controller) == "");
}

TEST_CASE("tidy: a port of muster's own has its number in one place", "[tidy]") {
  CHECK(over_tree(numbers_of_ports, is_product) == "");
}
