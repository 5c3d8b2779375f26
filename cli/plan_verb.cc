// muster plan, approve, reimage, rollback, accept, drain, undrain: show or carry out one plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/digest.h"
#include "cli/accept_hosts.h"
#include "cli/carry_out.h"
#include "cli/follow.h"
#include "cli/spec_request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

struct PlanFlags {
  std::string nodes, limit, spec, profile, kind = "auto", digest, report = "muster-report";
  std::vector<std::string> force;  // each NODES
  Approval approval;
  bool detach = false, reimage = false, through_ram = false, live = false;
};

Result<std::vector<std::string>> forced_nodes(const PlanFlags& flags) {
  return node_list(fmt::format("{}", fmt::join(flags.force, ",")));
}

Json plan_request(const PlanFlags& flags, const std::vector<std::string>& nodes,
                  const std::vector<std::string>& forced) {
  Json out = {{"kind", flags.kind}, {"nodes", nodes}, {"force", forced}};
  if (flags.through_ram) out["through_ram"] = true;
  if (flags.reimage) out["reimage"] = true;
  return out;
}

void show_plan(Context& context, const PlanFlags& flags) {
  if (flags.live) return complain(context, fail(Code::invalid, "--live needs SPEC"));
  const auto nodes = node_list(flags.nodes);
  if (!nodes.ok()) return complain(context, nodes.error());
  const auto forced = forced_nodes(flags);
  if (!forced.ok()) return complain(context, forced.error());
  Api api(context);
  const auto planned = api.post(plan_route(context), plan_request(flags, *nodes, *forced));
  if (!planned.ok()) {
    if (!context.json) fmt::print(stderr, "{}", render_refusals(api.details()));
    return complain(context, planned.error(), api.details());
  }
  show(context, *planned, [&] {
    const bool all = planned->value("left_out", Json::array()).empty();
    if (planned->value("empty", false) && all)
      return fmt::print("nothing to do: every node is as declared\n");
    print_plan(*planned);
    if (planned->value("empty", false)) return;
    fmt::print("\nto carry it out, run: muster approve {}\n", short_digest(planned->value("digest", "")));
  });
}

// The plan of a file that is not stored: nothing of it can be approved.
void show_plan_of_file(Context& context, const PlanFlags& flags) {
  if (flags.kind != "auto")
    return complain(context, fail(Code::invalid, "--kind is for the stored spec: omit SPEC, or --kind"));
  const auto nodes = node_list(flags.nodes);
  if (!nodes.ok()) return complain(context, nodes.error());
  const auto forced = forced_nodes(flags);
  if (!forced.ok()) return complain(context, forced.error());
  const auto text = spec_to_send(context, flags.spec);
  if (!text) return;
  const auto preview = request_preview(
      context, {*text, flags.spec, *nodes, *forced, flags.reimage, flags.through_ram, flags.live});
  if (preview) show_preview(context, *preview);
}

void approve_digest(Context& context, const PlanFlags& flags) {
  Api api(context);
  const auto started =
      api.post("/v1/plans/" + url_encode(flags.digest) + "/approve", {{"by", "muster approve"}});
  if (!started.ok()) return complain(context, started.error(), api.details());
  const auto id = started->value("run", int64_t{0});
  if (flags.detach) return show(context, *started, [&] { fmt::print("run {}\n", id); });
  const auto run = follow_run(context, id);
  if (!run.ok()) return complain(context, run.error());
  context.exit = exit_for_run(*run);
  show(context, *run, [&] { fmt::print("\n{}", render_summary(*run, terminal_width())); });
}

void carry_out(Context& context, const PlanFlags& flags, const std::string& kind) {
  if (!flags.nodes.empty() && !flags.limit.empty())
    return complain(context, fail(Code::invalid, "name the nodes either as NODES or with --limit, not both"));
  const auto nodes = node_list(flags.nodes.empty() ? flags.limit : flags.nodes);
  if (!nodes.ok()) return complain(context, nodes.error());
  Goal goal;
  goal.profile = flags.profile;
  goal.kind = kind;
  goal.nodes = *nodes;
  const auto forced = forced_nodes(flags);
  if (!forced.ok()) return complain(context, forced.error());
  goal.force = *forced;
  goal.through_ram = flags.through_ram;
  goal.approval = flags.approval;
  goal.report_dir = flags.report;
  reach(context, goal);
}

void force_option(Verb& verb, PlanFlags& flags) {
  verb.add_option("--force", &flags.force,
                  "NODES: include these nodes even if a storage section stops without them, their hardware "
                  "differs from the spec, or a different machine now uses their name; the plan shows which "
                  "applies")
      .check(wrong_list);
}

void goal_flags(Verb& verb, PlanFlags& flags) {
  add_approval(verb, flags.approval);
  verb.add_option("--report", &flags.report, "folder for the report")
      .check(wrong_report_folder)
      .shows_default();
}

}  // namespace

void add_plan(Verb& app, Context& context) {
  auto flags = std::make_shared<PlanFlags>();
  Verb& verb = app.add_verb("plan", "show what would be done and destroyed; changes nothing");
  verb.add_option(
      "SPEC", &flags->spec,
      "spec file: show what `muster up SPEC` would change, without storing it; default: the stored "
      "revision, whose plan can be approved");
  verb.add_option("--kind", &flags->kind,
                  "auto, discover, install, reimage, rollback, accept, drain, undrain")
      .shows_default();
  verb.add_option("--limit", &flags->nodes, "plan only these nodes, e.g. gpu[01-04],gpu07").check(wrong_list);
  verb.add_option(
          "--force", &flags->force,
          "NODES: plan these nodes even if nothing changed, install them even if their hardware differs "
          "from the spec or a different machine now uses their name, or start a storage "
          "section from an old copy of its metadata; the plan shows which applies")
      .check(wrong_list);
  verb.add_flag("--reimage", &flags->reimage,
                "with --kind auto: also re-image accepted nodes that run an older build of their image");
  verb.add_flag("--through-ram", &flags->through_ram, "re-image through the RAM system, not in place");
  verb.add_flag(
      "--live", &flags->live,
      "with SPEC: the nodes' agents check their steps, also on unchanged nodes, and change nothing");
  verb.footer(
      "With SPEC: what differs from the stored spec, which images would be built, which secrets are not set, "
      "and per node the kind of work, the reason and the steps that change, from what was last seen of the "
      "node. Nothing is stored or built, and no node is contacted without --live. Exit: 4 if `muster up "
      "SPEC` would stop because of what is shown.");
  verb.example("muster plan").example("muster plan cluster.yaml").example("muster plan cluster.yaml --live");
  verb.example("muster plan --kind reimage --limit gpu03 --json");
  verb.runs([flags, &context] {
    flags->spec.empty() ? show_plan(context, *flags) : show_plan_of_file(context, *flags);
  });
}

void add_approve(Verb& app, Context& context) {
  auto flags = std::make_shared<PlanFlags>();
  Verb& verb = app.add_verb("approve", "carry out a plan that `muster plan` showed");
  verb.add_option("DIGEST", &flags->digest,
                  "digest that `muster plan` printed; its first 8 digits are enough")
      .required();
  verb.add_flag("--detach", &flags->detach, "start the run and return without following it");
  verb.example("muster approve 3f9a17c2");
  verb.runs([flags, &context] { approve_digest(context, *flags); });
}

void add_reimage(Verb& app, Context& context) {
  auto flags = std::make_shared<PlanFlags>();
  Verb& verb = app.add_verb("reimage", "reinstall nodes; data disks are kept");
  verb.add_option("NODES", &flags->nodes, "e.g. gpu[01-04]").required().check(wrong_list);
  verb.add_flag("--through-ram", &flags->through_ram,
                "re-image through the RAM system, not in place: takes two firmware boots and one network "
                "boot, and also rewrites the boot loader");
  force_option(verb, *flags);
  goal_flags(verb, *flags);
  verb.footer(
      "Where possible, a node is re-imaged in place: the new system is written while the node's jobs run, "
      "then booted once; if it is not accepted, the node rolls back. The plan shows the method for each "
      "node, and why.");
  verb.example("muster reimage gpu03 --yes").example("muster reimage gpu[01-04] --through-ram");
  verb.runs([flags, &context] { carry_out(context, *flags, "reimage"); });
}

void add_rollback(Verb& app, Context& context) {
  auto flags = std::make_shared<PlanFlags>();
  Verb& verb = app.add_verb("rollback", "boot the previous system of the nodes; data disks are kept");
  verb.add_option("NODES", &flags->nodes, "e.g. gpu[01-04]").required().check(wrong_list);
  force_option(verb, *flags);
  goal_flags(verb, *flags);
  verb.footer(
      "Boots the previous image, configured as the spec now says; that image stays only if it is accepted. "
      "Rollback is refused if the other root slot is empty, half written or does not match the spec.");
  verb.example("muster rollback gpu03 --yes");
  verb.runs([flags, &context] { carry_out(context, *flags, "rollback"); });
}

namespace {

constexpr const char* kAcceptFooter =
    "Links are measured only between the named nodes; what was degraded and is not measured again stays "
    "degraded.\n"
    "With --hosts no controller is needed: hosts are reached over ssh, measured as they are, and left as "
    "they "
    "were. HOSTS contains [NAME] DESTINATION [address=IP] [group=WORD] for each host: one per line in a "
    "file, separated by commas in a list. DESTINATION is what ssh takes, with ranges: gpu[01-32]. Lists of "
    "Slurm, pdsh and genders and Ansible's INI inventories are read as well.\n"
    "Exit codes with --hosts: 0 accepted, 1 one failed and none is accepted, degraded or looked at, or "
    "interrupted, 2 bad input, 3 some hosts not accepted, only looked at, not reached, refused or busy, "
    "4 another command is running under this name, 5 all work and some are degraded.";
constexpr const char* kAcceptExamples[] = {
    "muster accept gpu[01-08] --profile quick --report ./night",
    "muster accept --hosts hosts.txt --profile standard",
    "muster accept --hosts 'gpu[01-32]' --user --json",
    "muster accept --hosts 'gpu[01-32]' --gpu-program ./muster-gpu-0.1.0-cuda12-linux-x86_64",
    "muster accept --hosts hosts.txt --via 'srun --jobid 4711 --overlap -N1 -n1 -w {host}'",
    "muster accept --hosts hosts.txt --drift-only"};

// Returns the names of these options, which need --hosts.
std::vector<std::string> add_hosts_flags(Verb& verb, AcceptHostsFlags& flags) {
  return {verb.add_option("--name", &flags.name,
                          "name under which the history of these hosts is kept; default: the file's name")
              .names(),
          verb.add_flag("--user", &flags.user, "do not use sudo; checks that need root are skipped").names(),
          verb.add_option("--via", &flags.via,
                          "command that starts a shell on the host, used instead of ssh; must contain {host}")
              .names(),
          verb.add_option("--ssh-config", &flags.ssh_config, "configuration file for ssh; default: ssh's own")
              .names(),
          verb.add_flag("--beside-jobs", &flags.beside_jobs,
                        "also look at hosts that run jobs: read counters and PCIe links only, without load "
                        "on the hosts; none of them is accepted (exit 3)")
              .names(),
          verb.add_flag("--drift-only", &flags.drift_only,
                        "measure nothing; show which versions and settings differ between hosts")
              .names(),
          verb.add_option("--libs", &flags.libs,
                          "folder on the hosts that contains NCCL, cuBLASLt and their libraries")
              .names(),
          verb.add_option("--gpu-program", &flags.gpu_programs,
                          "muster-accept-gpu on this machine, or a folder with it; may be repeated, once for "
                          "each CUDA version; default: beside muster, then /usr/lib/muster")
              .names(),
          verb.add_option("--rail-rate", &flags.rail_rate,
                          "rate that RDMA ports are held to, such as '200 Gb/s'; default: what they can do")
              .names(),
          verb.add_option("--port-rate", &flags.port_rate, "the same for the ports of the hosts' addresses")
              .names()};
}

void start_accept(Context& context, const PlanFlags& flags, AcceptHostsFlags hosts,
                  const std::vector<std::string>& only_with_hosts, const Given& given) {
  if (!hosts.hosts.empty()) {
    if (!flags.nodes.empty() || !flags.limit.empty() || !flags.approval.digest.empty())
      return complain(
          context,
          fail(Code::invalid,
               "NODES, --limit and --approve apply only to nodes of a controller: omit them with --hosts"));
    hosts.profile = flags.profile;
    hosts.report = flags.report;
    return accept_hosts(context, hosts);
  }
  for (const std::string& name : given.arguments)
    if (std::find(only_with_hosts.begin(), only_with_hosts.end(), name) != only_with_hosts.end())
      return complain(context, fail(Code::invalid, name + " needs --hosts"));
  carry_out(context, flags, "accept");
}

}  // namespace

void add_accept(Verb& app, Context& context) {
  auto flags = std::make_shared<PlanFlags>();
  auto hosts = std::make_shared<AcceptHostsFlags>();
  Verb& verb = app.add_verb(
      "accept",
      "run the acceptance tests on nodes again, or on running hosts (--hosts); changes no configuration");
  verb.add_option("NODES", &flags->nodes, "default: all").check(wrong_list);
  verb.add_option("--limit", &flags->limit, "the same as NODES: one node, a rack (gpu[01-32]), ...")
      .check(wrong_list);
  verb.add_option("--profile", &flags->profile,
                  "quick, standard, burn or another profile in playbooks/acceptance; default: the spec's "
                  "profile, or with --hosts: standard");
  goal_flags(verb, *flags);
  verb.add_option("--hosts", &hosts->hosts, "running hosts to test: a file or a list of names")
      .check(wrong_list);
  const auto only_with_hosts = add_hosts_flags(verb, *hosts);
  verb.footer(kAcceptFooter);
  for (const char* example : kAcceptExamples) verb.example(example);
  verb.runs([flags, hosts, only_with_hosts, &context](const Given& given) {
    start_accept(context, *flags, *hosts, only_with_hosts, given);
  });
}

namespace {

void add_one_drain(Verb& app, Context& context, const std::string& kind, const char* help,
                   const char* example) {
  auto flags = std::make_shared<PlanFlags>();
  flags->report = "";
  Verb& verb = app.add_verb(kind, help);
  verb.add_option("NODES", &flags->nodes, "e.g. gpu[01-04]").required().check(wrong_list);
  add_approval(verb, flags->approval);
  verb.example(example);
  verb.runs([flags, &context, kind] { carry_out(context, *flags, kind); });
}

}  // namespace

void add_drain(Verb& app, Context& context) {
  add_one_drain(
      app, context, "drain",
      "drain nodes: they get no new jobs, running jobs finish, and shared data moves to other nodes",
      "muster drain gpu03 --yes && muster power off gpu03 --yes");
  add_one_drain(app, context, "undrain", "return drained nodes to the scheduler and to the shared storage",
                "muster undrain gpu03 --yes");
}

}  // namespace muster::cli
