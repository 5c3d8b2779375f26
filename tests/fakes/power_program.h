// A program as operators write them for the driver `command`, in a folder of its own, with a machine that is
// a few files: power, what boots next, what booted. It can be made deaf, dead, slow to tell or talkative.
#pragma once

#include <filesystem>
#include <string>

#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class PowerProgram {
 public:
  PowerProgram() {
    std::filesystem::permissions(dir_.path(""), std::filesystem::perms::owner_all);
    std::filesystem::create_directory(folder());
    std::filesystem::permissions(folder(), std::filesystem::perms(0755));
    write(kProgram);
  }

  std::string folder() const { return dir_.path("power.d"); }
  std::string path() const { return folder() + "/outlet"; }
  // Another text for the program.
  void write(const std::string& text) {
    dir_.write("power.d/outlet", text);
    std::filesystem::permissions(path(), std::filesystem::perms(0755));
  }
  void set(const std::string& name, const std::string& value) { dir_.write(name, value); }
  std::string get(const std::string& name) const { return dir_.read(name); }
  bool runs() const { return get("power") == "on"; }

  // Its own folder is two above its path; $0 is absolute.
  static constexpr const char* kProgram = R"sh(#!/bin/sh
d=${0%/*/*}
read -r call
printf '%s\n' "$call" >>"$d/calls"
env >"$d/env"
said() { printf '%s' "$call" | sed -n "s/.*\"$1\":\"\{0,1\}\([a-z-]*\).*/\1/p"; }
case $(said verb) in
  capabilities) printf '{"network":"%s"}\n' "$(cat "$d/network" 2>/dev/null || echo once)" ;;
  state) printf '{"power":"%s"%s}\n' "$(cat "$d/power" 2>/dev/null || echo off)" "$(cat "$d/more" 2>/dev/null)" ;;
  on)
    if [ ! -e "$d/dead" ] && [ "$(cat "$d/power" 2>/dev/null)" != on ]; then
      printf %s "$(cat "$d/next" 2>/dev/null || echo d)" >>"$d/boots"
      rm -f "$d/next"
      printf on >"$d/power"
    fi
    echo '{}' ;;
  off)
    [ "$(said graceful)" = true ] && [ -e "$d/deaf" ] || printf off >"$d/power"
    echo '{}' ;;
  network-once) printf n >"$d/next"; echo '{}' ;;
  *) echo '{"error":{"code":"invalid","message":"no such verb"}}' ;;
esac
)sh";

 private:
  TempDir dir_;
};

}  // namespace muster::testing
