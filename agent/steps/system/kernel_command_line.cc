// kernel_command_line: sets kernel arguments. They take effect at the next boot, which the step requests.
//
// A node with muster's layout boots the entry of its slot on the ESP of its disk (own_esp.h,
// loader/entries/muster-SLOT.conf): that entry is edited, never that of the other slot or of a different
// disk. On other hosts GRUB's drop-in folder is used. The check also reads the running kernel's arguments: an
// entry that was not booted has no effect.
#include <algorithm>

#include <fmt/format.h>

#include "agent/core/identity.h"
#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/system/own_esp.h"
#include "base/distribution.h"

namespace muster::steps {
namespace {

constexpr const char* kMark = "/run/muster/reboot/kernel_command_line-";

struct WantedKernelCommandLine {
  std::string name = "base";
  Texts present, absent;  // "iommu=pt"; `absent` may also contain keys: "iommu"
};
MUSTER_PARAMETERS(WantedKernelCommandLine, optional(name, "name that distinguishes several such steps"),
                  optional(present,
                           "arguments to set, e.g. iommu=pt; a different value of the same key is removed"),
                  optional(absent, "arguments or keys that must not be present"))

// The kernel does not distinguish '-' from '_' in the name of a parameter.
std::string key_of(const std::string& argument) {
  std::string key = argument.substr(0, argument.find('='));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// True for arguments that decide what is booted, or that muster itself uses.
bool is_ours(const std::string& key) {
  return key == "root" || key == "rootfstype" || key == "init" || key == "ro" || key == "rw" ||
         key.starts_with("muster.");
}

Status complete_kernel_command_line(const StepContext&, WantedKernelCommandLine& want) {
  TRY_(check_name(want.name, "kernel_command_line"));
  if (want.present.empty() && want.absent.empty())
    return fail(Code::invalid, "kernel_command_line: nothing to set or remove");
  for (const auto* list : {&want.present, &want.absent})
    for (const auto& argument : *list) {
      if (argument.empty() || argument.find_first_of(" \t\n\"") != std::string::npos)
        return fail(Code::invalid, "kernel_command_line: '" + argument + "' must be a single argument");
      if (is_ours(key_of(argument)))
        return fail(Code::denied, "kernel_command_line: '" + key_of(argument) +
                                      "' decides what is booted and cannot be set by a playbook");
    }
  return Ok{};
}

bool has(const std::vector<std::string>& list, const std::string& argument) {
  return std::find(list.begin(), list.end(), argument) != list.end();
}

// Other values of the same key are removed, even of `console`, which may occur several times: a playbook that
// gives a value for a key means exactly that value.
std::vector<std::string> edited(const WantedKernelCommandLine& want, const std::vector<std::string>& now) {
  std::vector<std::string> out;
  for (const auto& argument : now) {
    bool drop = std::any_of(want.absent.begin(), want.absent.end(), [&](const std::string& a) {
      return a == argument || (a.find('=') == std::string::npos && key_of(a) == key_of(argument));
    });
    if (!has(want.present, argument))
      for (const auto& p : want.present) drop = drop || key_of(p) == key_of(argument);
    if (!drop) out.push_back(argument);
  }
  for (const auto& argument : want.present)
    if (!has(out, argument)) out.push_back(argument);
  return out;
}

// "options ..." of a boot entry.
std::string entry_options(const std::string& entry) {
  for (const auto& line : split_lines(entry))
    if (line.starts_with("options ")) return line.substr(8);
  return "";
}

std::string with_options(const std::string& entry, const std::vector<std::string>& options) {
  std::string out;
  for (const auto& line : split_lines(entry))
    out += (line.starts_with("options ") ? "options " + join(options, " ") : line) + "\n";
  return out;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A shell pattern that matches any spelling with '-' and '_'.
std::string key_pattern(const std::string& key) {
  std::string out, plain;
  for (const char c : key) {
    if (c != '-' && c != '_') {
      plain += c;
      continue;
    }
    out += (plain.empty() ? "" : shell_quoted(plain)) + "[-_]";
    plain.clear();
  }
  return out + (plain.empty() ? "" : shell_quoted(plain));
}

// GRUB puts GRUB_CMDLINE_LINUX_DEFAULT after GRUB_CMDLINE_LINUX and the kernel uses the last value of a key:
// so arguments are removed from both.
OwnFile grub_file(const WantedKernelCommandLine& want) {
  std::vector<std::string> patterns;
  const auto add_key = [&](const std::string& argument) {
    const std::string key = key_pattern(argument.substr(0, argument.find('=')));
    patterns.push_back(key + "|" + key + "'='*");
  };
  for (const auto& argument : want.absent) {
    if (argument.find('=') == std::string::npos)
      add_key(argument);
    else
      patterns.push_back(shell_quoted(argument));
  }
  for (const auto& argument : want.present) add_key(argument);
  std::string text = fmt::format(
      "# Written by muster.\nmuster_without() (\n  set -f\n  kept=\n  for word in $1; do\n"
      "    case \"$word\" in\n      {}) ;;\n      *) kept=\"$kept $word\" ;;\n    esac\n  done\n"
      "  printf '%s' \"${{kept# }}\"\n)\n",
      join(patterns, "|"));
  for (const char* variable : {"GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"})
    text += fmt::format("{0}=\"$(muster_without \"${0}\")\"\n", variable);
  if (!want.present.empty())
    text += "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX\"" + shell_quoted(" " + join(want.present, " ")) + "\n";
  // Sorted after the files of cloud images, hosting providers and sites: the last file wins.
  return {"/etc/default/grub.d/zz-muster-" + want.name + ".cfg", text, 0644};
}

// The file of earlier versions of muster, which was sorted before 99-site.cfg. It must not exist.
OwnFile earlier_grub_file(const WantedKernelCommandLine& want) {
  return {"/etc/default/grub.d/60-muster-" + want.name + ".cfg", "", 0644};
}

// For the first entry of GRUB's menu; "" if it does not differ or there is no menu.
std::string menu_diff(const Files& files, const WantedKernelCommandLine& want) {
  bool linux = false;
  for (const auto& line : split_lines(files.read("/boot/grub/grub.cfg").value_or(""))) {
    linux = linux || line.starts_with("### BEGIN /etc/grub.d/10_linux");
    auto now = split(line, " \t");
    if (!linux || now.size() < 2 || !now[0].starts_with("linux")) continue;
    now.erase(now.begin(), now.begin() + 2);  // the command and the kernel's path
    return edited(want, now) == now ? "" : "GRUB's menu has other arguments than declared: " + join(now, " ");
  }
  return "";
}

bool has_grub(const Files& files) {
  return files.is_directory("/etc/default/grub.d") || files.exists("/etc/default/grub");
}

Status boot_diff(StepContext& context, const WantedKernelCommandLine& want, Diff& diff) {
  const std::string slot = read_image_record(context.files).slot;
  if (slot.empty()) {
    if (!has_grub(context.files)) return fail(Code::not_found, "found neither a muster boot entry nor GRUB");
    add_difference(context.files, grub_file(want), diff);
    add_difference(context.files, earlier_grub_file(want), diff);
    if (has_pending_reload(context.files, "grub-" + want.name)) diff.add("GRUB's menu is not up to date");
    if (const auto menu = menu_diff(context.files, want); !menu.empty()) diff.add(menu);
    return Ok{};
  }
  TRY(const OwnEsp esp, OwnEsp::open(context, "ro"));
  TRY(const std::string entry, context.files.read(boot_entry_path(slot)));
  const auto now = split(entry_options(entry), ' ');
  if (edited(want, now) != now)
    diff.add("boot entry: " + join(now, " ") + " -> " + join(edited(want, now), " "));
  return Ok{};
}

bool running_has(const Files& files, const WantedKernelCommandLine& want) {
  const auto now = split(files.read_line("/proc/cmdline"), ' ');
  return edited(want, now) == now;
}

Result<CheckResult> check_kernel_command_line(StepContext& context, const WantedKernelCommandLine& want) {
  // These arguments were in the entry when it booted, so the ESP is mounted only if they differ.
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable,
                       "an image has no kernel command line; the step is checked on nodes"};
  const bool running = running_has(context.files, want);
  const bool requested = context.files.exists(kMark + want.name);
  if (running && read_image_record(context.files).slot.empty() == false && !requested) return holds();
  Diff diff;
  TRY_(boot_diff(context, want, diff));
  if (!running && !requested)
    diff.add("the running kernel has other arguments than declared: " +
             context.files.read_line("/proc/cmdline"));
  return diff.result();
}

Status apply_entry(StepContext& context, const WantedKernelCommandLine& want, const std::string& slot) {
  TRY(const OwnEsp esp, OwnEsp::open(context, "rw"));
  TRY(const std::string entry, context.files.read(boot_entry_path(slot)));
  const auto now = split(entry_options(entry), ' ');
  if (now.empty()) return fail(Code::conflict, boot_entry_path(slot) + " has no options line");
  if (edited(want, now) == now) return Ok{};
  return context.files.write(boot_entry_path(slot), with_options(entry, edited(want, now)));
}

Status apply_grub(StepContext& context, const WantedKernelCommandLine& want) {
  if (!context.files.exists("/usr/sbin/update-grub"))
    return fail(Code::not_found,
                "this system has GRUB, but no update-grub, with which its menu is written on " +
                    supported_releases());
  const std::string debt = "grub-" + want.name;
  for (const auto& file : {grub_file(want), earlier_grub_file(want)}) {
    if (differs_from(context.files, file)) TRY_(mark_pending(context.files, debt));
    TRY_(put(context.files, file));
  }
  if (!has_pending_reload(context.files, debt) && menu_diff(context.files, want).empty()) return Ok{};
  TRY_(run_tool(context, {"update-grub"}, 3 * kMinute));
  // A restart would not help, because a later file overrides the arguments.
  if (const auto menu = menu_diff(context.files, want); !menu.empty())
    return fail(Code::conflict, menu + ": a file in /etc/default/grub.d or /etc/grub.d that is read after " +
                                    grub_file(want).path +
                                    " sets other arguments; remove them from that file");
  return clear_pending(context.files, debt);
}

Status apply_kernel_command_line(StepContext& context, const WantedKernelCommandLine& want) {
  const std::string slot = read_image_record(context.files).slot;
  TRY_(slot.empty() ? apply_grub(context, want) : apply_entry(context, want, slot));
  if (running_has(context.files, want)) return Ok{};
  return request_reboot(context.files, "kernel_command_line-" + want.name,
                        "kernel arguments " + join(want.present, " "));
}

}  // namespace

StepModule kernel_command_line_module() {
  return step_module<WantedKernelCommandLine>({
      .name = "kernel_command_line",
      .help = "Sets kernel arguments in the boot entry of the running slot (on an adopted host: in a "
              "drop-in for GRUB). The step holds only if the running kernel has the arguments; otherwise it "
              "requests a restart (see `reboot`). A re-image rewrites the entry.",
      .check = check_kernel_command_line,
      .apply = apply_kernel_command_line,
      .complete = complete_kernel_command_line,
  });
}

}  // namespace muster::steps
