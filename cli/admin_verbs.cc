// muster version, backup, sim.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/version.h"
#include "cli/cli_context.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void version(Context& context) {
  Json out = {{"muster", kProgramVersion}};
  const auto controller = Api(context).get("/v1/version");
  if (controller.ok()) out["controller"] = *controller;
  show(context, out, [&] {
    fmt::print("muster {}\n", kProgramVersion);
    if (controller.ok())
      fmt::print("musterd {}{}\n", controller->value("version", "unknown"),
                 controller->value("lab", false) ? " (lab)" : "");
  });
}

void backup(Context& context, const std::string& path) {
  const std::string absolute = std::filesystem::absolute(path).string();
  const auto done = Api(context).post("/v1/backup", {{"path", absolute}});
  if (!done.ok()) return complain(context, done.error());
  show(context, *done, [&] { fmt::print("{}\n", absolute); });
}

// The simulation is a separate program, because it contains fakes that must not be linked into this one.
void sim(Context& context, const std::vector<std::string>& arguments) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string program = (self.parent_path() / "muster_sim").string();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  complain(context, fail(Code::invalid, fmt::format("{}: {}", program, std::strerror(errno))));
}

}  // namespace

void add_version(Verb& app, Context& context) {
  app.add_verb("version", "print the versions of this program and of the controller")
      .example("muster version")
      .runs([&context] { version(context); });
}

void add_backup(Verb& app, Context& context) {
  auto path = std::make_shared<std::string>();
  Verb& verb = app.add_verb("backup",
                            "write a consistent copy of the controller's database to a file on the "
                            "controller host; keys are not included");
  verb.add_option("FILE", path.get()).required();
  verb.example("muster backup /srv/backup/muster.db");
  verb.runs([path, &context] { backup(context, *path); });
}

void add_sim(Verb& app, Context& context) {
  Verb& verb = app.add_verb(
      "sim", "simulate the planner, the executor and the agents in one process, reproducibly from a seed");
  verb.takes_rest();
  verb.example("muster sim");
  verb.runs([&context](const Given& given) { sim(context, given.rest); });
}

}  // namespace muster::cli
