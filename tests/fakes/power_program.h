// A program as operators write them for the driver `command`, in a folder of its own, with a machine that is
// a few files: power, what boots next, what booted. Files tell it to misbehave: "deaf" to polite requests,
// "dead", "ignores" (accepts orders and does nothing), "forgets" (the order for a network boot), "lag" (so
// many looks show the state before), "dumb" (does not know what boots next), and "fails-VERB".
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
  // The next so many calls of this verb: an error of this code; "lost", done and without an answer;
  // "unheard", neither; "babble", done, with text for an answer.
  void fails(const std::string& verb, int times, const std::string& how) {
    set("fails-" + verb, std::to_string(times) + " " + how + "\n");
  }
  std::string get(const std::string& name) const { return dir_.read(name); }
  bool runs() const { return get("power") == "on"; }

  // Its own folder is two above its path; $0 is absolute.
  static constexpr const char* kProgram = R"sh(#!/bin/sh
d=${0%/*/*}
read -r call
printf '%s\n' "$call" >>"$d/calls"
env >"$d/env"
said() { printf '%s' "$call" | sed -n "s/.*\"$1\":\"\{0,1\}\([a-z-]*\).*/\1/p"; }
have() { cat "$d/$1" 2>/dev/null || echo "$2"; }
verb=$(said verb)
how=
if [ -s "$d/fails-$verb" ]; then
  read -r times how <"$d/fails-$verb"
  if [ "$times" -gt 1 ]; then echo "$((times - 1)) $how" >"$d/fails-$verb"; else rm "$d/fails-$verb"; fi
fi
case $how in
  '' | lost | babble) ;;
  unheard) exit 1 ;;
  *) printf '{"error":{"code":"%s","message":"so"}}\n' "$how"; exit 1 ;;
esac
answer() {
  [ "$how" != lost ] || exit 1
  [ "$how" != babble ] || { echo 'outlet 7: done'; exit 0; }
  printf '%s\n' "$1"
}
switch() {
  [ ! -e "$d/lag" ] || printf '%s %s\n' "$(cat "$d/lag")" "$(have power off)" >"$d/old"
  printf %s "$1" >"$d/power"
}
shown() {
  if [ -s "$d/old" ]; then
    read -r looks old <"$d/old"
    if [ "$looks" -gt 1 ]; then echo "$((looks - 1)) $old" >"$d/old"; else rm "$d/old"; fi
    echo "$old"
  else
    have power off
  fi
}
next() {
  if [ -e "$d/dumb" ]; then return; fi
  if [ "$(have next d)" = n ]; then printf ',"next":"network"'; else printf ',"next":"disk"'; fi
}
case $verb in
  capabilities) answer "{\"network\":\"$(have network once)\"}" ;;
  state) answer "{\"power\":\"$(shown)\"$(next)$(have more '')}" ;;
  on)
    if [ ! -e "$d/dead" ] && [ ! -e "$d/ignores" ] && [ "$(have power off)" != on ]; then
      have next d | tr -d '\n' >>"$d/boots"
      rm -f "$d/next"
      switch on
    fi
    answer '{}' ;;
  off)
    if [ -e "$d/ignores" ] || { [ "$(said graceful)" = true ] && [ -e "$d/deaf" ]; }; then :
    elif [ "$(have power off)" != off ]; then switch off; fi
    answer '{}' ;;
  network-once) [ -e "$d/forgets" ] || printf n >"$d/next"; answer '{}' ;;
  *) echo '{"error":{"code":"invalid","message":"no such verb"}}' ;;
esac
)sh";

 private:
  TempDir dir_;
};

}  // namespace muster::testing
